package sandbox

import (
	"context"
	"errors"
	"os"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"edged/internal/fault"
	"edged/sandbox/event"
)

// wasmFile is a file of testdata/wasm, whose source stands beside it.
func wasmFile(t testing.TB, name string) Module {
	t.Helper()
	b, err := os.ReadFile("testdata/wasm/" + name)
	if err != nil {
		t.Fatal(err)
	}
	return Module{Path: name, MediaType: "application/wasm", Bytes: b}
}

// wasmImports are what all.wasm imports, as a script; log, cell and base are the script's variables.
const wasmImports = `import mod from './all.wasm';
	const log = [], cell = new WebAssembly.Global({ value: 'i32', mutable: true }, 5);
	const imports = () => ({ env: { cell, base: 64, pair: () => [3, 4n], echo: (x) => x,
		log(...args) { log.push(args.map(String).join()); return 1.5; } } });
`

// wasmWorker has all.wasm at hand, instantiated at top level as x.
func wasmWorker(t *testing.T, s *Sandbox, body string) *Version {
	t.Helper()
	return openVersion(t, s, Spec{Graph: graphOf(wasmImports+`const inst = new WebAssembly.Instance(mod, imports()), x = inst.exports;
		const thrown = (f) => { try { return 'no: ' + f() } catch (e) { return (e.constructor.name || e.name) + ': ' + e.message } };
		`+fetcher(body), wasmFile(t, "all.wasm"))})
}

