package deploy

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"edged/cmd/edged/manifest"
	"edged/internal/testkit"
)

func TestMain(m *testing.M) { testkit.Main(m) }

// lay writes files below dir.
func lay(t *testing.T, dir string, files map[string]string) string {
	t.Helper()
	for name, content := range files {
		path := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

var project = map[string]string{
	"src/index.ts": `
import { greet, type Name } from "./greet";
import dep from "dep";
import page from "./page.html";
import bytes from "./b in.bin";
import data from "./data.json";
import wasm from "./m.wasm";
import again from "./m.wasm?module";
const name: Name = "you";
export default { async fetch(request: Request) { return new Response(greet(name) + dep + page + bytes.byteLength + data.n + wasm + again + process.env.NODE_ENV); } };
`,
	"src/greet.ts":                  `export type Name = string; export const greet = (n: Name) => "héllo " + n;`,
	"src/page.html":                 "<p>é</p>",
	"src/b in.bin":                  "\x00\xff",
	"src/data.json":                 `{"n": 41}`,
	"src/m.wasm":                    "\x00asm\x01\x00\x00\x00",
	"node_modules/dep/package.json": `{"name":"dep","exports":{".":{"worker":"./worker.js","node":"./node.js","default":"./other.js"}}}`,
	"node_modules/dep/worker.js":    `export default "dep for workers";`,
	"node_modules/dep/node.js":      `export default require("node:fs");`,
	"node_modules/dep/other.js":     `export default "dep for others";`,
}

func bundle(t *testing.T, dir, main string, handlers ...string) (*FileSet, error) {
	t.Helper()
	set, _, err := Bundle(t.Context(), dir, filepath.Join(dir, main), handlers)
	return set, err
}

// worker-bundle §2 and module-worker §2.1: one module with its map, text and bytes beside it as modules of their own.
func TestBundle(t *testing.T) {
	set, err := bundle(t, lay(t, t.TempDir(), project), "src/index.ts", "fetch")
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	text := map[string]string{}
	for _, f := range set.Files {
		got = append(got, f.Path+" "+f.MediaType)
		text[f.Path] = string(f.content)
	}
	want := []string{"main.js application/javascript+module", "main.js.map application/source-map+json",
		"modules/06eb7d6a69ee-b_in.bin application/octet-stream", "modules/5229bddeb25c-page.html text/plain", "modules/93a44bbb96c7-m.wasm application/wasm"}
	if !slices.Equal(got, want) {
		t.Errorf("files %q\nwant  %q", got, want)
	}
	for _, want := range []string{`from "./modules/5229bddeb25c-page.html"`, `from "./modules/06eb7d6a69ee-b_in.bin"`, `from "./modules/93a44bbb96c7-m.wasm"`, "héllo", "dep for workers", "41", `"production"`, "export {"} {
		if !strings.Contains(text["main.js"], want) {
			t.Errorf("main.js lacks %s:\n%s", want, text["main.js"])
		}
	}
	for _, unwanted := range []string{"dep for others", "node:fs", ": Name", "sourceMappingURL"} {
		if strings.Contains(text["main.js"], unwanted) {
			t.Errorf("main.js has %s", unwanted)
		}
	}
	if m := text["main.js.map"]; !strings.Contains(m, `"src/index.ts"`) || strings.Contains(m, "sourcesContent") {
		t.Errorf("source map %s", m)
	}
}

// The same sources give the same bytes wherever they lie; another byte gives another digest.
func TestBundleIsDeterministic(t *testing.T) {
	first, err := bundle(t, lay(t, t.TempDir(), project), "src/index.ts", "fetch")
	if err != nil {
		t.Fatal(err)
	}
	for range 3 {
		again, err := bundle(t, lay(t, t.TempDir(), project), "src/index.ts", "fetch")
		if err != nil || again.Digest() != first.Digest() {
			t.Fatalf("digest %s, want %s (%v)", again.Digest(), first.Digest(), err)
		}
	}
	dir := lay(t, lay(t, t.TempDir(), project), map[string]string{"src/page.html": "<p>e</p>"})
	if other, err := bundle(t, dir, "src/index.ts", "fetch"); err != nil || other.Digest() == first.Digest() {
		t.Errorf("another text module, the same digest (%v)", err)
	}
}

// Whatever is wrong in the sources is told with file and line.
func TestBundleFaults(t *testing.T) {
	for _, c := range []struct{ name, source, want string }{
		{"syntax", "export default {\n  fetch( {\n", "src/i.ts:3: "},
		{"unresolved", "\nimport x from 'gone';\nexport default { x };", `src/i.ts:2: Could not resolve "gone"`},
		{"node built-in", "import fs from 'node:fs';\nexport default { fs };", `src/i.ts:1: Could not resolve "node:fs"`},
		{"no default export", "export const fetch = 1;", "src/i.ts: the module has no default export"},
		{"css", "\n\nimport './a.css';\nexport default {};", "src/i.ts:3: style sheets cannot"},
		{"text is not UTF-8", "import t from './bad.txt';\nexport default { t };", "src/i.ts:1: "},
		{"text is required", "const t = require('./ok.txt');\nexport default { t };", "src/i.ts:1: text, bytes and WebAssembly can be imported, not required"},
		{"text with attributes", "import t from './ok.txt' with { type: 'text' };\nexport default { t };", "src/i.ts:1: text, bytes and WebAssembly are imported without attributes"},
		{"text is absent", "\nimport t from './gone.txt';\nexport default { t };", `src/i.ts:2: Could not resolve "./gone.txt"`},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := lay(t, t.TempDir(), map[string]string{"src/i.ts": c.source, "src/bad.txt": "\xff", "src/ok.txt": "", "src/w.wasm": "", "src/a.css": ""})
			_, err := bundle(t, dir, "src/i.ts", "fetch")
			var faults manifest.Faults
			if !errors.As(err, &faults) {
				t.Fatalf("error %v", err)
			}
			if got := strings.ReplaceAll(err.Error(), dir+"/", ""); !strings.HasPrefix(got, c.want) {
				t.Errorf("got  %s\nwant %s", got, c.want)
			}
		})
	}
}

