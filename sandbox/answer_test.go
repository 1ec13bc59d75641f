package sandbox

import (
	"strings"
	"testing"
)

// A packed header that the prelude would never make is refused all the same.
func TestCheckHeader(t *testing.T) {
	for _, c := range []struct {
		packed string
		length int64
		why    string
	}{
		{"", -1, ""},
		{"a\nb\n", -1, ""},
		{"content-length\n12\na\n\n", 12, ""},
		{"a\xff\nb\n", -1, "name"},
		{"A\nb\n", -1, "name"},
		{"a b\nc\n", -1, "name"},
		{"\nc\n", -1, "name"},
		{"a", -1, "name"},
		{"a\nb", -1, "value"},
		{"a\nb\rc\n", -1, "value"},
		{"a\nb\x00\n", -1, "value"},
		{"a\nb\nsplit\nc", -1, "value"},
		{"content-length\n1\ncontent-length\n1\n", -1, "content-length"},
		{"content-length\n-1\n", -1, "content-length"},
		{"content-length\n1,1\n", -1, "content-length"},
		{"content-length\n99999999999999999999\n", -1, "content-length"},
		{strings.Repeat("a\nb\n", 11), -1, "too many"},
		{"a\n" + strings.Repeat("b", 1000) + "\n", -1, "too large"},
	} {
		length, why := checkHeader([]byte(c.packed), 10, 500)
		if (why == "") != (c.why == "") || !strings.Contains(why, c.why) || why == "" && length != c.length {
			t.Errorf("%.40q: got %d, %q, want %d, %q", c.packed, length, why, c.length, c.why)
		}
	}
}

// What checkHeader accepts can be written to a connection as it is: no CR, LF or NUL inside a field, names are tokens.
func FuzzCheckHeader(f *testing.F) {
	f.Add([]byte("content-type\ntext/plain\nx\n\n"))
	f.Add([]byte("a\r\nb\n"))
	f.Fuzz(func(t *testing.T, packed []byte) {
		if _, why := checkHeader(packed, 64, 16384); why != "" {
			return
		}
		fields := strings.Split(string(packed), "\n")
		if len(fields)%2 != 1 || fields[len(fields)-1] != "" {
			t.Fatalf("%q has an odd field", packed)
		}
		for i, s := range fields[:len(fields)-1] {
			if strings.ContainsAny(s, "\r\x00") || i%2 == 0 && (s == "" || strings.ContainsAny(s, " :\t")) {
				t.Fatalf("%q holds %q", packed, s)
			}
		}
	})
}
