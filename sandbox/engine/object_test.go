package engine

import (
	"math"
	"strings"
	"testing"
)

// Counters, objects and promises are where we think.
func TestObjectLayout(t *testing.T) {
	if o := testEngine(t).objects; !o.counts || !o.shapes || o.promises == 0 {
		t.Errorf("objects are not laid out as we think: %+v", o)
	}
}

// An object is like the sample until somebody changes it; one that only looks like it never is.
func TestTwin(t *testing.T) {
	in := fresh(t)
	run := func(src string) Value {
		t.Helper()
		v, err := in.Eval([]byte(src), "test.js")
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
	sample := run("class A { constructor(x) { this.x = x } }; globalThis.A = A; new A(1)")
	for src, alike := range map[string]bool{
		"new A('x')": true, "new A(A)": true, "const kept = new A(3); new A(4)": true, "{ const a = new A(5); a.x = 6; a }": true,
		"{ const a = new A(7); a.y = 1; a }": false, "{ const a = new A(8); a.y = 1; delete a.y; a }": false, "{ const a = new A(9); delete a.x; a }": false,
		"Object.freeze(new A(10))": false, "Object.defineProperty(new A(11), 'x', { get() { throw 1 } })": false, "Object.seal(new A(12))": false,
		"Object.setPrototypeOf(new A(13), null)": false, "new (class extends A {})(14)": false, "new Proxy(new A(15), {})": false,
		"Object.preventExtensions(Object.create(A.prototype))": false, "({ x: 16 })": false, "[17]": false, "A": false, "'x'": false, "18": false, "null": false,
	} {
		v := run(src)
		got, ok := in.Twin(v, sample)
		if ok != alike {
			t.Errorf("%s: is like the sample: %v", src, ok)
		}
		if ok {
			if want := in.GetProp(v, "x"); want != got {
				t.Errorf("%s: %v, want %v", src, got, want)
			}
		}
		if _, ok := in.Twin(sample, v); ok != alike {
			t.Errorf("%s: the other way round: %v", src, ok)
		}
	}
	if _, ok := in.Twin(sample, sample); !ok {
		t.Error("the sample is not like itself any more")
	}
}

// References that are counted in place are the engine's: a value dies with its last one, and not before.
func TestCountInPlace(t *testing.T) {
	in := fresh(t)
	for _, src := range []string{"({})", "'text'.repeat(9)", "'rope'.repeat(5000) + Math", "Symbol()", "2n ** 99n", "() => 1", "[1]"} {
		before := in.HeapBytes()
		v, err := in.Eval([]byte(src), "test.js")
		if err != nil {
			t.Fatal(err)
		}
		if in.count(v, -1) {
			t.Errorf("%s: the last reference was taken without the engine", src)
		}
		if in.Refs(v) != 1 {
			t.Errorf("%s: %d references, want one", src, in.Refs(v))
		}
		if in.Dup(v) != v || !in.count(v, +1) || in.Refs(v) != 3 {
			t.Errorf("%s: no reference was added", src)
		}
		in.Free(v)
		in.Free(v)
		if n, _ := in.u32At(v.pointer() - refCount); n != 1 {
			t.Errorf("%s: %d references are left, want 1", src, n)
		}
		held := in.HeapBytes()
		if in.Free(v); in.HeapBytes() >= held && held > before {
			t.Errorf("%s: not freed with its last reference", src)
		}
	}
}

// bent uses a guest in which the word at an address is another.
func bent(in *Instance, at, word uint32, use func()) {
	before, _ := in.u32At(at)
	defer in.putU32(at, before)
	in.putU32(at, word)
	use()
}

// A guest that bends an object's words gets nothing from outside its memory.
func TestBentObjects(t *testing.T) {
	in := fresh(t)
	list, err := in.Eval([]byte("class A { constructor(x) { this.x = x } }; [new A(1), new A(2), Promise.resolve(3), [4]]"), "test.js")
	if err != nil {
		t.Fatal(err)
	}
	var v [4]Value
	in.Items(list, v[:])
	size := uint32(len(in.mem.view()))
	for _, p := range []uint32{0xffffffff, 0xfffffff0, size - 4, size} {
		bend := func(at uint32, use func()) { bent(in, at, p, use) }
		bend(v[0].pointer()+objProps, func() {
			if _, ok := in.Twin(v[0], v[1]); ok {
				t.Errorf("properties at %#x were read", p)
			}
		})
		bend(v[2].pointer()+objData, func() {
			if _, _, ok := in.promise(v[2]); ok {
				t.Errorf("a promise at %#x was read", p)
			}
		})
		bend(v[3].pointer()+arrValues, func() {
			if in.PutItem(v[3], 0, True) {
				t.Errorf("an element at %#x was written", p)
			}
		})
		far := box(tagObject, p)
		if _, ok := in.Twin(far, v[0]); ok || in.count(far, +1) || in.PromiseState(far) != NotPromise && p != 0xffffffff {
			t.Errorf("an object at %#x was read", p)
		}
	}
	for _, n := range []uint32{0, 1 << 30, 1<<31 - 1, 0xffffffff} {
		before, _ := in.u32At(v[0].pointer() - refCount)
		in.putU32(v[0].pointer()-refCount, n)
		if in.count(v[0], +1) {
			t.Errorf("a counter of %d was trusted", n)
		}
		in.putU32(v[0].pointer()-refCount, before)
	}
}

// PutItem replaces an element and nothing else: what it takes is the array's, what was there is freed.
func TestPutItem(t *testing.T) {
	in := fresh(t)
	list, err := in.Eval([]byte("globalThis.row = [1, 'a text'.repeat(9), false, {}]"), "test.js")
	if err != nil {
		t.Fatal(err)
	}
	text, object := in.GetIndex(list, 1), in.GetIndex(list, 3)
	for _, c := range []struct {
		at   uint32
		put  Value
		want bool
	}{{2, True, true}, {0, text, true}, {1, Int(7), true}, {3, Null, true}, {4, True, false}, {maxElements, True, false}, {math.MaxUint32, True, false}} {
		if got := in.PutItem(list, c.at, c.put); got != c.want {
			t.Errorf("element %d: put %v", c.at, got)
		}
	}
	for v, want := range map[Value]uint32{text: 1, object: 1} { // the array's; ours
		if n, _ := in.u32At(v.pointer() - refCount); n != want {
			t.Errorf("%d references to %v, want %d", n, v, want)
		}
	}
	v, err := in.Eval([]byte("row.map(String).join()"), "test.js")
	if got, _ := in.String(v); err != nil || got != strings.Repeat("a text", 9)+",7,true,null" {
		t.Errorf("the array is now %s, %v", got, err)
	}
}
