package sandbox

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"edged/internal/fault"
	"edged/sandbox/binding"
	"edged/sandbox/event"
)

// module-worker §2: what a graph may hold and how its failures are called; worker-version §3: declared and exported
// handlers are equal.
func TestInspect(t *testing.T) {
	s := newBox(t, Options{MaxCPU: 2 * time.Second, MaxWall: 3 * time.Second})
	const ok = `export default { fetch() {} }`
	mod := func(path, media, text string) Module {
		return Module{Path: path, MediaType: media, Bytes: []byte(text)}
	}
	jsMod := func(path, text string) Module { return mod(path, "application/javascript+module", text) }
	for _, c := range []struct {
		name     string
		main     string
		more     []Module
		declared []string
		want     string // exported handlers, or the error's name
	}{
		{"fetch", ok, nil, []string{"fetch"}, "fetch"},
		{"all in any order", `export default { queue() {}, scheduled: async () => {}, fetch: class {} }`, nil, []string{"scheduled", "queue", "fetch"}, "fetch scheduled queue"},
		{"none", `export default {}`, nil, nil, ""},
		{"null prototype", `export default Object.assign(Object.create(null), { fetch() {} })`, nil, []string{"fetch"}, "fetch"},
		{"other members are ignored", `export default { fetch() {}, email() {}, x: 1 }; export class Room {}`, nil, []string{"fetch"}, "fetch"},
		{"cycle, live binding", `import { b } from './b.js'; export let a = 1; export default { fetch: b() === undefined ? undefined : () => {} }`,
			[]Module{jsMod("b.js", `import { a } from './main.js'; export function b() { try { return a } catch (e) { return e.name === 'ReferenceError' ? 1 : undefined } }`)}, []string{"fetch"}, "fetch"},
		{"top-level await", `const x = await Promise.resolve(1); await new Promise(r => setTimeout(r, 5)); export default { fetch() {} }`, nil, []string{"fetch"}, "fetch"},
		{"text and bytes", `import t from './t'; import b from './b'; if (t !== 'h\u00e9\n"' || !(b instanceof ArrayBuffer) || String(new Uint8Array(b)) !== '0,255') throw 1; export default {}`,
			[]Module{mod("t", "text/plain", "hé\n\""), mod("b", "application/octet-stream", "\x00\xff")}, nil, ""},
		{"wasm that nobody imports", `export default {}`, []Module{mod("m.wasm", "application/wasm", "\x00")}, nil, ""},

		{"syntax", `export default {`, nil, nil, "module_syntax_error"},
		{"syntax in an import", `import './b.js'; export default {}`, []Module{jsMod("b.js", `let let = 1`)}, nil, "module_syntax_error"},
		{"missing export", `import { gone } from './b.js'; export default {}`, []Module{jsMod("b.js", ``)}, nil, "module_syntax_error"},
		{"not UTF-8", "export default {} // \xff", nil, nil, "module_syntax_error"},
		{"bad text", `import './t'; export default {}`, []Module{mod("t", "text/plain", "\xff")}, nil, "module_syntax_error"},
		{"missing import", `import './gone.js'; export default {}`, nil, nil, "module_not_found"},
		{"missing import deeper", `import './b.js'; export default {}`, []Module{jsMod("b.js", `export * from './gone.js'`)}, nil, "module_not_found"},
		{"bare import", `import 'node:fs'; export default {}`, nil, nil, "module_not_found"},
		{"source map import", `import './m'; export default {}`, []Module{mod("m", "application/source-map+json", "{}")}, nil, "unsupported_media_type"},
		{"wasm that is none", `import './m'; export default {}`, []Module{mod("m", "application/wasm", "")}, nil, "module_syntax_error"},
		{"wasm", `import m from './m'; if (!(m instanceof WebAssembly.Module)) throw 1; export default {}`, []Module{mod("m", "application/wasm", "\x00asm\x01\x00\x00\x00")}, nil, ""},
		{"JSON module", `export default {}`, []Module{mod("m", "application/json", "{}")}, nil, "unsupported_media_type"},
		{"throws", `throw new Error('at load')`, nil, nil, "module_evaluation_error"},
		{"rejects", `await Promise.reject(1); export default {}`, nil, nil, "module_evaluation_error"},
		{"never settles", `await new Promise(() => {}); export default {}`, nil, nil, "module_evaluation_error"},
		{"waits too long", `await new Promise(r => setTimeout(r, 1e6)); export default {}`, nil, nil, "wall_exceeded"},
		{"loops", `for (;;) {}`, nil, nil, "cpu_exceeded"},
		{"eats memory", `const a = []; for (;;) a.push(new Uint8Array(1 << 20).fill(1))`, nil, nil, "memory_exceeded"},
		{"no default", `export const fetch = () => {}`, nil, nil, "handler_not_exported"},
		{"default is a function", `export default () => {}`, nil, nil, "handler_not_exported"},
		{"default is a class", `export default class { static fetch() {} }`, nil, nil, "handler_not_exported"},
		{"default is an instance", `export default new (class { fetch() {} })`, nil, []string{"fetch"}, "handler_not_exported"},
		{"default is an array", `export default []`, nil, nil, "handler_not_exported"},
		{"declared, missing", `export default {}`, nil, []string{"fetch"}, "handler_not_exported"},
		{"exported, undeclared", ok, nil, nil, "handler_not_exported"},
		{"not callable", `export default { fetch: 1 }`, nil, []string{"fetch"}, "handler_not_exported"},
		{"accessor, not called", `export default { get fetch() { throw new Error('called') } }`, nil, []string{"fetch"}, "handler_not_exported"},
		{"accessor with a polluted prototype", `Object.prototype.value = () => {}; export default { get fetch() { throw new Error('called') } }`, nil, []string{"fetch"}, "handler_not_exported"},
		{"inherited", `export default Object.create({ fetch() {} })`, nil, []string{"fetch"}, "handler_not_exported"},
		{"proxy whose prototype loops", `export default new Proxy({}, { getPrototypeOf() { for (;;) {} } })`, nil, nil, "cpu_exceeded"},
	} {
		exported, err := s.Inspect(context.Background(), graphOf(c.main, c.more...), c.declared)
		got := strings.Join(exported, " ")
		if err != nil {
			got = fault.NameOf(err)
		}
		if got != c.want {
			t.Errorf("%s: got %q (%v), want %q", c.name, got, err, c.want)
		}
	}
	if live, _ := s.Instances(); live != 0 {
		t.Errorf("%d sandboxes are left", live)
	}
}

