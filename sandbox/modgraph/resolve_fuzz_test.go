package modgraph

import (
	"strings"
	"testing"
)

// What join accepts is always a path of the shape that a manifest may hold (worker-bundle §2), and never above the root.
func FuzzResolve(f *testing.F) {
	for _, s := range []string{"./a", "../b", "/c/d", "./../x", ".", "//", "./a/./b", "./..", "node:fs", "/a/../../b"} {
		f.Add("lib/deep/m.js", s)
	}
	f.Fuzz(func(t *testing.T, importer, specifier string) {
		for s := range strings.SplitSeq(importer, "/") {
			if s == "" || s == "." || s == ".." {
				return // no manifest path
			}
		}
		path, why := join(importer, specifier)
		if why != "" {
			return
		}
		if path == "" {
			return // the root itself: no module has that path
		}
		for s := range strings.SplitSeq(path, "/") {
			if s == "" || s == "." || s == ".." {
				t.Fatalf("join(%q, %q) = %q", importer, specifier, path)
			}
		}
	})
}
