package sandbox

import (
	"testing"

	"edged/sandbox/modgraph"
)

// module-worker §2.2: evaluation order and live bindings are those of ECMAScript through cycles, top-level await and
// re-exports; static, re-exporting and dynamic imports of one path are one module; an import() that fails rejects, each
// time, and takes nothing else with it.
func TestModuleGraph(t *testing.T) {
	js := func(path, text string) Module {
		return Module{Path: path, MediaType: modgraph.TypeJavaScript, Bytes: []byte(text)}
	}
	s := newBox(t, Options{})
	v := openVersion(t, s, Spec{Graph: Graph{Entrypoint: "main.js", Modules: []Module{
		js("main.js", `
			import { log } from './lib/log.js';
			import './slow.js';
			import './quick.js';
			import { get, bump } from './lib/a.js';
			import * as again from '/lib/a.js';
			log.push('main');
			const name = (e) => e.name + ':' + e.message;
			export default { async fetch() {
				const before = get();
				bump();
				const late = await import('./late.js');
				return Response.json([log, before, get(), again.count, again.get === get, (await import('./lib/a.js')) === again,
					late.default, late === (await import('./lib/../late.js')), await import('./throws.js').catch(name), await import('./throws.js').catch(name),
					await import('./reexports.js').catch((e) => e.name), typeof globalThis.evaluated]);
			} }`),
		js("lib/log.js", `export const log = []`),
		js("slow.js", `import { log } from './lib/log.js'; log.push('slow begins'); await new Promise((r) => setTimeout(r, 1)); log.push('slow ends')`),
		js("quick.js", `import { log } from './lib/log.js'; log.push('quick')`),
		js("lib/a.js", `import { log } from './log.js'; import { early } from './b.js'; export let count = 0; export const bump = () => { count++ }; export const get = () => early + count; log.push('a')`),
		js("lib/b.js", `import { log } from './log.js'; import { count } from './a.js'; export let early; try { early = 'seen' + count } catch (e) { early = e.name } log.push('b')`),
		js("late.js", `import { count } from './lib/a.js'; import { log } from './lib/log.js'; log.push('late'); export default await Promise.resolve(count)`),
		js("throws.js", `throw new RangeError('at load')`),
		js("reexports.js", `globalThis.evaluated = 1; export * from './m.map'`),
		{Path: "m.map", MediaType: modgraph.TypeSourceMap, Bytes: []byte("{}")},
	}}})
	const want = `[["slow begins","quick","b","a","slow ends","main","late"],"ReferenceError0","ReferenceError1",1,true,true,1,true,` +
		`"RangeError:at load","RangeError:at load","unsupported_media_type","undefined"]`
	for range 2 { // what the handler imported is not there for the next request
		if got := serve(t, v, request()); got.body != want {
			t.Errorf("got  %s\nwant %s", got.body, want)
		}
	}
}
