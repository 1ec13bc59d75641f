//go:build linux && (amd64 || arm64)

package engine

import (
	"context"
	"testing"
)

// What the kernel offers is used: a fault of ours that makes the engine's own try-out fail must not pass for an old kernel.
func TestBestReset(t *testing.T) {
	var table pageTable
	if err := table.open(); err != nil {
		t.Skipf("the page table cannot be read here: %v", err)
	}
	defer table.close()
	m, err := newMemory(1 << 20)
	if err != nil {
		t.Fatal(err)
	}
	defer m.Free()
	m.Reallocate(1 << 20)
	m.cur[5<<12] = 1
	for _, method := range []ResetMethod{ResetScan, ResetRead} {
		list, err := m.written(&table, method)
		if err != nil {
			t.Logf("%v: %v", method, err)
			continue
		}
		at := uint64(5<<12) &^ uint64(pageSize-1)
		if len(list) != 1 || list[0] != (span{at, at + uint64(pageSize)}) {
			t.Errorf("%v found %v", method, list)
		}
		opt := options(t)
		opt.Reset = method
		e, err := New(context.Background(), opt)
		if err != nil {
			t.Errorf("%v works, but not for the engine: %v", method, err)
			continue
		}
		e.Close()
	}
	if _, err := m.written(&table, ResetScan); err == nil && testEngine(t).ResetMethod() != ResetScan {
		t.Errorf("the best method is %v", testEngine(t).ResetMethod())
	}
}
