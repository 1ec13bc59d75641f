package engine

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"edged/internal/fault"
	"edged/sandbox/event"
)

// files is a Loader over a map: a specifier is a name, "./" in front of it ignored.
type files map[string]string

var errNoModule = fault.Name(fault.NotFound, "module_not_found", 900)

func (f files) Resolve(base, spec string) (string, error) {
	name := strings.TrimPrefix(spec, "./")
	if _, ok := f[name]; !ok {
		return "", errNoModule.New("test", "no module "+spec+" for "+base)
	}
	return name, nil
}

func (f files) Load(name string) ([]byte, error) { return []byte(f[name]), nil }

// module evaluates main of the files and returns its namespace; the promise must be fulfilled.
func module(t testing.TB, in *Instance, f files) Value {
	t.Helper()
	in.Loader = f
	m, err := in.EvalModule("main", []byte(f["main"]))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := in.RunJobs(1000); err != nil {
		t.Fatal(err)
	}
	if s := in.PromiseState(m.Promise); s != Fulfilled {
		t.Fatalf("the module is %v: %v", s, in.Describe(in.PromiseResult(m.Promise)))
	}
	return m.Namespace
}

// Graphs with cycles, all forms of imports, import.meta.url of every module, top-level await and dynamic import.
func TestModules(t *testing.T) {
	f := files{
		"main": `import d, {b, url} from './b'; import * as ns from './c'; await 1;
			const e = await import('./e');
			export default [d, b, url, import.meta.url, ns.fromB(), e.default, ns.count, Object.keys(import.meta)].join()`,
		"b": `import {c} from './c'; export const b = 'b'; export default 'd' + typeof c; export const url = import.meta.url`,
		"c": `import {b} from './b'; export function c() {} export const fromB = () => b; export let count = 0; count++; await 2`,
		"e": `import './f'; export default import.meta.url`,
		"f": `await 3`,
	}
	in := fresh(t)
	ns := module(t, in, f)
	if got := in.Text(in.GetProp(ns, "default")); got != "dfunction,b,file:///b,file:///main,b,file:///e,1,url" {
		t.Errorf("got %s", got)
	}
}

// A module that has run is there at once for whoever imports it then, also if it, or what it is in a cycle with, had to
// wait for a top-level await.
func TestImportOfWhatHasWaited(t *testing.T) {
	below := files{"above": "import './waits'; export const v = 1", "waits": "await 0", "late": "import './above'",
		"b": "import {c} from './c'; export const b = 1", "c": "import {b} from './b'; export const c = () => b; await 2", "e": "import './c'",
		"fails": "await 0; throw new RangeError('x')", "aboveFails": "import './fails'"}
	for _, c := range []struct {
		src  string
		want PromiseState
	}{
		{"import './above'; await import('./above')", Fulfilled},
		{"import './above'; await import('./late')", Fulfilled},
		{"await import('./above'); await import('./above'); await import('./late')", Fulfilled},
		{"const all = [import('./above'), import('./late'), import('./above')]; await Promise.all(all)", Fulfilled},
		{"import './b'; await import('./e'); await import('./b'); await import('./c')", Fulfilled},
		{"await import('./aboveFails').catch(() => {}); await import('./aboveFails')", Rejected},
	} {
		in := fresh(t)
		in.Loader = below
		m, err := in.EvalModule("main", []byte(c.src))
		if err != nil {
			t.Fatal(err)
		}
		if n, err := in.RunJobs(1000); err != nil || n == 1000 {
			t.Fatalf("%d jobs, %v", n, err)
		}
		if s := in.PromiseState(m.Promise); s != c.want {
			t.Errorf("%s: state %v, want %v", c.src, s, c.want)
		}
	}
}

// A bundle may have 512 files; the longest chain of imports is all of them.
func TestModuleChain(t *testing.T) {
	const n = 512
	f := files{"main": "import {v} from './m1'; export default v"}
	for i := 1; i < n; i++ {
		f[fmt.Sprintf("m%d", i)] = fmt.Sprintf("import {v as w} from './m%d'; export const v = w + 1", i+1)
	}
	f[fmt.Sprintf("m%d", n)] = "export const v = 0"
	in := fresh(t)
	ns := module(t, in, f)
	if got := in.GetProp(ns, "default"); got != Int(n-1) {
		t.Errorf("got %v", in.Text(got))
	}
}