// module-worker §2.1: a WebAssembly module imports as a compiled module; the interface to JavaScript is the standard's. All of it runs
// three times: what is at top level is part of the snapshot, and no invocation sees what another did.
func TestWasm(t *testing.T) {
	for _, isolation := range []Isolation{IsolateRequest, IsolateWorker} {
		s := newBox(t, Options{Isolation: isolation, MaxMemoryBytes: 64 << 20})
		for _, c := range []struct{ name, body, want string }{
			{"module", `return new Response([mod instanceof WebAssembly.Module, mod, Object.isFrozen(x), Object.getPrototypeOf(x)].join())`, "true,[object WebAssembly.Module],true,"},
			{"imports", `return new Response(JSON.stringify(WebAssembly.Module.imports(mod)))`,
				`[{"module":"env","name":"log","kind":"function"},{"module":"env","name":"pair","kind":"function"},{"module":"env","name":"base","kind":"global"},{"module":"env","name":"cell","kind":"global"},{"module":"env","name":"echo","kind":"function"}]`},
			{"exports", `return new Response(JSON.stringify(WebAssembly.Module.exports(mod).slice(0, 3)))`,
				`[{"name":"memory","kind":"memory"},{"name":"table","kind":"table"},{"name":"refs","kind":"table"}]`},
			{"call", `return new Response([x.add(1, 2), x.add('3', { valueOf: () => 4 }), x.add(2 ** 31, 0), x.add(), x.add(1.9, -1.9), x.add(NaN, Infinity), x.add.length, x.add.name].join())`,
				"3,7,-2147483648,0,0,0,2,3"},
			{"no constructor", `return new Response(thrown(() => new x.add(1, 2)))`, "TypeError: not a constructor"},
			{"i64, f32, f64", `log.length = 0; const r = x.callLog(-1, -(2n ** 63n), 0.1, 0.1); return new Response([r, log].join(';'))`, "1.5;-1,-9223372036854775808,0.10000000149011612,0.1"},
			{"i64 is a BigInt", `return new Response([thrown(() => x.callLog(1, 1, 1, 1)), x.swap(1, 2n ** 64n + 5n)].join(';'))`, "TypeError: cannot convert to bigint;5,1"},
			{"several results", `return new Response(String(x.callPair()))`, "5,4"},
			{"references", `const o = { a: 1 }; x.keep(0, o); x.keep(1, undefined);
				return new Response([x.callEcho(o) === o, x.kept(0) === o, x.kept(1), x.callEcho(null), x.callEcho(2), x.refs.get(0) === o, x.refs.length].join())`, "true,true,,,2,true,2"},
			{"memory", `const m = new Uint8Array(x.memory.buffer); m[3] = 9;
				return new Response([new TextDecoder().decode(m.subarray(16, 21)), new TextDecoder().decode(m.subarray(64, 69)), m.length, x.load(0) >>> 24, x.memory.buffer === x.memory.buffer, x.memory instanceof WebAssembly.Memory].join())`,
				"hello,based,65536,9,true,true"},
			{"memory is shared", `const m = new DataView(x.memory.buffer); x.store(100, 0x01020304); m.setInt32(104, 77, true); return new Response([m.getInt32(100, true), x.load(104)].join())`, "16909060,77"},
			{"bulk memory", `x.copy(200, 16, 5); x.fill(205, 33, 3); return new Response(new TextDecoder().decode(new Uint8Array(x.memory.buffer, 200, 8)))`, "hello!!!"},
			{"grow", `const old = x.memory.buffer, a = new Uint8Array(old); a[7] = 8; const r = [x.size(), x.grow(2), x.size(), old.byteLength, a.length, x.memory.buffer.byteLength, new Uint8Array(x.memory.buffer)[7],
				x.memory.grow(1), x.size(), thrown(() => x.memory.grow(100)), x.grow(100), new Uint8Array(x.memory.buffer, 65536).some((b) => b)];
				return new Response(r.join())`, "1,1,3,0,0,196608,8,3,4,RangeError: WebAssembly.Memory.grow: the memory cannot grow that far,-1,false"},
			{"buffer stays", `const b = x.memory.buffer; return new Response([thrown(() => b.transfer()), thrown(() => structuredClone(b, { transfer: [b] }).byteLength), thrown(() => new ReadableStream({ type: 'bytes', start(c) { c.enqueue(new Uint8Array(b)) } })), b.byteLength].join())`,
				"TypeError: the buffer belongs to a WebAssembly.Memory,DOMException: The buffer of a WebAssembly.Memory could not be cloned,TypeError: the buffer belongs to a WebAssembly.Memory,65536"},
			{"globals", `const r = [x.next(), x.next(), x.shared.value, x.fixed.value, x.bump(), cell.value, x.derived()]; x.shared.value = 9n; cell.value = 100; r.push(x.shared.value, x.bump(), thrown(() => { x.fixed.value = 1 })); return new Response(r.join())`,
				"41,42,7,2.5,6,6,64,9,101,TypeError: WebAssembly.Global: the value of an immutable global cannot be set"},
			{"table", `const r = [x.apply(0, 7, 5), x.apply(1, 7, 5), x.table.get(0) === x.add, x.table.get(2), x.table.length, thrown(() => x.apply(2, 1, 1)), thrown(() => x.table.get(4))];
				x.table.set(2, x.sub); r.push(x.apply(2, 7, 5), thrown(() => x.table.set(0, () => 1))); x.putMul(3); r.push(x.apply(3, 7, 5), x.table.get(3)(4, 5), x.table.get(3) === x.table.get(3), x.table.get(3).name); return new Response(r.join())`,
				"12,2,true,,4,RuntimeError: invalid table access,RangeError: WebAssembly.Table.get: the index is outside the table,2,TypeError: WebAssembly: the value is neither null nor an exported function,35,20,true,5"},
			{"table grows", `const r = [x.growTable(4), x.table.length, x.apply(7, 2, 3), x.growTable(100), x.table.grow(2, x.sub), x.apply(9, 5, 1), thrown(() => x.table.grow(100))]; return new Response(r.join())`,
				"4,8,5,-1,8,4,RangeError: WebAssembly.Table.grow: the table cannot grow that far"},
			{"segments", `x.initData(300); x.initTable(2); const r = [new TextDecoder().decode(new Uint8Array(x.memory.buffer, 300, 5)), x.apply(3, 6, 7)]; x.dropData(); x.dropTable();
				r.push(thrown(() => x.initData(300)), thrown(() => x.initTable(2))); return new Response(r.join())`, "later,42,RuntimeError: out of bounds memory access,RuntimeError: invalid table access"},
			{"traps", `return new Response([thrown(() => x.trap()), thrown(() => x.div(1, 0)), thrown(() => x.div(-(2 ** 31), -1)), thrown(() => x.load(65536)), thrown(() => x.fill(65535, 0, 2)), x.add(1, 1)].join('|'))`,
				"RuntimeError: unreachable|RuntimeError: integer divide by zero|RuntimeError: integer overflow|RuntimeError: out of bounds memory access|RuntimeError: out of bounds memory access|2"},
			{"control flow", `return new Response([x.early(0), x.early(1), x.early(9), x.rec(1000), x.fib(15)].join())`, "-1,107,110,1000,610"},
			{"deep recursion", `return new Response([thrown(() => x.rec(1e6)), x.rec(1000), thrown(() => x.rec(-1)), x.rec(1000)].join())`,
				"RangeError: Maximum call stack size exceeded,1000,RangeError: Maximum call stack size exceeded,1000"},
			{"exception in an import", `const e = new Error('mine'); const i = new WebAssembly.Instance(mod, { env: { ...imports().env, log() { throw e } } }); try { i.exports.callLog(1, 1n, 1, 1) } catch (f) { return new Response([f === e, x.add(1, 2)].join()) }`, "true,3"},
			{"re-entrancy", `let depth = 0; const i = new WebAssembly.Instance(mod, { env: { ...imports().env, log(n) { depth++; return n > 0 ? i.exports.callLog(n - 1, 1n, 1, 1) + 1 : 0 } } }); return new Response([i.exports.callLog(10, 1n, 1, 1), depth, thrown(() => i.exports.callLog(1e6, 1n, 1, 1)), i.exports.callLog(10, 1n, 1, 1)].join())`,
				"10,11,RangeError: Maximum call stack size exceeded,10"},
			{"memory grows and moves in a callback", `let i; const f = () => { i.exports.memory.grow(2); new WebAssembly.Memory({ initial: 40 }); i.exports.memory.grow(4); new Uint32Array(i.exports.memory.buffer)[70000] = 5; return 0 };
				i = new WebAssembly.Instance(mod, { env: { ...imports().env, log: f } }); i.exports.store(0, 1000); return new Response([i.exports.loadAfter(280000), new Uint32Array(i.exports.memory.buffer)[1], thrown(() => i.exports.load(7 * 65536))].join())`, "2005,99,RuntimeError: out of bounds memory access"},
			{"trap in a callback", `const i = new WebAssembly.Instance(mod, { env: { ...imports().env, log() { return x.div(1, 0) } } }); return new Response([thrown(() => i.exports.callLog(1, 1n, 1, 1)), i.exports.add(1, 2)].join())`, "RuntimeError: integer divide by zero,3"},
			{"instances share", `const i = new WebAssembly.Instance(mod, { env: { ...imports().env, log: x.callLog, echo: x.callEcho } }); log.length = 0; return new Response([i.exports.callLog(4, 5n, 6, 7), log, i.exports !== x, i.exports.next(), x.next()].join(';'))`, "1.5;4,5,6,7;true;41;41"},
			{"link errors", `const bad = (o) => thrown(() => new WebAssembly.Instance(mod, { env: { ...imports().env, ...o } })); return new Response([bad({ log: 1 }), bad({ log: x.add }), bad({ cell: 1 }), bad({ base: 1n }), bad({ base: cell }), thrown(() => new WebAssembly.Instance(mod)), thrown(() => new WebAssembly.Instance(mod, {}))].join('|'))`,
				`LinkError: import "env"."log": it is not a function|LinkError: import "env"."log": the function is of another type: i32 i32 -> i32|LinkError: import "env"."cell": it is neither a WebAssembly.Global nor a value of the type|LinkError: import "env"."base": it is neither a WebAssembly.Global nor a value of the type|LinkError: import "env"."base": the global is of another type|TypeError: WebAssembly.Instance: the module has imports and none are given|TypeError: WebAssembly.Instance: the imports have no object env`},
			{"instantiate", `const a = await WebAssembly.instantiate(mod, imports()); return new Response([a instanceof WebAssembly.Instance, a.exports.add(1, 1), a.exports.memory !== x.memory].join())`, "true,2,true"},
			{"objects", `const m = new WebAssembly.Memory({ initial: 2, maximum: 3 }); new Uint8Array(m.buffer)[5] = 6; const r = [m.buffer.byteLength, m.grow(1), new Uint8Array(m.buffer)[5], m.buffer.byteLength, thrown(() => m.grow(1)), String(m)];
				const t = new WebAssembly.Table({ element: 'anyfunc', initial: 2 }, x.add); r.push(t.length, t.get(1) === x.add, t.get(1)(1, 2)); const e = new WebAssembly.Table({ element: 'externref', initial: 1 }); r.push(e.get(0));
				const g = new WebAssembly.Global({ value: 'i64' }, 5n); r.push(g.value, g.valueOf()); return new Response(r.join())`,
				"131072,2,6,196608,RangeError: WebAssembly.Memory.grow: the memory cannot grow that far,[object WebAssembly.Memory],2,true,3,,5,5"},
			{"run-time bytes", `const b = Uint8Array.fromBase64('AGFzbQEAAAABBwFgAn9/AX8DAgEABwcBA2FkZAAACgkBBwAgACABags='); const { module, instance } = await WebAssembly.instantiate(b);
				return new Response([module instanceof WebAssembly.Module, instance.exports.add(2, 3), WebAssembly.validate(b), WebAssembly.validate(b.subarray(1)), (await WebAssembly.compile(b)) !== module, thrown(() => new WebAssembly.Module(new Uint8Array(9)))].join())`,
				"true,5,true,false,true,CompileError: not a WebAssembly module of version 1"},
			{"errors", `const e = new WebAssembly.RuntimeError('x', { cause: 1 }); return new Response([e instanceof Error, e.name, e.cause, String(WebAssembly.LinkError('y')), Object.prototype.toString.call(WebAssembly)].join())`, "true,RuntimeError,1,LinkError: y,[object WebAssembly]"},
		} {
			t.Run(c.name, func(t *testing.T) {
				v := wasmWorker(t, s, c.body)
				for i := range 3 {
					if isolation == IsolateWorker && i > 0 {
						break
					}
					if got := serve(t, v, request()).body; got != c.want {
						t.Fatalf("invocation %d: %q\nwant %q", i, got, c.want)
					}
				}
			})
		}
	}
}