// The author of a bundle learns what is wrong and where; ErrHandler comes with what is exported.
func TestInspectTellsTheAuthor(t *testing.T) {
	s := newBox(t, Options{})
	_, err := s.Inspect(context.Background(), graphOf("\n\nexport default {{"), nil)
	if d := fault.Detail(err); !strings.Contains(d, "main.js:3") {
		t.Errorf("syntax error: %q does not say where", d)
	}
	_, err = s.Inspect(context.Background(), graphOf("\nthrow new RangeError('too far')"), nil)
	if d := fault.Detail(err); !strings.Contains(d, "RangeError: too far") || !strings.Contains(d, "main.js:2") {
		t.Errorf("evaluation error: %q does not say what and where", d)
	}
	exported, err := s.Inspect(context.Background(), graphOf(`export default { fetch() {} }`), []string{"queue"})
	if err == nil || strings.Join(exported, " ") != "fetch" {
		t.Errorf("got %v, %v", exported, err)
	}
}

// module-worker §7: modules are evaluated without env, bindings and network, when they are looked at and when a version is
// made of them. What asks for more is refused there, and the load fails if it does not take that; a request then has all.
func TestLoadReachesNothing(t *testing.T) {
	var outside, inside atomic.Int32
	answer := func(res *event.Response) error {
		res.Status, res.Null = 204, true
		return nil
	}
	s := newBox(t, Options{Fetch: funcFetcher(func(_ context.Context, _ *binding.Outbound, res *event.Response) error {
		outside.Add(1)
		return answer(res)
	})})
	service := funcService(func(_ context.Context, _ *event.Request, res *event.Response) error {
		inside.Add(1)
		return answer(res)
	})
	const before = `
		const names = ['env', 'PLAIN', 'KEY', 'OTHER', 'process'];
		const seen = [...names.filter((n) => n in globalThis || n in import.meta), ...Reflect.ownKeys(globalThis).filter((n) => /plain|hush/.test(String(globalThis[n])))];
		const handlers = { async fetch(request, env) { return new Response([seen.join('+'),
			(await fetch('http://outside.test/')).status, (await env.OTHER.fetch('http://other.test/')).status, Object.keys(env)].join()) } };
		export { handlers as default };
		`
	for i, c := range []struct{ name, code, want string }{
		{"looks around", ``, "fetch"},
		{"fetch that is awaited", `await fetch('http://outside.test/')`, "module_evaluation_error"},
		{"fetch in a timer", `await new Promise((done, fail) => setTimeout(() => fetch('http://outside.test/').then(done, fail), 1))`, "module_evaluation_error"},
		{"fetch in another module", `await import('./calls.js')`, "module_evaluation_error"},
		{"fetch of a request with a body", `await fetch(new Request('http://outside.test/', { method: 'POST', body: 'all it knows' }))`, "module_evaluation_error"},
		{"fetch whose refusal it takes", `if (await fetch('http://outside.test/').catch((e) => e.name) !== 'TypeError') throw new Error('not refused')`, "fetch"},
		{"fetch that nobody awaits", `fetch('http://outside.test/').catch(() => {})`, "fetch"},
		{"its own handler", `await handlers.fetch(new Request('http://worker.test/'), {})`, "module_evaluation_error"},
	} {
		graph := graphOf(before+c.code, Module{Path: "calls.js", MediaType: "application/javascript+module", Bytes: []byte(`export default await fetch('http://outside.test/')`)})
		exported, err := s.Inspect(context.Background(), graph, []string{"fetch"})
		got := strings.Join(exported, " ")
		if err != nil {
			got = fault.NameOf(err)
		}
		if got != c.want {
			t.Errorf("%s: looked at: %q (%v), want %q", c.name, got, err, c.want)
		}
		v, err := s.Open(context.Background(), Spec{UID: fmt.Sprint("reaches-nothing-", i), Handlers: []string{"fetch"}, Graph: graph,
			Vars: []byte(`{"PLAIN":"plain"}`), Secrets: map[string]string{"KEY": "hush"}, Bindings: []binding.Binding{{Name: "OTHER", Service: service}}})
		if c.want != "fetch" {
			if fault.NameOf(err) != c.want {
				t.Errorf("%s: opened: %v, want %s", c.name, err, c.want)
			}
		} else if err != nil {
			t.Errorf("%s: opened: %v", c.name, err)
		}
		if outside.Load() != 0 || inside.Load() != 0 {
			t.Fatalf("%s: %d requests went out and %d to the binding", c.name, outside.Load(), inside.Load())
		}
		if v == nil {
			continue
		}
		if got := serve(t, v, request()).body; got != ",204,204,PLAIN,KEY,OTHER" || outside.Swap(0) != 1 || inside.Swap(0) != 1 {
			t.Errorf("%s: a request saw %q", c.name, got)
		}
	}
}

