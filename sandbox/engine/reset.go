package engine

import (
	"bytes"
	"errors"
	"fmt"

	"edged/internal/fault"
	"edged/sandbox/event"
)

// ResetMethod is a way to find the pages that a guest has written.
type ResetMethod uint8

// The methods, best first.
const (
	ResetBest  ResetMethod = iota // the best that works here
	ResetScan                     // ask the kernel for written pages (PAGEMAP_SCAN, Linux 6.7)
	ResetRead                     // read the kernel's page table (/proc/self/pagemap)
	ResetWhole                    // copy the whole image; works everywhere
)

// String returns the method's name.
func (r ResetMethod) String() string {
	switch r {
	case ResetScan:
		return "scan"
	case ResetRead:
		return "read"
	case ResetWhole:
		return "whole"
	}
	return "best"
}

// ErrGrown means that the instance's memory outgrew its image. WebAssembly memory never shrinks: close the instance.
var ErrGrown = fault.New(fault.Limited, "engine", "the memory outgrew its image")

// longRun is where giving pages back becomes cheaper than copying them. Giving back is dear (a lock shared by all threads,
// and interrupts to the other cores), but keeps an instance that once needed much from holding it for ever.
const longRun = 256 << 10

// deepStack is how much of the C stack may be dirty before the call handles go: wazero keeps a native stack of up to 15
// MB for each, as deep as the deepest recursion was.
const deepStack = 128 << 10

// Reset makes a clone byte for byte its image again, except for the state of Math.random, which is made anew. It also
// clears User, OnRejection and all limits; Loader stays. Errors: ErrGrown, or Internal for an instance that a bug of a
// host function broke; after either the instance can only be closed.
func (in *Instance) Reset() error {
	const op = "engine.Reset"
	switch {
	case in.image == nil || in.closed || in.depth != 0:
		return fault.New(fault.Internal, op, "the instance is no clone, closed or running")
	case in.broken:
		return fault.Wrap(fault.Internal, op, in.failure)
	case uint64(len(in.mem.view())) != in.image.size:
		in.fail(event.ErrMemory)
		return ErrGrown
	}
	w := restored{in: in}
	err := w.restore(in.mem, in.engine)
	in.endWatch()
	if err != nil {
		in.broken = true
		in.fail(fault.Wrap(fault.Internal, op, err))
		return in.failure
	}
	if w.pages > 0 && w.lowest+deepStack < in.image.sp {
		for _, f := range in.frames {
			f.fn = nil
		}
	}
	in.User, in.OnRejection = nil, nil
	in.pristine()
	in.stats.Resets++
	in.stats.LastPages = w.pages
	return nil
}

// PageOut gives the memory of a clone that is its image (just made, or Reset) back to the system: a page that is touched later comes
// from the image again, for the price of a fault. Nothing changes for an instance that is anything else, or where memory
// cannot be given back.
func (in *Instance) PageOut() {
	if in.image == nil || in.closed || in.broken || in.depth != 0 {
		return
	}
	size := uint64(len(in.mem.view()))
	if size != in.image.size || !in.mem.giveBack(0, size) {
		return
	}
	in.mem.copyTail(0, size)
	in.unseen()
	in.pristine()
}

// restored counts one reset.
type restored struct {
	in     *Instance
	pages  int
	lowest uint64 // lowest dirty address, meaningful if pages is not 0
}

func (w *restored) restore(m *memory, e *Engine) error {
	if e.reset == ResetWhole {
		w.all(m)
		return nil
	}
	list, err := w.in.private(e)
	freed := w.in.stats.BytesFreed
	for _, s := range list {
		w.run(m, s.from, s.to)
	}
	// What Reset itself writes after this lies in pages that were private from the start. Pages that were given back are
	// private no more: the next scan leaves them out.
	if err != nil || freed != w.in.stats.BytesFreed {
		w.in.unseen()
	}
	return err
}

// run restores [from, to), whole pages inside the memory, in rising order.
func (w *restored) run(m *memory, from, to uint64) {
	n := to - from
	if w.pages == 0 {
		w.lowest = from
	}
	w.pages += int(n) / pageSize
	if n >= longRun && m.giveBack(from, to) {
		w.in.stats.BytesFreed += n
		m.copyTail(from, to)
	} else {
		m.copyBack(from, to)
		w.in.stats.PagesCopied += n / uint64(pageSize)
	}
}

// copyBack overwrites [from, to) with the image: zero below its dense part, and above it but for the tail pages.
func (m *memory) copyBack(from, to uint64) {
	p := m.from
	low, high := min(max(from, p.first), to), min(max(from, p.dense), to)
	clear(m.cur[from:low])
	if low < high {
		copy(m.cur[low:high], p.image[low-p.first:high-p.first])
	}
	for _, t := range p.tail { // private from the start and hardly ever written: reading is cheaper than writing
		if t.off < high || t.off >= to {
			continue
		}
		clear(m.cur[high:t.off])
		high = t.off + uint64(len(t.data))
		if page := m.cur[t.off:high]; !bytes.Equal(page, t.data) {
			copy(page, t.data)
		}
	}
	clear(m.cur[high:to])
}

// copyTail puts the tail pages of [from, to) back.
func (m *memory) copyTail(from, to uint64) {
	for _, t := range m.from.tail {
		if t.off >= from && t.off < to {
			copy(m.cur[t.off:], t.data)
		}
	}
}

// all restores everything, written or not.
func (w *restored) all(m *memory) {
	sp := w.in.image.sp
	w.pages, w.lowest = int(m.from.dense)/pageSize, sp
	if deep := sp - min(deepStack, sp); deep <= uint64(len(m.cur)) && !isZero(m.cur[:deep]) {
		w.lowest = 0 // an image's stack is wiped, so this is an invocation's
	}
	w.in.stats.PagesCopied += uint64(w.pages)
	m.copyAll(uint64(len(m.cur)))
}

// copyAll is the reset that needs to know nothing.
func (m *memory) copyAll(size uint64) {
	dense := min(m.from.dense, size)
	m.copyBack(0, dense)
	if dense < size && !m.giveBack(dense, size) {
		clear(m.cur[dense:size])
	}
	m.copyTail(dense, size)
}

// chooseReset takes the wanted method if it works on this machine, or the best that does. in is a clone.
func (e *Engine) chooseReset(in *Instance) error {
	list := []ResetMethod{ResetScan, ResetRead, ResetWhole}
	if e.opt.Reset != ResetBest {
		list = []ResetMethod{e.opt.Reset}
	}
	var errs []error
	for _, r := range list {
		e.reset = r
		err := in.tryReset()
		if err == nil {
			return nil
		}
		in.broken = false
		errs = append(errs, fmt.Errorf("reset by %v: %w", r, err))
	}
	return errors.Join(errs...)
}

// tryReset spoils a page of each kind and looks whether all of them come back.
func (in *Instance) tryReset() error {
	spots := []uint64{uint64(in.known.io), in.image.size - 1, min(in.image.pages.dense, in.image.size-1)}
	for _, t := range in.image.pages.tail {
		spots = append(spots, t.off)
	}
	before := make([]byte, len(spots))
	for i, at := range spots {
		before[i] = in.mem.cur[at]
	}
	for _, at := range spots {
		in.mem.cur[at] = ^in.mem.cur[at]
	}
	if err := in.Reset(); err != nil {
		return err
	}
	for i, at := range spots {
		if in.mem.cur[at] != before[i] {
			return fmt.Errorf("the byte at %#x was not restored", at)
		}
	}
	return nil
}
