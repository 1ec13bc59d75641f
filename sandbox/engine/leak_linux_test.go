package engine

import (
	"bytes"
	"os"
	"runtime"
	"runtime/debug"
	"testing"
)

// mappings counts the mappings and open files of this process.
func mappings(t *testing.T) (maps, files int) {
	t.Helper()
	b, err := os.ReadFile("/proc/self/maps")
	if err != nil {
		t.Skipf("no /proc: %v", err)
	}
	fds, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Skipf("no /proc: %v", err)
	}
	return bytes.Count(b, []byte("\n")), len(fds)
}

// A thousand clones and images come and go without a mapping, a file or memory left behind.
func TestNothingLeaks(t *testing.T) {
	e := testEngine(t)
	img := image(t, e, "() => new Uint8Array(1 << 20).fill(1).length", SnapshotOptions{MemoryBytes: 16 << 20})
	round := func(n int) {
		for i := range n {
			in, err := e.Clone(img)
			if err != nil {
				t.Fatal(err)
			}
			if i%10 == 0 {
				if _, err := in.Call(img.Roots()[0], Undefined); err != nil {
					t.Fatal(err)
				}
			}
			in.Close()
		}
		small := image(t, e, "0", SnapshotOptions{})
		in := clone(t, img)
		if err := in.Remap(image(t, e, "1", SnapshotOptions{MemoryBytes: 16 << 20})); err != nil {
			t.Fatal(err)
		}
		in.Close()
		small.Close()
	}
	heap := func() uint64 {
		debug.FreeOSMemory()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return m.HeapInuse
	}
	round(50)
	heapBefore := heap()
	mapsBefore, filesBefore := mappings(t)
	round(1000 / slowness)
	heapAfter := heap()
	mapsAfter, filesAfter := mappings(t)
	// The images of a round live until the test ends; each is a file and its mapping.
	if mapsAfter > mapsBefore+20 || filesAfter > filesBefore+2 {
		t.Errorf("mappings %d, then %d; files %d, then %d", mapsBefore, mapsAfter, filesBefore, filesAfter)
	}
	if heapAfter > heapBefore+(8<<20) {
		t.Errorf("the heap grew from %d to %d KiB", heapBefore>>10, heapAfter>>10)
	}
}

// The native stack that a deep recursion needed does not stay with the instance.
func TestDeepStackIsDropped(t *testing.T) {
	img := image(t, testEngine(t), "() => { let n = 0; (function f() { n++; try { f() } catch {} })(); return n }", SnapshotOptions{})
	in := clone(t, img)
	if v, err := in.Call(img.Roots()[0], Undefined); err != nil || v.tag() != tagInt {
		t.Fatalf("%v %v", in.Text(v), err)
	}
	if in.frames[0].fn == nil {
		t.Fatal("there is no handle to drop")
	}
	if err := in.Reset(); err != nil {
		t.Fatal(err)
	}
	if in.frames[0].fn != nil {
		t.Error("the handle with the deep stack is still held")
	}
	eval(t, in, "1")
	if err := in.Reset(); err != nil {
		t.Fatal(err)
	}
	if in.frames[0].fn == nil {
		t.Error("a shallow invocation cost the handle")
	}
}
