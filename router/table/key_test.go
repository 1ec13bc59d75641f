package table

import (
	"bytes"
	"net/url"
	"strings"
	"testing"
)

const unsearchable = "\x00"

func key(path string) string {
	k, ok := AppendAssetKey(nil, []byte(path))
	if !ok {
		return unsearchable
	}
	return string(k)
}

// static-assets §1, every row of its table, and what its rules say between the rows.
func TestAssetKey(t *testing.T) {
	for path, want := range map[string]string{
		"/":            "index.html",
		"/docs/":       "docs/index.html",
		"/docs":        "docs",
		"/a%20b.txt":   "a b.txt",
		"/a%2Fb":       unsearchable,
		"/%5Cx":        unsearchable,
		"/%00":         unsearchable,
		"/a//b":        unsearchable,
		"//a":          unsearchable,
		"/a//":         unsearchable,
		"/%E0%A4%A":    unsearchable,
		"/%ff":         unsearchable,
		"/%2541":       "%41",
		"/%2e%2e/x":    "x",
		"/A.css":       "A.css",
		"":             "index.html", // an absolute target without a path
		"/a/%2E%2e/b":  "b",
		"/a/./b/.":     "a/b/index.html",
		"/a/b/..":      "a/index.html",
		"/..":          "index.html",
		"/../../a":     "a",
		"/...":         "...",
		"/a/.%2ex":     "a/..x",
		`/a\b`:         "a/b",
		`/a\..\b`:      "b",
		"/%":           unsearchable,
		"/%4":          unsearchable,
		"/%zz":         unsearchable,
		"/%7f":         unsearchable,
		"/%1f":         unsearchable,
		"/%C2%85":      unsearchable, // C1
		"/%EF%BF%BF":   "\uffff",     // D-25: non-characters are not excluded
		"/%ED%A0%80":   unsearchable, // a surrogate is no UTF-8
		"/%C0%AF":      unsearchable, // overlong
		"/%E2%82%AC":   "€",
		"/€":           "€",
		"/\xff":        unsearchable,
		"/+":           "+",
		"/a%3Fb":       "a?b",
		"/a%23b":       "a#b",
		"/%252e%252e/": "%2e%2e/index.html",
	} {
		if got := key(path); got != want {
			t.Errorf("%q: got %q, want %q", path, got, want)
		}
	}
}

// A key can never leave the bundle, whatever the path; and it does not depend on what is already in the buffer.
func FuzzAssetKey(f *testing.F) {
	for _, s := range []string{"/", "/a/../b%2fc//", "/%2e%2E/%ff", `\..\x`, "/a/%", "x"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, path string) {
		got, ok := AppendAssetKey([]byte("kept"), []byte(path))
		if !bytes.HasPrefix(got, []byte("kept")) {
			t.Fatalf("%q: the prefix is gone: %q", path, got)
		}
		if again := key(path); ok != (again != unsearchable) || ok && again != string(got[4:]) {
			t.Fatalf("%q: %q, then %q", path, got[4:], again)
		}
		if !ok {
			return
		}
		k := string(got[4:])
		if k == "" || strings.HasPrefix(k, "/") || strings.HasSuffix(k, "/") || strings.ContainsAny(k, "\\\x00") {
			t.Fatalf("%q: key %q", path, k)
		}
		for s := range strings.SplitSeq(k, "/") {
			if s == "" || s == "." || s == ".." {
				t.Fatalf("%q: key %q", path, k)
			}
		}
		// Encoding the key again leads back to it.
		back := "/" + strings.ReplaceAll(url.PathEscape(k), "%2F", "/")
		if key(back) != k {
			t.Fatalf("%q: key %q comes back from %q as %q", path, k, back, key(back))
		}
	})
}