// What is wrong with a graph can be told apart: no such module, no JavaScript, an exception, a limit.
func TestModuleErrors(t *testing.T) {
	for name, tt := range map[string]struct {
		files files
		want  error
		part  string
	}{
		"missing":         {files{"main": "import './x'"}, errNoModule, "no module ./x for main"},
		"missing deep":    {files{"main": "import './a'", "a": "import './x'"}, errNoModule, "for a"},
		"syntax":          {files{"main": "export default ]"}, ErrSyntax, "main:1"},
		"syntax deep":     {files{"main": "import './a'", "a": "let x; let x"}, ErrSyntax, "a:1"},
		"missing export":  {files{"main": "import {x} from './a'", "a": "export let y"}, ErrSyntax, "'x'"},
		"await in script": {files{"main": "function f() { await 1 }"}, ErrSyntax, ""},
	} {
		in := fresh(t)
		in.Loader = tt.files
		_, err := in.EvalModule("main", []byte(tt.files["main"]))
		text := fmt.Sprint(err)
		var s *ScriptError
		if errors.As(err, &s) {
			text += s.Stack
		}
		if !errors.Is(err, tt.want) || !strings.Contains(text, tt.part) {
			t.Errorf("%s: got %v (%s), want %v with %q", name, err, text, tt.want, tt.part)
		}
	}
	in := fresh(t)
	m, err := in.EvalModule("main", []byte("null.x"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := in.RunJobs(10); err != nil || in.PromiseState(m.Promise) != Rejected {
		t.Errorf("a module that throws: %v, state %v", err, in.PromiseState(m.Promise))
	}
	if err := in.Describe(in.PromiseResult(m.Promise)); !errors.Is(err, event.ErrWorker) || !strings.Contains(err.Error(), "null") {
		t.Errorf("got %v", err)
	}
	in = fresh(t)
	in.Arm(10 * time.Millisecond)
	if _, err := in.EvalModule("main", []byte("for (;;);")); !errors.Is(err, event.ErrCPU) {
		t.Errorf("an endless module: %v", err)
	}
}

// import() goes on working in clones of an image: for modules that are in it, for new ones, and again after Reset.
func TestImportAfterSnapshot(t *testing.T) {
	f := files{
		"main": "import './a'; export default async (n) => (await import(n)).default",
		"a":    "globalThis.runs = (globalThis.runs ?? 0) + 1; export default 'a' + import.meta.url",
		"b":    "import a from './a'; globalThis.runs++; export default 'b' + a + import.meta.url",
		"bad":  "export default ]",
	}
	in := fresh(t)
	ns := module(t, in, f)
	img, err := in.Snapshot(SnapshotOptions{Roots: []Value{in.GetProp(ns, "default")}})
	if err != nil {
		t.Fatal(err)
	}
	defer img.Close()
	c := clone(t, img)
	c.Loader = f
	for range 2 {
		for _, tt := range [][2]string{{"./a", "afile:///a"}, {"./b", "bafile:///afile:///b"}, {"./b", "bafile:///afile:///b"}, {"./x", "module_not_found: no module ./x for main"},
			{"./bad", "SyntaxError"}, {"./bad", "SyntaxError"}} {
			p, err := c.Call(img.Roots()[0], Undefined, c.NewString([]byte(tt[0])))
			if err != nil {
				t.Fatal(err)
			}
			if _, err := c.RunJobs(100); err != nil {
				t.Fatal(err)
			}
			if got := c.Text(c.PromiseResult(p)); !strings.HasPrefix(got, tt[1]) {
				t.Errorf("import(%s) gave %s, want %s", tt[0], got, tt[1])
			}
		}
		if got := eval(t, c, "runs"); got != "2" {
			t.Errorf("the modules ran %s times", got)
		}
		if err := c.Reset(); err != nil {
			t.Fatal(err)
		}
		if diff := differences(c); diff != "" {
			t.Error(diff)
		}
	}
	if names := img.moduleNames(); !slices.Equal(names, []string{"a", "main"}) {
		t.Errorf("the image holds %v", names)
	}
	// A snapshot of a clone holds the modules of both.
	d := clone(t, img)
	module(t, d, files{"main": "import './a'; import './f'", "a": "", "f": ""})
	both, err := d.Snapshot(SnapshotOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer both.Close()
	if names := both.moduleNames(); !slices.Equal(names, []string{"a", "f", "main"}) {
		t.Errorf("the second image holds %v", names)
	}
	c.Loader = nil
	p, err := c.Call(img.Roots()[0], Undefined, c.NewString([]byte("./b")))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.RunJobs(100); err != nil || c.PromiseState(p) != Rejected {
		t.Errorf("an import without a loader: %v", err)
	}
}
