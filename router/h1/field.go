package h1

// lower maps every byte of a token to its lower case and every other byte to 0.
var lower = func() (t [256]byte) {
	for _, c := range []byte("!#$%&'*+-.^_`|~0123456789abcdefghijklmnopqrstuvwxyz") {
		t[c] = c
	}
	for c := byte('A'); c <= 'Z'; c++ {
		t[c] = c + 'a' - 'A'
	}
	return t
}()

func isToken(c byte) bool { return lower[c] != 0 }

// valueByte says which bytes a field value may hold: HTAB, printable ASCII and obs-text.
var valueByte = func() (t [256]bool) {
	t['\t'] = true
	for c := 0x20; c < 0x100; c++ {
		t[c] = c != 0x7f
	}
	return t
}()

// targetByte says which bytes a request target may hold. Bytes above ASCII are let through, as browsers' URL parsers
// take them; a fragment never belongs into a target.
var targetByte = func() (t [256]bool) {
	for c := 0x21; c < 0x100; c++ {
		t[c] = c != 0x7f && c != '#'
	}
	return t
}()

// appendLower appends the lower case of a token; ok is false if name is empty or not a token.
func appendLower(dst, name []byte) (_ []byte, ok bool) {
	for _, c := range name {
		l := lower[c]
		if l == 0 {
			return dst, false
		}
		dst = append(dst, l)
	}
	return dst, len(name) > 0
}

func validValue(v []byte) bool {
	for _, c := range v {
		if !valueByte[c] {
			return false
		}
	}
	return true
}

// trim removes optional white space from both ends.
func trim(v []byte) []byte {
	for len(v) > 0 && (v[0] == ' ' || v[0] == '\t') {
		v = v[1:]
	}
	for len(v) > 0 && (v[len(v)-1] == ' ' || v[len(v)-1] == '\t') {
		v = v[:len(v)-1]
	}
	return v
}

// equalFold compares ASCII bytes with a lower-case word.
func equalFold(b []byte, word string) bool {
	if len(b) != len(word) {
		return false
	}
	for i, c := range b {
		if lower[c] != word[i] {
			return false
		}
	}
	return true
}

// hopByHop reports whether a field speaks of one connection only, so that it never passes the node. name is lower-case.
func hopByHop(name []byte) bool {
	switch string(name) {
	case "connection", "keep-alive", "proxy-connection", "te", "trailer", "transfer-encoding", "upgrade",
		"proxy-authorization", "proxy-authenticate", "http2-settings":
		return true
	}
	return false
}

// ours reports whether a field belongs to the node's own diagnostics (node-surface §7). name is lower-case.
func ours(name []byte) bool {
	return len(name) >= 6 && string(name[:6]) == "edged-"
}

// forwarding reports whether a field tells where a request came from: only a trusted proxy may say that.
func forwarding(name []byte) bool {
	switch string(name) {
	case "forwarded", "x-real-ip":
		return true
	}
	return len(name) > 12 && string(name[:12]) == "x-forwarded-"
}
