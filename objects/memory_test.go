package objects

import (
	"fmt"
	"io"
	"runtime"
	"sync"
	"testing"
)

// objects §6.6: a hundred transfers at once take the same memory whatever their size: 256 KiB each, and what is kept per block of
// 1 MiB. Nothing is buffered to learn a length. All are held in the middle at the same time.
func TestConstantMemory(t *testing.T) {
	w := newDiskWorld(t, nil)
	const transfers = 100
	peak := func(size int64) uint64 {
		var before, during runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&before)
		hold := make(chan struct{})
		var reached, ended sync.WaitGroup
		reached.Add(transfers)
		for i := range transfers {
			ended.Go(func() { transfer(t, w, fmt.Sprintf("%d-%d", size, i%10), size, reached.Done, hold) })
		}
		reached.Wait()
		runtime.GC()
		runtime.ReadMemStats(&during)
		close(hold)
		ended.Wait()
		return during.HeapAlloc - min(before.HeapAlloc, during.HeapAlloc)
	}
	small, large := int64(512<<10), int64(4<<20)
	if raceEnabled {
		large = 2 << 20
	}
	peak(small) // what is allocated once
	a, b := peak(small), peak(large)
	t.Logf("heap of %d puts held in the middle: %d KiB with 512 KiB each, %d KiB with %d KiB each", transfers, a>>10, b>>10, large>>10)
	const most = transfers*(scratchBytes+32<<10) + 16<<20
	if a > most || b > most {
		t.Errorf("held %d and %d bytes, want at most %d", a, b, most)
	}
}

// transfer puts an object, stopping before its last bytes until hold is closed, and reads it.
func transfer(t *testing.T, w *world, key string, size int64, reached func(), hold <-chan struct{}) {
	left := size
	var once sync.Once
	body := readerFunc(func(p []byte) (int, error) {
		if left <= scratchBytes {
			once.Do(func() { reached(); <-hold })
		}
		n := int(min(int64(len(p)), left))
		left -= int64(n)
		if n == 0 {
			return 0, io.EOF
		}
		return n, nil
	})
	if _, err := w.bucket().Put(t.Context(), key, body, PutOptions{Length: -1}); err != nil {
		t.Errorf("put: %v", err)
		once.Do(reached)
		return
	}
	o, ok, err := w.bucket().Get(t.Context(), key, GetOptions{})
	if err != nil || !ok {
		t.Errorf("get: %t, %v", ok, err)
		return
	}
	defer o.Close()
	if n, err := io.Copy(io.Discard, o); err != nil || n != size {
		t.Errorf("read %d of %d bytes: %v", n, size, err)
	}
}

// The bytes that one large transfer allocates do not grow with its body, but for 4 bytes per MiB.
func TestAllocationsOfATransfer(t *testing.T) {
	if raceEnabled {
		t.Skip("the race detector allocates")
	}
	w := newDiskWorld(t, nil)
	cost := func(size int64) uint64 {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		transfer(t, w, "k", size, func() {}, closed())
		runtime.ReadMemStats(&after)
		return after.TotalAlloc - before.TotalAlloc
	}
	cost(1 << 20)
	a, b := cost(1<<20), cost(64<<20)
	if b > a+2*scratchBytes+128<<10 {
		t.Errorf("a transfer of 1 MiB allocates %d bytes, one of 64 MiB %d", a, b)
	}
}

func closed() <-chan struct{} {
	c := make(chan struct{})
	close(c)
	return c
}
