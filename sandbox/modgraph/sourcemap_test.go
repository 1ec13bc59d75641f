package modgraph

import "testing"

// Which entry is a module's source map (module-worker §2.1: source maps are carried, never imported).
func TestSourceMap(t *testing.T) {
	js := func(path, src string) Module {
		return Module{Path: path, MediaType: TypeJavaScript, Bytes: []byte(src)}
	}
	sm := func(path string) Module { return Module{Path: path, MediaType: TypeSourceMap, Bytes: []byte(path)} }
	g, err := New("main.js", []Module{
		js("main.js", "x\n//# sourceMappingURL=maps/m.json\n"), sm("maps/m.json"),
		js("plain.js", "x"), sm("plain.js.map"),
		js("dir/up.js", "//# sourceMappingURL=first.map\n//# sourceMappingURL=../maps/m.json"),
		js("out.js", "//# sourceMappingURL=../../etc/passwd"),
		js("inline.js", "//# sourceMappingURL=data:application/json;base64,e30="),
		js("bad.js", "//# sourceMappingURL=main.js"),
		js("root.js", "//# sourceMappingURL=/maps/m.json"),
		{Path: "text.js.map", MediaType: TypeText}, js("text.js", ""),
	})
	if err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]string{"main.js": "maps/m.json", "plain.js": "plain.js.map", "dir/up.js": "maps/m.json", "out.js": "", "inline.js": "",
		"bad.js": "", "root.js": "maps/m.json", "text.js": "", "absent.js": "", "maps/m.json": ""} {
		if got := string(g.SourceMap(path)); got != want {
			t.Errorf("%s: %q, want %q", path, got, want)
		}
	}
}