// A load can be called off from outside while it runs.
func TestInspectCanBeStopped(t *testing.T) {
	s := newBox(t, Options{MaxCPU: time.Minute, MaxWall: time.Minute})
	for _, source := range []string{`for (;;) {}`, `await new Promise(r => setTimeout(r, 1e6))`} {
		ctx, cancel := context.WithTimeout(context.Background(), 50*time.Millisecond)
		start := time.Now()
		_, err := s.Inspect(ctx, graphOf(source), nil)
		if fault.CodeOf(err) != fault.Timeout || time.Since(start) > 10*time.Second {
			t.Errorf("%s: error %v after %v", source, err, time.Since(start))
		}
		cancel()
	}
}

// module-worker §2.2: import() follows the rules of static imports, also at run time; a mismatch rejects with the code.
func TestDynamicImport(t *testing.T) {
	s := newBox(t, Options{})
	v := openVersion(t, s, Spec{Graph: graphOf(`export default { async fetch(request) {
		const out = [];
		for (const name of ['./lazy.js', './lazy.js', './t', './gone.js', './map', 'bare']) {
			try { const m = await import(name); out.push(m.count ? m.count() : m.default) } catch (e) { out.push(e.name + ':' + e.message.slice(0, 13)) }
		}
		return Response.json(out) } }`,
		Module{Path: "lazy.js", MediaType: "application/javascript+module", Bytes: []byte(`let n = 0; export const count = () => ++n`)},
		Module{Path: "t", MediaType: "text/plain", Bytes: []byte("text")},
		Module{Path: "map", MediaType: "application/source-map+json"})})
	want := `[1,2,"text","module_not_found:cannot import","unsupported_media_type:cannot import","module_not_found:cannot import"]`
	for range 3 {
		if got := text(t, v); got != strings.ReplaceAll(want, "cannot import", "cannot import"[:13]) {
			t.Errorf("got  %s\nwant %s", got, want)
		}
	}
}

