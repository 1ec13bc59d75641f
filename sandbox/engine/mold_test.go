package engine

import (
	"strings"
	"testing"

	"edged/sandbox/engine/abi"
)

// The engine's own words are where we think, and a mold tells all that learnMolds tries.
func TestLayoutInside(t *testing.T) {
	if e := testEngine(t); !e.molds || !e.inside.jobs || !e.inside.heap {
		t.Errorf("molds: %v, the runtime: %+v", e.molds, e.inside)
	}
}

// What fits its mold is what it was: collecting garbage and using a value change nothing, all that stays does.
func TestMold(t *testing.T) {
	in := fresh(t)
	run := func(src string) Value {
		t.Helper()
		v, err := in.Eval([]byte(src), "test.js")
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
	list := run(`
		class A { constructor(x) { this.x = x } }
		var form = [new A(0), {}], other, text = 'abc'.repeat(30), inner = [1, 2, text], a = new A(inner), b = {}, all = [a, b, inner, text]
		all`)
	var values [4]Value
	in.Items(list, values[:])
	var m Mold
	if in.Fits(&m) || in.Fits(&Mold{}) {
		t.Error("what was never cast fits")
	}
	if !in.Cast(&m, values[:]...) || !in.Fits(&m) {
		t.Fatal("what was cast does not fit")
	}
	for _, src := range []string{"a.x[1] + text.length", "const keep = [a, b, inner, text]; keep.length = 0; 1", "JSON.stringify(all)", "inner[1] = 2", "a.x = inner",
		"Object.isFrozen(a) || inner.includes(9)", "text.slice(3) + text", "(() => { const c = {}; c.c = c })(); 1", "for (let i = 0; i < 5000; i++) ({ a, i }); 1"} {
		in.Free(run(src))
		if !in.Fits(&m) {
			t.Errorf("after %s it does not fit any more", src)
		}
	}
	for _, c := range [][2]string{
		{"other = b", "other = 0"}, {"inner[0] = 5", "inner[0] = 1"}, {"a.x = 0", "a.x = inner"}, {"other = text", "other = 0"},
		{"other = inner.slice()", "other = 0"}, {"a.y = 1", ""},
	} {
		undone := Mold{}
		fits := in.Cast(&undone, values[:]...) && in.Fits(&undone)
		in.Free(run(c[0]))
		if !fits || in.Fits(&undone) {
			t.Errorf("%s was not noticed", c[0])
		}
		if c[1] == "" {
			continue
		}
		if in.Free(run(c[1])); !in.Fits(&undone) {
			t.Errorf("%s and %s, and it does not fit", c[0], c[1])
		}
	}
	if in.Fits(&m) {
		t.Error("what has changed fits the mold of what it was")
	}
	for _, src := range []string{"1", "() => 1", "Symbol()", "new Map", "new Proxy({}, {})", "'x'.repeat(9000) + 'y'.repeat(9000)", "new Uint8Array(9)", "2n ** 99n",
		"const own = {}; own.only = 1; own"} {
		if in.Cast(&m, run(src)) || in.Fits(&m) {
			t.Errorf("%s has a mold", src)
		}
	}
}

// A guest that bends what a mold or a room stands on gets nothing from outside its memory.
func TestBentMolds(t *testing.T) {
	in := fresh(t)
	list, err := in.Eval([]byte("var form = {}; [{}, [1], 'text'.repeat(9)]"), "test.js")
	if err != nil {
		t.Fatal(err)
	}
	var v [3]Value
	in.Items(list, v[:])
	size := uint32(len(in.mem.view()))
	for _, p := range []uint32{0xffffffff, 0xfffffff0, size - 4, size} {
		for _, at := range []uint32{v[0].pointer() + objProps, v[1].pointer() + arrValues, v[1].pointer() + arrCount} {
			bent(in, at, p, func() {
				if in.Cast(&Mold{}, v[:]...) {
					t.Errorf("%#x was cast", p)
				}
			})
		}
		for _, tag := range []int32{tagObject, tagString} {
			far := box(tag, p)
			if in.Cast(&Mold{}, far) || in.Rewrite(far, []byte("abcdefgh")) || in.Sole(far) {
				t.Errorf("%#x was read or written", p)
			}
		}
	}
}

// A rewritten string is what it would be had it been made so.
func TestRewrite(t *testing.T) {
	in := fresh(t)
	room := in.NewLatin1([]byte(strings.Repeat(" ", 40)))
	is := func(b string) bool {
		want := in.NewLatin1([]byte(b))
		defer in.Free(want)
		f, err := in.Eval([]byte("(a, b) => a === b && a.length === b.length && a + 'x' === b + 'x' && a.toUpperCase() === b.toUpperCase() && parseInt(a) === parseInt(b) | Number.isNaN(parseInt(b))"), "test.js")
		if err != nil {
			t.Fatal(err)
		}
		defer in.Free(f)
		v, err := in.Call(f, Undefined, room, want)
		return err == nil && (v == True || v == Int(1))
	}
	for _, b := range []string{"GET", "", "12345", strings.Repeat("y", 40), "caf\xe9", "a\x00b", "7"} {
		if !in.Sole(room) || !in.Rewrite(room, []byte(b)) || !is(b) {
			t.Errorf("%q is not what was written", b)
		}
	}
	again := in.Dup(room)
	if in.Sole(room) {
		t.Error("a string that two hold is sole")
	}
	in.Free(again)
	f, err := in.Eval([]byte("(s) => { ({ [s]: 1 }) }"), "test.js")
	if err != nil {
		t.Fatal(err)
	}
	in.Rewrite(room, []byte("a name that there is not yet"))
	if _, err := in.Call(f, Undefined, room); err != nil || in.Sole(room) {
		t.Errorf("a string that was a name is sole, %v", err)
	}
	for _, v := range []Value{Int(1), Undefined, in.NewObject(), 0} {
		if in.Rewrite(v, []byte("x")) || in.Sole(v) {
			t.Errorf("%v is no string", v)
		}
	}
}

// What is read in place is what the engine says, in whatever state it is.
func TestRuntimeInPlace(t *testing.T) {
	in := fresh(t)
	for _, src := range []string{"1", "Promise.resolve().then(() => Promise.resolve().then(() => 2))", "new Array(9999).fill({})", "queueMicrotask(() => 1)", "new Promise(() => 1)"} {
		v, err := in.Eval([]byte(src), "test.js")
		if err != nil {
			t.Fatal(err)
		}
		for {
			pending, heap := in.opInt(abi.IsJobPending, uint64(in.known.runtime)) > 0, int64(in.opPtr(abi.QjsGetAllocatedSize))
			if in.JobsPending() != pending || in.HeapBytes() != heap {
				t.Errorf("%s: jobs pending %v, heap %d; the engine says %v, %d", src, in.JobsPending(), in.HeapBytes(), pending, heap)
			}
			if ran, err := in.RunJobs(1); err != nil || ran == 0 {
				break
			}
		}
		in.Free(v)
	}
}
