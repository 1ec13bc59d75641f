package engine

import (
	"testing"
	"time"
)

// The guest is the enemy: whatever it passes to an import, the host must answer or unwind, and never touch memory that
// is not the guest's. The raw arguments of every import go through here, as a compromised engine could pass them.
func FuzzImports(f *testing.F) {
	e := testEngine(f)
	img := image(f, e, "0", SnapshotOptions{MemoryBytes: 8 << 20})
	in, err := e.Clone(img)
	if err != nil {
		f.Fatal(err)
	}
	f.Cleanup(in.Close)
	top := uint64(img.MemoryBytes())
	for _, n := range []uint64{0, 1, top - 8, top - 4, top - 1, top, 1 << 31, 1<<32 - 8, 1<<32 - 1} {
		for which := range uint8(8) {
			f.Add(which, n, n, n, n, n)
			f.Add(which, uint64(8), n, uint64(1<<32-1), n, uint64(1))
		}
	}
	f.Fuzz(func(t *testing.T, which uint8, a, b, c, d, x uint64) {
		in.Arm(20 * time.Millisecond)
		in.User = func(in *Instance, args []Value) Value {
			for _, v := range args {
				in.String(v)
				in.AppendLatin1(nil, v)
				in.Bytes(v)
				in.PromiseState(v)
				in.BigInt64(v)
			}
			return Undefined
		}
		in.Loader = files{}
		calls := []hostFn{e.hostFast, guestNormalize, guestLoad, guestRejection, guestClock, guestRandom, guestWrite,
			func(in *Instance, s []uint64) { s[0] = in.poll() }}
		runImport(in, calls[int(which)%len(calls)], []uint64{a, b, c, d, x})
		if in.broken {
			t.Errorf("a host function has a bug: %v", in.failure)
		}
		in.broken, in.depth = false, 0
		if err := in.Reset(); err != nil {
			in.Close()
			if in, err = e.Clone(img); err != nil {
				t.Fatal(err)
			}
		}
	})
}

// runImport calls an import as wazero does: below a call of the guest, with what it panics caught outside.
func runImport(in *Instance, f hostFn, stack []uint64) {
	in.depth = 1
	defer func() {
		if r := recover(); r != nil && r != errUnwind {
			panic(r)
		}
	}()
	defer in.guard()
	f(in, stack)
}

// Values that point outside of memory, or into the middle of something, are refused or read as what lies there; nothing
// else happens.
func FuzzValues(f *testing.F) {
	e := testEngine(f)
	img := image(f, e, "0", SnapshotOptions{MemoryBytes: 8 << 20})
	in, err := e.Clone(img)
	if err != nil {
		f.Fatal(err)
	}
	f.Cleanup(in.Close)
	for _, tag := range []int32{tagString, tagRope, tagObject, tagBigInt, tagSymbol} {
		for _, p := range []uint32{0, 1, 1 << 10, uint32(img.MemoryBytes()) - 8, uint32(img.MemoryBytes()), 1<<32 - 1, in.known.io} {
			f.Add(uint64(box(tag, p)), append([]byte{255, 255, 255, 127, 0, 0, 0, 16}, append(make([]byte, 16),
				255, 255, 255, 255, 255, 255, 255, 127)...)) // a string's head: very long, a slice of something, far away
		}
	}
	f.Fuzz(func(t *testing.T, raw uint64, at []byte) {
		in.Arm(20 * time.Millisecond)
		v := Value(raw)
		if b, ok := in.bytesAt(v.pointer(), uint32(min(len(at), 64))); ok {
			copy(b, at)
		}
		if s, ok := in.String(v); ok && len(s) > 3*int(img.MemoryBytes()) {
			t.Errorf("a string of %d bytes", len(s))
		}
		in.AppendLatin1(nil, v)
		in.Bytes(v)
		in.Text(v)
		in.Call(v, Undefined, v)
		in.Describe(v)
		if in.broken {
			t.Errorf("a bug: %v", in.failure)
		}
		if err := in.Reset(); err != nil {
			in.Close()
			if in, err = e.Clone(img); err != nil {
				t.Fatal(err)
			}
		}
	})
}