// hostileWasm are bodies of handlers that have bad.wasm instantiated as x, and how the invocation ends.
var hostileWasm = []struct {
	name, body string
	want       *fault.Named // nil: with the answer "ended", if there is time enough
}{
	{"endless loop", `x.spin()`, event.ErrCPU},
	{"endless loop with a condition", `x.spinParam(1)`, event.ErrCPU},
	{"endless loop that is caught", `for (;;) try { x.spin() } catch {} finally { x.spin() }`, event.ErrCPU},
	{"call tree", `x.tree(60)`, event.ErrCPU},
	{"mutual call tree", `x.mutual(60)`, event.ErrCPU},
	{"large copies", `x.copies()`, event.ErrCPU},
	{"large fills", `x.fills()`, event.ErrCPU},
	{"memory to the limit", `if (x.grows() > 1024 || x.grows() < 100) throw 1; return new Response('ended')`, nil},
	{"memory for ever", `x.growsForEver()`, event.ErrCPU},
	{"many memories", `try { const a = []; for (;;) a.push(new WebAssembly.Memory({ initial: 100 })) } catch (e) { return new Response(e instanceof RangeError ? 'ended' : String(e)) }`, nil},
	{"huge memory", `try { new WebAssembly.Memory({ initial: 65536 }) } catch (e) { return new Response(e instanceof RangeError ? 'ended' : String(e)) }`, nil},
	{"table to the limit", `if (x.tables() < 1000) throw 1; return new Response('ended')`, nil},
	{"table fills", `x.tableFills()`, event.ErrCPU},
	{"huge table", `try { new WebAssembly.Table({ element: 'anyfunc', initial: 4e9 }) } catch (e) { return new Response(e instanceof RangeError ? 'ended' : String(e)) }`, nil},
	{"many tables", `try { for (;;) new WebAssembly.Table({ element: 'externref', initial: 10000 }) } catch (e) { return new Response(e instanceof RangeError ? 'ended' : String(e)) }`, nil},
	{"many globals", `try { for (;;) new WebAssembly.Global({ value: 'i32' }) } catch (e) { return new Response(e instanceof RangeError ? 'ended' : String(e)) }`, nil},
	{"many instances", `try { for (;;) new WebAssembly.Instance(bad, env) } catch (e) { return new Response(e instanceof RangeError ? 'ended' : String(e)) }`, nil},
	{"references for ever", `x.refs()`, event.ErrCPU},
	{"deep recursion", `for (let i = 0; i < 5; i++) try { x.recurse(0); throw 1 } catch (e) { if (!(e instanceof RangeError)) throw e } return new Response('ended')`, nil},
	{"deep recursion through JavaScript", `back = () => x.callJS(0); try { x.callJS(0) } catch (e) { return new Response(e instanceof RangeError ? 'ended' : String(e)) }`, nil},
	{"deep recursion at every level", `back = () => { try { x.recurse(0) } catch {} x.callJS(0) }; try { x.callJS(0) } catch (e) { return new Response(e instanceof RangeError ? 'ended' : String(e)) }`, nil},
	{"loop in a callback", `back = () => { for (;;); }; x.callJS(0)`, event.ErrCPU},
	{"callbacks for ever", `back = () => {}; x.callForEver()`, event.ErrCPU},
	{"callbacks that throw", `back = () => { throw 1 }; for (;;) try { x.callForEver() } catch {}`, event.ErrCPU},
	{"start that loops", `new WebAssembly.Instance(loop)`, event.ErrCPU},
	{"start that traps", `const memory = new WebAssembly.Memory({ initial: 1 }); try { new WebAssembly.Instance(start, { env: { memory } }) } catch (e) { const v = new Uint8Array(memory.buffer); return new Response(e instanceof WebAssembly.RuntimeError && v[0] === 100 && v[8] === 42 ? 'ended' : String(e)) }`, nil},
	{"forged objects", `for (const C of [WebAssembly.Memory, WebAssembly.Table, WebAssembly.Global, WebAssembly.Instance, WebAssembly.Module]) for (const o of [Object.create(C.prototype), new Proxy(x.memory, {}), { __proto__: C.prototype }])
		for (const k of ['buffer', 'length', 'value', 'exports']) try { const d = Object.getOwnPropertyDescriptor(C.prototype, k); if (d) { d.get.call(o); throw 'forged' } } catch (e) { if (!(e instanceof TypeError)) throw e } return new Response('ended')`, nil},
	{"memory of JavaScript's", `const a = []; for (;;) a.push(new Uint8Array(1 << 20).fill(1))`, event.ErrMemory},
	{"modules at run time", `const head = new WebAssembly.Module(new Uint8Array([0, 97, 115, 109, 1, 0, 0, 0])); try { for (let i = 0;; i++) new WebAssembly.Module(new Uint8Array([0, 97, 115, 109, 1, 0, 0, 0, 0, 3, 1, 97, i])) } catch (e) { return new Response(e instanceof WebAssembly.CompileError ? 'ended' : String(e)) }`, nil},
}

