package modgraph

import (
	"bytes"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"edged/internal/fault"
)

func graph(t *testing.T, modules ...Module) *Graph {
	t.Helper()
	g, err := New("main.js", append([]Module{{Path: "main.js", MediaType: TypeJavaScript}}, modules...))
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// module-worker §2.2: the specifier shapes that are followed and those that are refused.
func TestResolve(t *testing.T) {
	g := graph(t,
		Module{Path: "lib/a.js", MediaType: TypeJavaScript},
		Module{Path: "lib/deep/b.js", MediaType: TypeJavaScript},
		Module{Path: "lib/%61.js", MediaType: TypeJavaScript},
		Module{Path: "note.txt", MediaType: TypeText},
		Module{Path: "raw", MediaType: TypeBytes},
		Module{Path: "main.js.map", MediaType: TypeSourceMap},
		Module{Path: "m.wasm", MediaType: TypeWasm},
	)
	for _, c := range []struct{ importer, specifier, want string }{
		{"main.js", "./lib/a.js", "lib/a.js"},
		{"main.js", "/lib/a.js", "lib/a.js"},
		{"lib/a.js", "./deep/b.js", "lib/deep/b.js"},
		{"lib/deep/b.js", "../a.js", "lib/a.js"},
		{"lib/deep/b.js", "../../main.js", "main.js"},
		{"lib/deep/b.js", "./../.././lib/a.js", "lib/a.js"},
		{"lib/deep/b.js", "/main.js", "main.js"},
		{"main.js", "./note.txt", "note.txt"},
		{"main.js", "./raw", "raw"},
		{"main.js", "./lib/%61.js", "lib/%61.js"}, // escapes are not decoded

		{"main.js", "lib/a.js", "module_not_found"},
		{"main.js", "node:fs", "module_not_found"},
		{"main.js", "https://example.test/a.js", "module_not_found"},
		{"main.js", "data:text/javascript,1", "module_not_found"},
		{"main.js", "", "module_not_found"},
		{"main.js", ".", "module_not_found"},
		{"main.js", "./", "module_not_found"},
		{"main.js", "/", "module_not_found"},
		{"main.js", "../main.js", "module_not_found"},
		{"main.js", "/../main.js", "module_not_found"},
		{"main.js", ".//lib/a.js", "module_not_found"},
		{"main.js", "//lib/a.js", "module_not_found"},
		{"main.js", `.\lib\a.js`, "module_not_found"},
		{"main.js", "./lib/a.js?x", "module_not_found"},
		{"main.js", "./lib/a.js#x", "module_not_found"},
		{"main.js", "./lib/a", "module_not_found"},
		{"main.js", "./lib", "module_not_found"},
		{"main.js", "./LIB/a.js", "module_not_found"},
		{"main.js", "./" + strings.Repeat("a/../", 5000) + "main.js", "module_not_found"},
		{"main.js", "./main.js.map", "unsupported_media_type"},
		{"main.js", "./m.wasm", "m.wasm"},
	} {
		got, err := g.Resolve(c.importer, c.specifier)
		if err != nil {
			got = fault.NameOf(err)
		}
		if got != c.want {
			t.Errorf("Resolve(%q, %.60q) = %q, want %q", c.importer, c.specifier, got, c.want)
		}
	}
}

// module-worker §2.2 and worker-version §3: an unknown media type is reported before a missing entrypoint.
func TestNewPrecedence(t *testing.T) {
	js := Module{Path: "main.js", MediaType: TypeJavaScript}
	for _, c := range []struct {
		name, entry string
		modules     []Module
		want        error
	}{
		{"media type before entrypoint", "gone.js", []Module{js, {Path: "x", MediaType: "application/json"}}, ErrUnsupported},
		{"entrypoint missing", "gone.js", []Module{js}, ErrNotFound},
		{"entrypoint is text", "t", []Module{js, {Path: "t", MediaType: TypeText}}, ErrUnsupported},
		{"no modules", "main.js", nil, ErrNotFound},
		{"twice", "main.js", []Module{js, js}, ErrNotFound},
		{"media type is exact", "main.js", []Module{js, {Path: "t", MediaType: "text/plain;charset=utf-8"}}, ErrUnsupported},
		{"sound", "main.js", []Module{js, {Path: "m.wasm", MediaType: TypeWasm}, {Path: "m", MediaType: TypeSourceMap}}, nil},
	} {
		if _, err := New(c.entry, c.modules); !errors.Is(err, c.want) {
			t.Errorf("%s: error %v, want %v", c.name, err, c.want)
		}
	}
}

// module-worker §2.1: text is strictly valid UTF-8, and what the literal holds is exactly the text.
func TestLoad(t *testing.T) {
	text := "a\"b\\c\n\r\u2028\u2029\x00\x7f</script>é😀\ufeff`${x}"
	g := graph(t, Module{Path: "t", MediaType: TypeText, Bytes: []byte(text)},
		Module{Path: "bad", MediaType: TypeText, Bytes: []byte("a\xffb")},
		Module{Path: "bad.js", MediaType: TypeJavaScript, Bytes: []byte("'\xc3'")},
		Module{Path: "surrogate", MediaType: TypeText, Bytes: []byte("\xed\xa0\x80")},
		Module{Path: "b", MediaType: TypeBytes, Bytes: []byte{0, 255, 10}},
		Module{Path: "w", MediaType: TypeWasm, Bytes: []byte("asm")},
		Module{Path: "map", MediaType: TypeSourceMap})
	if src, err := g.Load("w"); err != nil || string(src) != "export default import.meta.module;" || string(g.Wasm("w")) != "asm" || g.Wasm("b") != nil {
		t.Errorf("WebAssembly source = %s, %v", src, err)
	}
	src, err := g.Load("t")
	if err != nil {
		t.Fatal(err)
	}
	literal := bytes.TrimSuffix(bytes.TrimPrefix(src, []byte("export default ")), []byte(";"))
	var got string
	if err := json.Unmarshal(bytes.ReplaceAll(literal, []byte(`\x`), []byte(`\u00`)), &got); err != nil || got != text {
		t.Errorf("text literal %s reads as %q (%v), want %q", literal, got, err, text)
	}
	if src, err := g.Load("b"); err != nil || string(src) != `export default Uint8Array.fromBase64("AP8K").buffer;` {
		t.Errorf("bytes source = %s, %v", src, err)
	}
	for path, want := range map[string]error{"bad": ErrSyntax, "bad.js": ErrSyntax, "surrogate": ErrSyntax, "map": ErrUnsupported, "gone": ErrNotFound} {
		if _, err := g.Load(path); !errors.Is(err, want) {
			t.Errorf("Load(%q): error %v, want %v", path, err, want)
		}
	}
}

// Two graphs that differ in any part, or in where a part ends, have different digests.
func TestDigest(t *testing.T) {
	mk := func(path, media, text string) [32]byte {
		g := graph(t, Module{Path: path, MediaType: media, Bytes: []byte(text)})
		return g.Digest()
	}
	seen := map[[32]byte]string{}
	for _, c := range [][3]string{{"a", TypeText, "x"}, {"ax", TypeText, ""}, {"a", TypeBytes, "x"}, {"a", TypeText, "y"}} {
		d := mk(c[0], c[1], c[2])
		if was, dup := seen[d]; dup {
			t.Errorf("%v and %s have one digest", c, was)
		}
		seen[d] = c[0] + c[1] + c[2]
	}
}
