package engine

import (
	"encoding/binary"
	"testing"
)

// The memory of this build is laid out as arena.go says: an engine that differs must be measured anew.
func TestArenasAreKnown(t *testing.T) {
	if !testEngine(t).arenas {
		t.Fatal("the arenas are not where we think")
	}
}

// An engine whose arenas differ in any word that we rely on is used without our own.
func TestArenasAreChecked(t *testing.T) {
	e := *testEngine(t)
	in := fresh(t)
	first, _ := in.u32At(in.allList(3) + arenaNext)
	arena := first - arenaAll
	for name, at := range map[string]uint32{
		"size": arena + arenaSize, "blocks in use": arena + arenaUsed, "blocks": arena + arenaCount, "first free block": arena + arenaFirst,
		"size of a block": arena + arenaBlocks + blockSize, "list": in.allList(3), "link": first,
	} {
		b, ok := in.bytesAt(at, 1)
		if !ok {
			t.Fatal("no such byte")
		}
		b[0] ^= 0x55
		if e.learnArenas(in); e.arenas {
			t.Errorf("%s: a difference was not noticed", name)
		}
		b[0] ^= 0x55
	}
	if e.learnArenas(in); !e.arenas {
		t.Error("the arenas are not known although nothing differs")
	}
}

// objects keeps n objects of several sizes alive, looks at all of them, and lets them go.
const objects = `(n) => {
	const all = [];
	for (let i = 0; i < n; i++) all.push({ i, text: 'x'.repeat(i % 300), more: [i, { i }], f: () => i });
	let sum = 0;
	for (const o of all) sum += o.i + o.text.length + o.more[0] + o.more[1].i + o.f();
	for (let i = 0; i < n; i += 2) all[i] = null;
	for (let i = 0; i < n; i++) all.push({ again: i, text: 'y'.repeat(i % 200) });
	for (const o of all) if (o !== null) sum += o.text.length;
	return sum;
}`

func sumOf(n int) (sum int) {
	for i := range n {
		sum += i + i%300 + i + i + i + i%200
		if i%2 == 1 {
			sum += i % 300
		}
	}
	return sum
}

// What our arenas do not hold comes from the engine's own, and what was freed is used again, also by the collector: the
// engine never frees an arena of ours.
func TestPackedMemoryHoldsMoreThanTheDesk(t *testing.T) {
	in := clone(t, image(t, testEngine(t), objects, SnapshotOptions{MemoryBytes: 32 << 20, HeapLimit: 16 << 20, GCThreshold: 64 << 10}))
	for _, n := range []int{0, 1, 3, 20, 3000, 5, 3000} {
		v, err := in.Call(in.image.roots[0], Undefined, Int(int32(n)))
		if err != nil {
			t.Fatal(err)
		}
		if got, ok := v.Int(); !ok || int(got) != sumOf(n) {
			t.Fatalf("%d objects: sum %d, want %d", n, got, sumOf(n))
		}
	}
	for i, n := range deskBlocks {
		if n == 0 {
			continue
		}
		found := in.walk(in.freeList(i), 0, func(arena uint32) bool {
			used, _ := in.bytesAt(arena+arenaUsed, 4)
			return binary.LittleEndian.Uint16(used) >= phantomBlock
		})
		if !found {
			t.Errorf("the free list of size %d is broken", blockSizes[i])
		}
	}
}

// An invocation that makes a few things writes fewer pages when its memory was packed.
func TestPackedInvocationsWriteFewPages(t *testing.T) {
	if m := testEngine(t).ResetMethod(); m == ResetWhole {
		t.Skip("written pages are not known here")
	}
	pages := func(pack bool) int {
		in := fresh(t)
		root, err := in.Eval([]byte(objects), "image.js")
		if err != nil {
			t.Fatal(err)
		}
		if _, err := in.Call(root, Undefined, Int(1000)); err != nil { // leaves holes
			t.Fatal(err)
		}
		if pack {
			in.Pack()
		}
		img, err := in.Snapshot(SnapshotOptions{MemoryBytes: 32 << 20, HeapLimit: 16 << 20, Roots: []Value{root}})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(img.Close)
		c := clone(t, img)
		if _, err := c.Call(img.Roots()[0], Undefined, Int(1)); err != nil {
			t.Fatal(err)
		}
		if err := c.Reset(); err != nil {
			t.Fatal(err)
		}
		return c.Stats().LastPages
	}
	if packed, loose := pages(true), pages(false); packed >= loose {
		t.Errorf("%d pages packed, %d not", packed, loose)
	} else {
		t.Logf("%d pages packed, %d not", packed, loose)
	}
}