// module-worker §6, §7: whatever WebAssembly does, it ends within its limit; the next request of the same worker finds the snapshot, and
// a neighbour is served.
func TestHostileWasm(t *testing.T) {
	const cpu, wall = 300 * time.Millisecond, 3 * time.Second
	for _, isolation := range []Isolation{IsolateRequest, IsolateWorker} {
		s := newBox(t, Options{MaxCPU: cpu, MaxWall: wall, MaxMemoryBytes: 32 << 20, Isolation: isolation})
		neighbour := openWorker(t, s, fetcher(`return new Response('fine')`))
		for _, c := range hostileWasm {
			t.Run(c.name, func(t *testing.T) {
				v := openVersion(t, s, Spec{Graph: graphOf(`import bad from './bad.wasm'; import loop from './loop.wasm'; import start from './start.wasm'; let before = 0, back = () => {};
					const env = { env: { js: (n) => back(n) } }, x = new WebAssembly.Instance(bad, env).exports;
					export default { async fetch(request) { if (request.method === 'PUT') return new Response(['clean', before++, new Uint8Array(x.memory.buffer, 0, 65536).reduce((a, b) => a + b), x.memory.buffer.byteLength, x.table.length].join()); before++; `+c.body+` } }`,
					wasmFile(t, "bad.wasm"), wasmFile(t, "loop.wasm"), wasmFile(t, "start.wasm"))})
				inTime(t, cpu, func() {
					var res event.Response
					err := v.Serve(context.Background(), request(), &res)
					switch {
					case c.want != nil && !errors.Is(err, c.want):
						t.Errorf("error %v, want %v", err, c.want)
					case c.want == nil && errors.Is(err, event.ErrCPU): // how much can be done in the time is the machine's affair
					case c.want == nil && err != nil:
						t.Errorf("error %v", err)
					case c.want == nil:
						if b := collect(&res).body; b != "ended" {
							t.Errorf("answered %q", b)
						}
					}
				})
				next := request()
				next.Method = []byte("PUT")
				if got := serve(t, v, next).body; isolation == IsolateRequest && got != "clean,0,0,65536,1" {
					t.Errorf("the next request finds %q", got)
				}
				if got := serve(t, neighbour, request()).body; got != "fine" {
					t.Errorf("the neighbour answers %q", got)
				}
			})
		}
	}
}

