package sandbox

import (
	"strings"
	"testing"

	"edged/sandbox/modgraph"
)

// Stacks in the log name the places that the author wrote, by the source maps of the bundle; without a usable map, and in
// lines that are not errors, they stay as they are.
func TestStacksAreMapped(t *testing.T) {
	const source = `function fail() {
  throw new Error('here');
}
console.log(new Error('plain'));
export default { async fetch() { console.error(new Error('shown')); fail(); } }
//# sourceMappingURL=maps/app.json`
	for _, c := range []struct{ name, mapping, want string }{
		{"mapped", `{"version":3,"sourceRoot":"../src","sources":["app.ts"],"mappings":";YASI"}`, "at fail (../src/app.ts:10:5)"},
		{"broken", `{"version":3`, "at fail (lib/main.js:2:13)"},
	} {
		var l logs
		s := newBox(t, Options{Console: l.add})
		v := openVersion(t, s, Spec{Graph: Graph{Entrypoint: "lib/main.js", Modules: []modgraph.Module{
			{Path: "lib/main.js", MediaType: modgraph.TypeJavaScript, Bytes: []byte(source)},
			{Path: "lib/maps/app.json", MediaType: modgraph.TypeSourceMap, Bytes: []byte(c.mapping)},
		}}})
		for range 2 {
			if err := serveErr(v); err == nil {
				t.Fatal("the handler did not fail")
			}
		}
		got := l.String()
		if strings.Count(got, c.want) != 2 || !strings.Contains(got, "at fetch (lib/main.js:5:") {
			t.Errorf("%s: log lacks %q twice:\n%s", c.name, c.want, got)
		}
	}
}

// import.meta.url is a URL that others can be resolved by, whatever is in the path; import() of what is not there rejects by
// the name of the contract (module-worker §2.2).
func TestImportMeta(t *testing.T) {
	s := newBox(t, Options{})
	v := openVersion(t, s, Spec{Graph: Graph{Entrypoint: "a b/ü#?.js", Modules: []modgraph.Module{
		{Path: "a b/ü#?.js", MediaType: modgraph.TypeJavaScript, Bytes: []byte(`
			const name = (e) => e.name;
			export default { async fetch() {
				return Response.json([import.meta.url, new URL('../x', import.meta.url).pathname, await import('./none.js').catch(name), await import('./m.map').catch(name), await import('./bad.js').catch(name), Object.keys(import.meta).join()]);
			} }`)},
		{Path: "a b/m.map", MediaType: modgraph.TypeSourceMap},
		{Path: "a b/bad.js", MediaType: modgraph.TypeJavaScript, Bytes: []byte("export default ]")},
	}}})
	got := serve(t, v, request())
	if want := `["file:///a%20b/%C3%BC%23%3F.js","/x","module_not_found","unsupported_media_type","SyntaxError","url"]`; got.body != want {
		t.Errorf("got %s\nwant %s", got.body, want)
	}
}