// node-surface §6: the entry has exactly the declared handlers, whatever the source's default export is.
func TestEntryProjectsHandlers(t *testing.T) {
	got := entrySource("./index.ts", []string{"fetch", "queue"})
	want := `import source from "./index.ts";
const handlers = {};
if (typeof source?.fetch === "function") handlers.fetch = (event, env, ctx) => source.fetch(event, env, ctx);
if (typeof source?.queue === "function") handlers.queue = (event, env, ctx) => source.queue(event, env, ctx);
export default handlers;
`
	if got != want {
		t.Errorf("got %s", got)
	}
	dir := lay(t, t.TempDir(), map[string]string{"i.js": "globalThis.ran = 1;\nexport default {};"})
	set, err := bundle(t, dir, "i.js")
	if err != nil || !strings.Contains(string(set.Files[0].content), "globalThis.ran") {
		t.Errorf("a worker without handlers keeps its module: %v", err)
	}
}

// worker-deployment §1, node-surface §6: what --weight makes of a distribution.
func TestNext(t *testing.T) {
	for _, c := range []struct {
		name    string
		current []Share
		points  int
		want    string
	}{
		{"all, first", nil, all, "[{new 10000}]"},
		{"all, instead", []Share{{"a", 9000}, {"b", 1000}}, all, "[{new 10000}]"},
		{"part of nothing", nil, 500, "nothing is deployed yet"},
		{"beside one", []Share{{"a", all}}, 500, "[{a 9500} {new 500}]"},
		{"more of it", []Share{{"a", 9500}, {"new", 500}}, 2500, "[{a 7500} {new 2500}]"},
		{"in place of a trial", []Share{{"trial", 500}, {"a", 9500}}, 500, "[{a 9500} {new 500}]"},
		{"alone already", []Share{{"new", all}}, 500, "[{new 10000}]"},
		{"tie", []Share{{"a", 5000}, {"b", 5000}}, 500, "several versions have the same weight"},
	} {
		got, err := next(c.current, "new", c.points)
		text := fmt.Sprint(got)
		if err != nil {
			text = err.Error()
		}
		if !strings.Contains(text, c.want) {
			t.Errorf("%s: %s, want %s", c.name, text, c.want)
		}
	}
}