// module-worker §2.1: bytes that are no module of WebAssembly are an explicit failure, at deploy and for import().
func TestWasmInvalid(t *testing.T) {
	s := newBox(t, Options{})
	bad := Module{Path: "bad.wasm", MediaType: "application/wasm", Bytes: []byte("\x00asm\x01\x00\x00\x00\x0a\x01\x01")}
	_, err := s.Inspect(context.Background(), graphOf(`import './bad.wasm'; export default { fetch() {} }`, bad), []string{"fetch"})
	if fault.NameOf(err) != "module_syntax_error" || !strings.Contains(fault.Detail(err), `module "bad.wasm" cannot be compiled as WebAssembly: `) {
		t.Errorf("static import: %v", err)
	}
	v := openVersion(t, s, Spec{Graph: graphOf(fetcher(`try { await import('./bad.wasm') } catch (e) { return new Response(e.name) }`), bad)})
	if got := serve(t, v, request()).body; got != "module_syntax_error" {
		t.Errorf("import(): %s", got)
	}
	v = openVersion(t, s, Spec{Graph: graphOf(fetcher(`const { default: m } = await import('./loop.wasm'); return new Response(m)`), wasmFile(t, "loop.wasm"))})
	if got := serve(t, v, request()).body; got != "[object WebAssembly.Module]" {
		t.Errorf("import() of a good one: %s", got)
	}
}

