package hostapi

import "edged/sandbox/engine"

// token says which bytes may stand in a header name, and lower-cases them; 0 for the others.
var token = func() (t [256]byte) {
	for c := '0'; c <= '9'; c++ {
		t[c] = byte(c)
	}
	for c := 'a'; c <= 'z'; c++ {
		t[c], t[c-'a'+'A'] = byte(c), byte(c)
	}
	for _, c := range []byte("!#$%&'*+-.^_`|~") {
		t[c] = c
	}
	return t
}()

// headerName(name): the name in lower case, undefined if it is not a token.
func hostHeaderName(in *engine.Instance, args []engine.Value) engine.Value {
	var buf [128]byte
	if !args[0].IsString() {
		return badArgument(in, "headerName")
	}
	name, ok := in.AppendLatin1(buf[:0], args[0])
	if !ok || len(name) == 0 {
		return engine.Undefined
	}
	changed := false
	for i, c := range name {
		lower := token[c]
		if lower == 0 {
			return engine.Undefined
		}
		changed = changed || lower != c
		name[i] = lower
	}
	if !changed {
		return in.Dup(args[0])
	}
	return in.NewLatin1(name)
}

// headerValue(value): whether the value is valid and already normalised. False is not an error: the prelude looks closer.
func hostHeaderValue(in *engine.Instance, args []engine.Value) engine.Value {
	var buf [256]byte
	if !args[0].IsString() {
		return badArgument(in, "headerValue")
	}
	value, ok := in.AppendLatin1(buf[:0], args[0])
	if !ok || len(value) > 0 && (value[0] <= ' ' || value[len(value)-1] <= ' ') {
		return engine.False
	}
	for _, c := range value {
		if c < ' ' && c != '\t' {
			return engine.False
		}
	}
	return engine.True
}