// module-worker §7: what module-level code left waiting is discarded.
func TestLoadLeavesNothingWaiting(t *testing.T) {
	var l logs
	s := newBox(t, Options{Console: l.add})
	v := openWorker(t, s, `let ticks = 0; setInterval(() => { ticks++ }, 1); setTimeout(() => { ticks += 100 }, 1);
		export default { async fetch() { await new Promise(r => setTimeout(r, 20)); return new Response(String(ticks)) } }`)
	if got := text(t, v); got != "0" {
		t.Errorf("%s ticks of timers that were set at load", got)
	}
}

// A version opens from its stored image after a restart; module-level state is what it was; a damaged image is built anew.
func TestImageStore(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "images")
	spec := Spec{UID: "stored", Tenant: "t", Handlers: []string{"fetch"}, Graph: graphOf(`const made = Math.random(); export default { async fetch() { return new Response(String(made)) } }`)}
	run := func() string {
		s := newBox(t, Options{ImageDir: dir})
		v := openVersion(t, s, spec)
		defer s.Close()
		return text(t, v) + text(t, v)
	}
	first := run()
	if again := run(); again != first {
		t.Errorf("the restarted version answers %s, was %s", again, first)
	}
	files, err := filepath.Glob(dir + "/*")
	if err != nil || len(files) != 1 {
		t.Fatalf("files %v, %v", files, err)
	}
	good, err := os.ReadFile(files[0])
	if err != nil {
		t.Fatal(err)
	}
	for name, bad := range map[string][]byte{"cut": good[:len(good)/2], "empty": {}, "flipped": append(append([]byte{}, good[:len(good)/2]...), flip(good[len(good)/2:])...)} {
		if err := os.WriteFile(files[0], bad, 0o600); err != nil {
			t.Fatal(err)
		}
		fresh := run()
		if fresh == first {
			t.Errorf("%s: a damaged image was used", name)
		}
		if again := run(); again != fresh {
			t.Errorf("%s: the image that replaced it was not used", name)
		}
	}
	// Another version with the same bytes gets an image of its own: a snapshot may hold random values.
	last := run()
	spec.UID = "other"
	if other := run(); other == last {
		t.Error("two versions share an image")
	} else if again := run(); again != other {
		t.Errorf("the other version answers %s, was %s", again, other)
	}
}

func flip(b []byte) []byte {
	out := append([]byte{}, b...)
	out[100] ^= 1
	return out
}

// The store stays within its size; the images that were not opened for longest go first.
func TestImageStoreIsTrimmed(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "images")
	s := newBox(t, Options{ImageDir: dir, MaxImageStoreBytes: 1})
	openWorker(t, s, fetcher(`return new Response('a')`))
	s.trimStore()
	if files, _ := filepath.Glob(dir + "/*"); len(files) != 0 {
		t.Errorf("%d files are left", len(files))
	}
	s.opt.MaxImageStoreBytes = 1 << 30
	v := openWorker(t, s, fetcher(`return new Response('b')`))
	s.trimStore()
	if files, _ := filepath.Glob(dir + "/*"); len(files) != 1 {
		t.Errorf("%d files, want 1", len(files))
	}
	if got := text(t, v); got != "b" {
		t.Errorf("got %q", got)
	}
}