// module-worker §7: sandboxes of a version share its compiled modules and nothing else, and a version that is retired while they run takes
// them with it.
func TestWasmTogether(t *testing.T) {
	s := newBox(t, Options{MaxMemoryBytes: 32 << 20})
	for range 3 {
		v := wasmWorker(t, s, `const n = Number(new URL(request.url).search.slice(1)); x.store(400, n); x.bump(); const i = (await WebAssembly.instantiate(mod, imports())).exports;
			await new Promise((r) => setTimeout(r, 1)); return new Response([x.load(400) === n, x.bump(), x.next(), i.next(), x.fib(10)].join())`)
		var wg sync.WaitGroup
		for k := range 6 {
			wg.Go(func() {
				for range 10 {
					req := request()
					req.URL = []byte("http://h/?" + strconv.Itoa(k))
					if got := serve(t, v, req).body; got != "true,7,41,41,55" {
						t.Errorf("answered %q", got)
					}
				}
			})
		}
		wg.Wait()
		if err := v.Retire(context.Background()); err != nil {
			t.Error(err)
		}
	}
}

func benchmarkWasm(b *testing.B, body string) {
	s := newBox(b, Options{MaxMemoryBytes: 32 << 20, MaxCPU: time.Minute, MaxWall: time.Minute})
	v := openVersion(b, s, Spec{Graph: graphOf(wasmImports+`const x = new WebAssembly.Instance(mod, imports()).exports; const now = () => performance.now();
		`+fetcher(body), wasmFile(b, "all.wasm"))})
	req := request()
	for b.Loop() {
		serve(b, v, req)
	}
}

