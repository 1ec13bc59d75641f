package table

import (
	"bytes"

	"edged/router/h1"
)

// maxHost is more than any DNS name has; longer names match nothing.
const maxHost = 256

// appendCanonical appends the canonical form of a Host value: no port, lower case, without one trailing dot.
func appendCanonical(dst, host []byte) (_ []byte, ok bool) {
	if host = bare(host); len(host) == 0 || len(host) > maxHost {
		return dst, false
	}
	for _, c := range host {
		if c >= 'A' && c <= 'Z' {
			c += 'a' - 'A'
		}
		dst = append(dst, c)
	}
	return dst, true
}

// bare returns a Host value without port and one trailing dot.
func bare(host []byte) []byte {
	host, _ = h1.SplitPort(host)
	if n := len(host); n > 0 && host[n-1] == '.' {
		host = host[:n-1]
	}
	return host
}

func hasCapital(host []byte) bool {
	for _, c := range host {
		if c >= 'A' && c <= 'Z' {
			return true
		}
	}
	return false
}

// AppendCanonical appends the name under which a Host value is looked up: no port, lower case, without one trailing dot. ok is false for a
// value that can match nothing; dst then holds rubbish.
func AppendCanonical(dst, host []byte) (_ []byte, ok bool) { return appendCanonical(dst, host) }

// SameHost reports whether two host values have the same canonical form.
func SameHost(a, b []byte) bool {
	var bufA, bufB [maxHost]byte
	ca, okA := appendCanonical(bufA[:0], a)
	cb, okB := appendCanonical(bufB[:0], b)
	return okA && okB && bytes.Equal(ca, cb)
}
