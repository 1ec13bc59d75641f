package engine

import (
	"bytes"
	"errors"
	"strings"
	"testing"

	"edged/sandbox/engine/abi"
)

// A snapshot of a clone holds all of its memory: what it wrote, and what its own image gave it.
func TestSnapshotOfAClone(t *testing.T) {
	e := testEngine(t)
	in, err := e.NewInstance()
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	if _, err := in.Eval([]byte(`globalThis.a = 'x'.repeat(100000); globalThis.f = () => a.length`), "a.js"); err != nil {
		t.Fatal(err)
	}
	base, err := in.Snapshot(SnapshotOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer base.Close()
	clone, err := e.Clone(base)
	if err != nil {
		t.Fatal(err)
	}
	defer clone.Close()
	if _, err := clone.Eval([]byte(`globalThis.b = f() + 1`), "b.js"); err != nil {
		t.Fatal(err)
	}
	img, err := clone.Snapshot(SnapshotOptions{MemoryBytes: 16 << 20})
	if err != nil {
		t.Fatal(err)
	}
	defer img.Close()
	second, err := e.Clone(img)
	if err != nil {
		t.Fatal(err)
	}
	defer second.Close()
	a, b := clone.mem.view(), second.mem.view()
	if len(a) != len(b) {
		t.Fatalf("sizes %d and %d", len(a), len(b))
	}
	random := int(second.known.context + abi.RandomState) // made anew in every clone
	copy(b[random:random+8], a[random:random+8])
	for off := stackTop; off < len(a); off += pageSize { // below lies dead stack
		if !bytes.Equal(a[off:off+pageSize], b[off:off+pageSize]) {
			t.Errorf("page %#x differs (zero: %v, %v)", off, isZero(a[off:off+pageSize]), isZero(b[off:off+pageSize]))
		}
	}
	v, err := second.Eval([]byte(`b + f()`), "c.js")
	if n, _ := v.Int(); err != nil || n != 200001 {
		t.Errorf("got %d, %v", n, err)
	}
}

// Compile and Run give what Eval gives, without the source text.
func TestCompiledScript(t *testing.T) {
	e := testEngine(t)
	compiler, err := e.NewInstance()
	if err != nil {
		t.Fatal(err)
	}
	code, err := compiler.Compile([]byte(`(function (n) { function inner() { throw new Error('here') } return n === 1 ? String(inner) : inner() })`), "script.js")
	compiler.Close()
	if err != nil {
		t.Fatal(err)
	}
	in, err := e.NewInstance()
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	fn, err := in.Run(code)
	if err != nil {
		t.Fatal(err)
	}
	v, err := in.Call(fn, Undefined, Int(1))
	if s, _ := in.String(v); err != nil || strings.Contains(s, "here") {
		t.Errorf("the source is still there: %q, %v", s, err)
	}
	_, err = in.Call(fn, Undefined, Int(2))
	var thrown *ScriptError
	if !errors.As(err, &thrown) || !strings.Contains(thrown.Stack, "script.js:1") {
		t.Errorf("error %+v lacks its place", err)
	}
	if _, err := in.Compile([]byte(`(`), "bad.js"); !errors.As(err, &thrown) || thrown.Name != "SyntaxError" {
		t.Errorf("error %v, want a SyntaxError", err)
	}
}
