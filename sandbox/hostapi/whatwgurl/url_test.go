package whatwgurl

import (
	"strings"
	"testing"
)

func TestParse(t *testing.T) {
	for _, c := range []struct{ input, base, want string }{
		{"http://example.com", "", "http://example.com/"},
		{" \tHTTP://EX%61MPLE.com:80/a/./b/../c?q#f\n", "", "http://example.com/a/c?q#f"},
		{"http://user:pa:ss@x@host:8080/", "", "http://user:pa%3Ass%40x@host:8080/"},
		{"https:\\\\a\\b", "", "https://a/b"},
		{"http:a", "http://b/c/d", "http://b/c/a"},
		{"//x/y", "https://b/", "https://x/y"},
		{"?q", "http://a/b?c#d", "http://a/b?q"},
		{"#f", "http://a/b?c#d", "http://a/b?c#f"},
		{"", "http://a/b?c#d", "http://a/b?c"},
		{"..", "http://a/b/c/d", "http://a/b/"},
		{"%2e%2E/x", "http://a/b/c", "http://a/x"},
		{"#f", "mailto:x", "mailto:x#f"},
		{"x", "mailto:x", ""},
		{"no-scheme", "", ""},
		{"data:text/plain,a b  #c", "", "data:text/plain,a b %20#c"},
		{"x:/..//y", "", "x:/.//y"},
		{"x://h", "", "x://h"},
		{"x://h?q", "", "x://h?q"},
		{"file:///C|/a/../..", "", "file:///C:/"},
		{"file:c:\\x", "file:///d:/y", "file:///c:/x"},
		{"/x", "file:///d:/y", "file:///d:/x"},
		{"file://localhost/x", "", "file:///x"},
		{"file:?q", "file://h/a/b", "file://h/a/b?q"},
		{"http://0x7f.1/", "", "http://127.0.0.1/"},
		{"http://4294967295/", "", "http://255.255.255.255/"},
		{"http://4294967296/", "", ""},
		{"http://1.2.3.08/", "", ""},
		{"http://1.2.3.4.5/", "", ""},
		{"http://[1:0::0:2]/", "", "http://[1::2]/"},
		{"http://[::ffff:1.2.3.4]/", "", "http://[::ffff:102:304]/"},
		{"http://[1:2:3:4:5:6:7:8:9]/", "", ""},
		{"http://[::1.2.3.04]/", "", ""},
		{"http://[::1", "", ""},
		{"http://ü.example/", "", "http://xn--tda.example/"},
		{"http://faß.ExAmPlE/", "", "http://xn--fa-hia.example/"},
		{"http://a\u00adb/", "", "http://ab/"},
		{"http://\u00ad/", "", ""},
		{"http://a b/", "", ""},
		{"http://a%00b/", "", ""},
		{"http://a:65536/", "", ""},
		{"http://a:/", "", "http://a/"},
		{"http://:80/", "", ""},
		{"http://@/", "", ""},
		{"http:///a", "", "http://a/"},
		{"x://a b/", "", ""},
		{"x://ü/é?ö#ä", "", "x://%C3%BC/%C3%A9?%C3%B6#%C3%A4"},
		{"http://a/'?'#'`", "", "http://a/'?%27#'%60"},
		{"http://a/\xff", "", "http://a/%EF%BF%BD"},
		{"http://a/" + strings.Repeat("x", MaxBytes), "", ""},
	} {
		var base *URL
		if c.base != "" {
			var ok bool
			if base, ok = Parse(c.base, nil); !ok {
				t.Fatalf("base %q does not parse", c.base)
			}
		}
		got := ""
		if u, ok := Parse(c.input, base); ok {
			got = hrefOf(u)
		}
		if got != c.want {
			t.Errorf("%.60q on %q = %q, want %q", c.input, c.base, got, c.want)
		}
	}
}

func hrefOf(u *URL) string {
	b, _ := u.AppendTo(nil)
	return string(b)
}

func TestParts(t *testing.T) {
	u, _ := Parse("https://u:p@host:81/a/b?q#f", nil)
	b, p := u.AppendTo([]byte("before"))
	href := string(b[len("before"):])
	got := []string{href[:p.ProtocolEnd], href[p.UserStart:p.UserEnd], href[p.UserEnd+1 : p.PasswordEnd], href[p.HostStart:p.HostEnd],
		href[p.HostEnd+1 : p.PathStart], href[p.PathStart:p.SearchStart], href[p.SearchStart:p.HashStart], href[p.HashStart:]}
	if s := strings.Join(got, " "); s != "https: u p host 81 /a/b ?q #f" {
		t.Errorf("got %s", s)
	}
}

func TestSet(t *testing.T) {
	for _, c := range []struct {
		url   string
		part  Part
		value string
		want  string
	}{
		{"http://a/", Protocol, "https:x", "https://a/"},
		{"http://a:443/", Protocol, "https", "https://a/"},
		{"http://a/", Protocol, "x", "http://a/"},
		{"http://u@a/", Protocol, "file", "http://u@a/"},
		{"http://a/", Username, "ü:", "http://%C3%BC%3A@a/"},
		{"file:///a", Username, "u", "file:///a"},
		{"http://u:p@a/", Password, "", "http://u@a/"},
		{"http://a:8/", Host, "b", "http://b:8/"},
		{"http://a/", Host, "b:9/c", "http://b:9/"},
		{"http://a/", Host, "b:80", "http://b/"},
		{"http://a/", Host, "b:x", "http://b/"},
		{"http://a/", Host, "", "http://a/"},
		{"http://a/", Host, "[::1]:9", "http://[::1]:9/"},
		{"http://a/", Hostname, "b:9", "http://a/"},
		{"x://a/b", Hostname, "", "x:///b"},
		{"x:/a", Host, "h", "x://h/a"},
		{"mailto:a", Host, "b", "mailto:a"},
		{"file:///a", Host, "localhost", "file:///a"},
		{"file:///a", Host, "h:1", "file:///a"},
		{"http://a/", Port, "90x", "http://a:90/"},
		{"http://a:90/", Port, "", "http://a/"},
		{"http://a:90/", Port, "\t", "http://a:90/"},
		{"http://a/", Port, "65536", "http://a/"},
		{"http://a/b?c", Pathname, "x y?", "http://a/x%20y%3F?c"},
		{"http://a/b", Pathname, "", "http://a/"},
		{"x:/a", Pathname, "", "x:/"},
		{"x:/a", Pathname, "//b", "x:/.//b"},
		{"mailto:a", Pathname, "b", "mailto:a"},
		{"http://a/?b", Search, "", "http://a/"},
		{"http://a/", Search, "??'#", "http://a/??%27%23"},
		{"http://a/", Hash, "#a`b", "http://a/#a%60b"},
		{"http://a/#x", Hash, "", "http://a/"},
		{"http://a/", Part(99), "x", "http://a/"},
	} {
		u, ok := Parse(c.url, nil)
		if !ok {
			t.Fatalf("%q does not parse", c.url)
		}
		u.Set(c.part, c.value)
		if got := hrefOf(u); got != c.want {
			t.Errorf("%q part %d = %q: %q, want %q", c.url, c.part, c.value, got, c.want)
		}
	}
}

func BenchmarkParse(b *testing.B) {
	for _, s := range []string{"https://example.com/a/b?c=d", "http://user@sub.example.com:8080/a/./b c/../é?x=y#z", "https://bücher.example/"} {
		b.Run(s, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, ok := Parse(s, nil); !ok {
					b.Fatal("does not parse")
				}
			}
		})
	}
}
