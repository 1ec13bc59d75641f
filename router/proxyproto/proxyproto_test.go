package proxyproto

import (
	"net/netip"
	"strings"
	"testing"

	"edged/internal/testkit"
)

func TestMain(m *testing.M) { testkit.Main(m) }

const sig = "\r\n\r\n\x00\r\nQUIT\n"

const (
	v4  = sig + "\x21\x11\x00\x0c" + "\x01\x02\x03\x04" + "\x0a\x00\x00\x01" + "\x00\x01\x00\x02"
	v6  = sig + "\x21\x21\x00\x24" + "\x20\x01\x0d\xb8\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x01" + "\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x02" + "\x00\x01\x00\x02"
	tlv = sig + "\x21\x11\x00\x10" + "\x01\x02\x03\x04" + "\x0a\x00\x00\x01" + "\x00\x01\x00\x02" + "\x04\x00\x01x"
)

// Both versions, whole and in every shorter piece; what is no header is left alone.
func TestParse(t *testing.T) {
	for _, tt := range []struct {
		in     string
		n      int
		source string
		bad    bool
	}{
		{in: "PROXY TCP4 1.2.3.4 5.6.7.8 1 2\r\nGET", n: 32, source: "1.2.3.4"},
		{in: "PROXY TCP6 2001:db8::1 ::1 1 2\r\n", n: 32, source: "2001:db8::1"},
		{in: "PROXY UNKNOWN\r\n", n: 15},
		{in: "PROXY UNKNOWN ffff::1 ffff::2 1 2\r\n", n: 35},
		{in: "PROXY TCP4 1.2.3.4 5.6.7.8 1\r\n", bad: true},
		{in: "PROXY TCP4 ::1 ::1 1 2\r\n", bad: true},
		{in: "PROXY TCP6 fe80::1%eth0 ::1 1 2\r\n", bad: true},
		{in: "PROXY TCP4 x y 1 2\r\n", bad: true},
		{in: "PROXY UDP4 1.2.3.4 5.6.7.8 1 2\r\n", bad: true},
		{in: "PROXY " + strings.Repeat("x", 120), bad: true},
		{in: v4 + "GET", n: 28, source: "1.2.3.4"},
		{in: v6, n: 52, source: "2001:db8::1"},
		{in: tlv, n: 32, source: "1.2.3.4"},
		{in: sig + "\x20\x00\x00\x00", n: 16},
		{in: sig + "\x21\x31\x00\x00", n: 16}, // a family that names no IP address
		{in: sig + "\x31\x11\x00\x0c", bad: true},
		{in: sig + "\x22\x11\x00\x0c", bad: true},
		{in: sig + "\x21\x11\x00\x04abcd", bad: true},
		{in: sig + "\x21\x21\x00\x04abcd", bad: true},
		{in: sig + "\x21\x11\xff\xff", bad: true},
		{in: "GET / HTTP/1.1\r\n"},
		{in: "PUT"},
		{in: "\r\nGET"},
	} {
		source, n, more, err := Parse([]byte(tt.in))
		if want, _ := netip.ParseAddr(tt.source); source != want || n != tt.n || more || (err != nil) != tt.bad {
			t.Errorf("%q: got %v %d more %t %v", tt.in, source, n, more, err)
		}
		for i := range tt.n {
			if _, n, more, err := Parse([]byte(tt.in[:i])); n != 0 || !more || err != nil {
				t.Errorf("%q: got %d more %t %v", tt.in[:i], n, more, err)
			}
		}
	}
}

// No input panics, reads past its end or asks for more than MaxHeader bytes.
func FuzzParse(f *testing.F) {
	for _, s := range []string{"", "PROXY TCP4 1.2.3.4 5.6.7.8 1 2\r\n", v4, v6, tlv, "GET /"} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		source, n, more, err := Parse(b)
		if n < 0 || n > len(b) || n > MaxHeader || more && (n != 0 || err != nil || len(b) >= MaxHeader) || source.IsValid() && n == 0 {
			t.Fatalf("%q: %v %d %t %v", b, source, n, more, err)
		}
	})
}
