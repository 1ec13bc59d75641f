package hostapi

import (
	"errors"
	"strings"

	"edged/sandbox/engine"
	"edged/sandbox/hostapi/urlpattern"
)

// errAsk stops a compilation until the guest has tried a regular expression.
var errAsk = errors.New("a regular expression has to be tried")

// patternCompile(pattern, ignoreCase, answers): a compiled pattern, or the text of a regular expression of which the guest
// must first say whether it matches the name of a special scheme. pattern is [text, base] or the nine parts of an Init with
// its base; what is absent is undefined. answers has a 1 or 0 for each expression that was asked about before. The compiled
// pattern is an array: for each component the pattern, how it is matched, by which text, and the names of its groups with
// commas between; then whether the pattern holds regular expressions. A TypeError for a pattern that is not valid.
func hostPatternCompile(in *engine.Instance, args []engine.Value) engine.Value {
	answers, ok1 := in.String(args[2])
	parts, ok2 := patternParts(in, args[0])
	if !ok1 || !ok2 || !args[1].IsBool() || len(parts) != 2 && len(parts) != 9 || len(parts) == 2 && parts[0] == nil {
		return badArgument(in, "patternCompile")
	}
	ask, asked := "", 0
	opt := urlpattern.Options{IgnoreCase: args[1].Bool(), Special: func(expression string) (bool, error) {
		if asked == len(answers) {
			ask = expression
			return false, errAsk
		}
		asked++
		return answers[asked-1] == '1', nil
	}}
	var c [8]urlpattern.Component
	var err error
	if len(parts) == 2 {
		c, err = urlpattern.Compile(*parts[0], parts[1], opt)
	} else {
		c, err = urlpattern.CompileInit(patternInit(parts), opt)
	}
	switch {
	case errors.Is(err, errAsk):
		return in.NewString([]byte(ask))
	case err != nil:
		return in.ThrowType("URLPattern: " + err.Error())
	}
	list := make([]engine.Value, 0, 4*len(c)+1)
	special := false
	for _, one := range c {
		special = special || one.HasRegexp
		list = append(list, in.NewString([]byte(one.Pattern)), engine.Int(int32(one.Match)), in.NewString([]byte(one.Text)),
			in.NewString([]byte(strings.Join(one.Names, ","))))
	}
	return in.NewArray(append(list, engine.Bool(special))...)
}

// patternURL(parts): the components of the URL that nine parts stand for; undefined if they stand for none.
func hostPatternURL(in *engine.Instance, args []engine.Value) engine.Value {
	parts, ok := patternParts(in, args[0])
	if !ok || len(parts) != 9 {
		return badArgument(in, "patternURL")
	}
	c, err := patternInit(parts).URL()
	if err != nil {
		return engine.Undefined
	}
	list := make([]engine.Value, len(c))
	for i, s := range c {
		list[i] = in.NewString([]byte(s))
	}
	return in.NewArray(list...)
}

func patternInit(parts []*string) *urlpattern.Init {
	init := &urlpattern.Init{Base: parts[8]}
	copy(init.Parts[:], parts)
	return init
}

// patternParts reads an array of two or nine strings or undefineds.
func patternParts(in *engine.Instance, v engine.Value) (parts []*string, ok bool) {
	if !in.IsArray(v) {
		return nil, false
	}
	for i := range uint32(9) {
		item := in.GetIndex(v, i)
		if item.IsNull() { // the end
			break
		}
		if item.IsUndefined() {
			parts = append(parts, nil)
			continue
		}
		s, isString := in.String(item)
		in.Free(item)
		if !isString {
			return nil, false
		}
		parts = append(parts, &s)
	}
	return parts, true
}
