package whatwgurl

import "testing"

// A serialised URL is ASCII, its parts lie in order, and it parses to itself; a setter keeps it so.
func FuzzParse(f *testing.F) {
	for _, s := range []string{"http://u:p@h:1/a?b#c", "file:///C|/x", "x:/.//y", "mailto:a b #c", "http://[::1.2.3.4]", "http://0x1.2/", "http://ü/", "//a", "..\\b", "a:?"} {
		f.Add(s, "http://a/b/c?d", uint8(3), "x:1")
		f.Add(s, "file:///c:/d", uint8(6), "/..")
	}
	f.Fuzz(func(t *testing.T, input, on string, part uint8, value string) {
		base, ok := Parse(on, nil)
		if !ok {
			base = nil
		}
		u, ok := Parse(input, base)
		if !ok {
			return
		}
		check(t, u)
		u.Set(Part(part%10), value)
		check(t, u)
	})
}

func check(t *testing.T, u *URL) {
	t.Helper()
	b, p := u.AppendTo(nil)
	href := string(b)
	for _, c := range b {
		if c >= 0x80 || c < ' ' {
			t.Fatalf("%q is not printable ASCII", href)
		}
	}
	last := int32(0)
	for _, n := range []int32{p.ProtocolEnd, p.UserStart, p.UserEnd, p.PasswordEnd, p.HostStart, p.HostEnd, p.PathStart, p.SearchStart, p.HashStart, int32(len(b))} {
		if n < last {
			t.Fatalf("the parts of %q are out of order: %+v", href, p)
		}
		last = n
	}
	again, ok := Parse(href, nil)
	if !ok || hrefOf(again) != href {
		t.Fatalf("%q does not parse to itself", href)
	}
}
