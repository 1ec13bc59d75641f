package engine

import "testing"

// The elements of an array are where we think, and are read the same without that knowledge.
func TestItems(t *testing.T) {
	if !testEngine(t).arrays {
		t.Error("arrays are not laid out as we think")
	}
	in := fresh(t)
	for _, src := range []string{
		"[1, 'two', null, 2.5, undefined]", "[1, 2]", "[]", "new Array(5)", "({ 0: 'a', 3: 4 })", "new Uint8Array(7)", "(function () { return arguments })(1, 2, 3, 4, 5, 6)",
		"const a = [1, 2, 3, 4, 5, 6]; a.length = 4; a", "const b = [1, 2, 3, 4, 5, 6]; delete b[2]; b", "Object.freeze([1, 2, 3, 4, 5])", "7", "'text'",
	} {
		v, err := in.Eval([]byte("{ "+src+" }"), "test.js")
		if err != nil {
			v, err = in.Eval([]byte(src), "test.js")
		}
		if err != nil {
			t.Fatal(err)
		}
		var got, want [5]Value
		in.Items(v, got[:])
		for i := range want {
			want[i] = in.GetIndex(v, uint32(i))
			in.Free(want[i])
		}
		if got != want {
			t.Errorf("%s: %v, want %v", src, got, want)
		}
		in.Free(v)
	}
}

// A guest that bends an array's words gets nothing from outside its memory.
func TestItemsOfBentArrays(t *testing.T) {
	in := fresh(t)
	v, err := in.Eval([]byte("[1, 2, 3]"), "test.js")
	if err != nil {
		t.Fatal(err)
	}
	var got [3]Value
	for _, p := range []uint32{0xffffffff, 0xfffffff0, uint32(len(in.mem.view())) - 8} {
		before, _ := in.u32At(v.pointer() + arrValues)
		in.putU32(v.pointer()+arrValues, p)
		if in.ItemsInPlace(v, got[:]) {
			t.Errorf("elements at %#x were read", p)
		}
		in.putU32(v.pointer()+arrValues, before)
	}
	if in.ItemsInPlace(Value(uint64(v)|0xfffffff0), got[:]) {
		t.Error("an array outside the memory was read")
	}
}