// What a request costs that uses an instance of the snapshot, and one that does not.
func BenchmarkWasmRequest(b *testing.B) {
	b.Run("none", func(b *testing.B) { benchmarkWasm(b, `return new Response('x')`) })
	b.Run("snapshot", func(b *testing.B) { benchmarkWasm(b, `x.add(1, 2); return new Response('x')`) })
	b.Run("instance", func(b *testing.B) {
		benchmarkWasm(b, `new WebAssembly.Instance(mod, imports()); return new Response('x')`)
	})
	b.Run("1000-calls", func(b *testing.B) {
		benchmarkWasm(b, `for (let i = 0; i < 1000; i++) x.add(i, 2); return new Response('x')`)
	})
	b.Run("1000-callbacks", func(b *testing.B) {
		benchmarkWasm(b, `for (let i = 0; i < 1000; i++) x.callEcho(null); return new Response('x')`)
	})
	b.Run("fib-27", func(b *testing.B) { benchmarkWasm(b, `x.fib(27); return new Response('x')`) })
}

// module-worker §7: after whatever WebAssembly did, a sandbox is byte for byte its image again, but for the state of Math.random.
func TestWasmResetIsExact(t *testing.T) {
	s := newBox(t, Options{MaxCPU: 200 * time.Millisecond, MaxMemoryBytes: 16 << 20})
	v := openVersion(t, s, Spec{Graph: graphOf(wasmImports+`import bad from './bad.wasm'; let back = () => {};
		const a = new WebAssembly.Instance(mod, imports()).exports, x = new WebAssembly.Instance(bad, { env: { js: (n) => back(n) } }).exports; a.memory.buffer; a.keep(0, {}); a.putMul(2);
		const work = { all() { a.grow(3); a.fill(0, 7, 200000); a.bump(); a.next(); a.putMul(0); a.growTable(3); a.keep(1, a); new Uint8Array(a.memory.buffer).fill(3) },
			spin: () => x.spin(), grows: () => x.grows(), recurse() { try { x.recurse(0) } catch {} }, callback() { back = () => { throw 1 }; try { x.callJS(0) } catch {} x.spin() },
			fresh() { for (let i = 0; i < 5; i++) new WebAssembly.Instance(mod, imports()); new WebAssembly.Memory({ initial: 20 }) } };
		export default { fetch(request) { work[new URL(request.url).search.slice(1)](); return new Response('done') } }`, wasmFile(t, "all.wasm"), wasmFile(t, "bad.wasm"))})
	image, err := s.engine.Clone(v.image)
	if err != nil {
		t.Fatal(err)
	}
	defer image.Close()
	size := uint32(v.image.MemoryBytes())
	want, _ := image.Window(0, size)
	for _, what := range []string{"all", "spin", "grows", "recurse", "callback", "fresh", "all"} {
		req := request()
		req.URL = []byte("http://h/?" + what)
		var res event.Response
		_ = v.Serve(context.Background(), req, &res)
		v.mu.Lock()
		if len(v.ready) != 1 {
			t.Fatalf("%s: %d sandboxes are ready", what, len(v.ready))
		}
		got, ok := v.ready[0].in.Window(0, size)
		v.mu.Unlock()
		var differ []int
		for i := range want {
			if ok && got[i] != want[i] {
				differ = append(differ, i)
			}
		}
		if !ok || len(differ) > 0 && differ[len(differ)-1]-differ[0] >= 8 {
			t.Errorf("%s: %d bytes differ, from %d on", what, len(differ), append(differ, -1)[0])
		}
	}
}