// An image folder that others may write is refused: images are memory that this process runs.
func TestImageDirIsPrivate(t *testing.T) {
	dir := t.TempDir()
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	if _, err := New(Options{CacheDir: cacheDir, ImageDir: dir}); fault.CodeOf(err) != fault.Invalid {
		t.Errorf("error %v", err)
	}
}

// New reports every fault of its options at once.
func TestOptionsFaults(t *testing.T) {
	_, err := New(Options{MaxCPU: -1, MaxMemoryBytes: 1, Isolation: 9})
	for _, want := range []string{"MaxCPU", "MaxMemoryBytes", "isolation 9"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v lacks %q", err, want)
		}
	}
}

// Retire: no new invocations, running ones end by themselves, or by force when the context says so; then nothing is left.
func TestRetire(t *testing.T) {
	s := newBox(t, Options{})
	var l logs
	s.opt.Console = l.add
	v := openWorker(t, s, fetcher(`console.log('begun'); await new Promise(r => setTimeout(r, 100)); return new Response('done')`))
	got := make(chan answerT, 1)
	go func() { got <- serve(t, v, request()) }()
	l.await(t, "begun")
	if err := v.Retire(context.Background()); err != nil {
		t.Error(err)
	}
	if a := <-got; a.body != "done" {
		t.Errorf("the running invocation got %+v", a)
	}
	wantErr(t, serveErr(v), event.ErrNotServing)

	for i, body := range []string{`console.log('run0'); for (;;) {}`, `console.log('run1'); await new Promise(r => setTimeout(r, 1e6))`,
		`console.log('run2'); ctx.waitUntil(new Promise(r => setTimeout(r, 1e6))); return new Response('')`} {
		v := openWorker(t, s, fetcher(body))
		failed := make(chan error, 1)
		go func() { failed <- serveErr(v) }()
		l.await(t, fmt.Sprint("run", i))
		ctx, cancel := context.WithTimeout(context.Background(), 20*time.Millisecond)
		start := time.Now()
		if err := v.Retire(ctx); err != nil || time.Since(start) > 5*time.Second {
			t.Errorf("%s: %v after %v", body, err, time.Since(start))
		}
		cancel()
		if err := <-failed; i < 2 {
			wantErr(t, err, event.ErrDraining)
		}
	}
}

// A sandbox without work becomes a spare, then is closed; the version serves on. Run ends when it is told to.
func TestTrim(t *testing.T) {
	s := newBox(t, Options{})
	v := openWorker(t, s, fetcher(`return new Response('a')`))
	text(t, v)
	for _, want := range [][2]int{{1, 1}, {0, 0}} {
		s.trim(time.Now().Add(time.Hour))
		if live, spare := s.Instances(); live != want[0] || spare != want[1] {
			t.Errorf("%d sandboxes, %d of them spare, want %v", live, spare, want)
		}
	}
	if got := text(t, v); got != "a" {
		t.Errorf("got %q", got)
	}
	s.trim(time.Now().Add(-time.Hour))
	if live, spare := s.Instances(); live != 1 || spare != 0 {
		t.Errorf("a sandbox that was used just now was trimmed: %d, %d", live, spare)
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if err := s.Run(ctx); fault.CodeOf(err) != fault.Canceled {
		t.Errorf("Run: %v", err)
	}
}

// More invocations than sandboxes: the surplus is refused, never queued without bound.
func TestOverloaded(t *testing.T) {
	var l logs
	s := newBox(t, Options{MaxInstances: 1, Console: l.add})
	v := openWorker(t, s, fetcher(`console.log('begun'); await new Promise(r => setTimeout(r, 100)); return new Response('done')`))
	done := make(chan error, 1)
	go func() { done <- serveErr(v) }()
	l.await(t, "begun")
	wantErr(t, serveErr(v), event.ErrOverloaded)
	if err := <-done; err != nil {
		t.Error(err)
	}
	if got := text(t, v); got != "done" {
		t.Errorf("got %q", got)
	}
}
