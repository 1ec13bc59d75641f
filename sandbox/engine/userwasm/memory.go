package userwasm

import (
	"context"

	"github.com/tetratelabs/wazero/api"
	"github.com/tetratelabs/wazero/experimental"

	"edged/sandbox/engine"
	"edged/sandbox/wasmpass"
)

const (
	pageBytes  = 64 << 10
	clearBytes = 4 << 10 // memory is looked at in such pieces before it is cleared: what is zero need not be written
)

// memory is a window of the guest's memory. Fields with capitals are saved.
type memoryRecord struct {
	Base, Capacity uint64 // bytes; no Base: nothing was allocated yet
	Pages          uint32
	Max            uint32 // pages
	Declared       bool   // Max was
	Buffer         uint64 // the ArrayBuffer over it, an owned value; 0: none is up to date
}

type memory struct {
	memoryRecord
	state  *state
	holder api.Module // nil until an instance needs it
}

// newMemory makes a memory and returns its number, -1 if there is no room for it.
func (c *state) newMemory(min, max uint32, declared bool) int32 {
	if len(c.memories) >= maxMemories {
		return -1
	}
	if !declared {
		max = 65536
	}
	m := &memory{state: c, memoryRecord: memoryRecord{Max: max, Declared: declared}}
	if !m.resize(min) {
		return -1
	}
	c.memories = append(c.memories, m)
	return int32(len(c.memories) - 1)
}

// view returns the window as it is now; it may be empty and is never nil.
func (m *memory) view() []byte {
	b, ok := m.state.in.Window(uint32(m.Base), m.Pages*pageBytes)
	if !ok || b == nil {
		return []byte{}
	}
	return b
}

// resize makes room for so many pages and clears what is new. It reports false, and changes nothing, if there is none. The window may
// move: nobody keeps its address but the runtime, which asks for it, and the ArrayBuffer, which is detached.
func (m *memory) resize(pages uint32) bool {
	need := uint64(pages) * pageBytes
	if pages > m.Max || pages < m.Pages || need >= 1<<32 {
		return false
	}
	m.detach()
	if need > m.Capacity && !m.move(need) {
		return false
	}
	old := uint64(m.Pages) * pageBytes
	b, ok := m.state.in.Window(uint32(m.Base+old), uint32(need-old))
	if !ok {
		return false
	}
	zero(b)
	m.Pages = pages
	return true
}

// move takes a larger block: half as much again as is needed if that can be had.
func (m *memory) move(need uint64) bool {
	in := m.state.in
	most := uint64(m.Max) * pageBytes
	size := min(need+max(need/2, 1<<20), most, 1<<32-pageBytes)
	if m.Capacity == 0 && m.Declared && most-need <= 4<<20 {
		size = most
	}
	if m.Capacity == 0 && !m.Declared && need > 0 {
		size = min(need+1<<20, most, 1<<32-pageBytes)
	}
	base := in.Alloc(uint32(size))
	if base == 0 {
		if base, size = in.Alloc(uint32(need)), need; base == 0 {
			return false
		}
	}
	to, ok1 := in.Window(base, uint32(size))
	from, ok2 := in.Window(uint32(m.Base), m.Pages*pageBytes)
	if !ok1 || !ok2 {
		return false
	}
	copy(to, from)
	in.Release(uint32(m.Base))
	m.state.windows += size - m.Capacity
	m.Base, m.Capacity = uint64(base), size
	return true
}

// zero clears what is not zero: writing would make the guest's pages private.
func zero(b []byte) {
	for len(b) > 0 {
		piece := b[:min(len(b), clearBytes)]
		for _, x := range piece {
			if x != 0 {
				clear(piece)
				break
			}
		}
		b = b[len(piece):]
	}
}

// detach ends the ArrayBuffer that scripts have: the memory has another size or place from now on.
func (m *memory) detach() {
	if m.Buffer == 0 {
		return
	}
	v := engine.Value(m.Buffer)
	m.Buffer = 0
	m.state.in.Detach(v)
	m.state.in.Free(v)
}

// buffer returns the ArrayBuffer over the memory, the same one as long as it is good. The caller owns the reference.
func (m *memory) buffer() engine.Value {
	in := m.state.in
	if m.Buffer != 0 {
		v := engine.Value(m.Buffer)
		if b, ok := in.Bytes(v); ok && len(b) == int(m.Pages)*pageBytes {
			return in.Dup(v)
		}
		in.Free(v) // a script has transferred it
		m.Buffer = 0
	}
	v := in.NewWindow(uint32(m.Base), m.Pages*pageBytes)
	if !v.IsException() {
		m.Buffer = uint64(in.Dup(v))
	}
	return v
}

// grow adds pages and returns how many there were, -1 if that cannot be.
func (m *memory) grow(delta uint32) int64 {
	old := m.Pages
	if uint64(old)+uint64(delta) > uint64(m.Max) {
		return -1
	}
	if m.holder != nil {
		if _, ok := m.holder.Memory().Grow(delta); !ok {
			return -1
		}
		m.detach()
		return int64(old)
	}
	if !m.resize(old + delta) {
		return -1
	}
	return int64(old)
}

// module returns the module that other modules import the memory from.
func (m *memory) module() (api.Module, error) {
	if m.holder == nil {
		ctx := experimental.WithMemoryAllocator(context.Background(), experimental.MemoryAllocatorFunc(
			func(_, _ uint64) experimental.LinearMemory { return (*window)(m) }))
		h, err := m.state.hold(ctx, 'm', 0)
		if err != nil {
			return nil, err
		}
		h.Memory().Grow(m.Pages)
		m.holder = h
	}
	return m.holder, nil
}

// window is a memory as the runtime sees it.
type window memory

// Reallocate is experimental.LinearMemory's. It is called while a tenant's code runs, also for a size that the memory has.
func (w *window) Reallocate(size uint64) []byte {
	m := (*memory)(w)
	if m.holder == nil { // the runtime is only told what there is
		return m.view()[:min(size, uint64(m.Pages)*pageBytes)]
	}
	if !m.resize(uint32(size / pageBytes)) {
		return nil
	}
	return m.view()
}

// Free is experimental.LinearMemory's: the memory is the guest's, and goes with it.
func (w *window) Free() {}

// limits are those of a memory as an import must meet them.
func (m *memory) fits(want wasmpass.MemoryType) bool {
	return m.Pages >= want.Min && (!want.HasMax || m.Declared && m.Max <= want.Max)
}
