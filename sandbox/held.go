package sandbox

import (
	"context"
	"sync/atomic"

	"golang.org/x/sync/semaphore"

	"edged/internal/fault"
	"edged/sandbox/facade"
)

// held bounds what host calls keep in the node's memory beside their guests: arguments that were copied out of a guest, and
// results that wait for it. Arguments are copied at once, so a call that would be too much fails; a result waits its turn.
// The two are counted apart: a guest can hold arguments for as long as its peer reads slowly, results only while it runs.
type held struct {
	arguments atomic.Int64        // of all invocations, without the first heldFree bytes of each
	results   *semaphore.Weighted // bytes, of all invocations; results of up to heldFree are free
	reads     *semaphore.Weighted // reads of unknown size at work
}

const (
	heldFree    = 64 << 10 // bytes that are not worth counting: an invocation has at most 256 operations
	readsAtOnce = 16       // of up to 25 MiB each
)

var errHeld = fault.New(fault.Limited, "sandbox.Hold", "too many bytes are held by calls that are open")

func (h *held) init(opt *Options) {
	h.results = semaphore.NewWeighted(opt.MaxHeldBytes)
	h.reads = semaphore.NewWeighted(readsAtOnce)
}

// Hold is facade.Caller's.
func (g *guest) Hold(n int) bool {
	after := g.held + int64(n)
	if after > g.box.opt.MaxCallBytes {
		return false
	}
	more := overFree(after) - overFree(g.held)
	if more > 0 && g.box.held.arguments.Add(more) > g.box.opt.MaxHeldBytes {
		g.box.held.arguments.Add(-more)
		return false
	}
	g.held = after
	return true
}

// letGo is the end of a Hold.
func (g *guest) letGo(n int) {
	after := g.held - int64(n)
	if less := overFree(g.held) - overFree(after); less > 0 { // every request ends here, few have anything that all share
		g.box.held.arguments.Add(-less)
	}
	g.held = after
}

// letAllGo ends every Hold of an invocation that is over.
func (g *guest) letAllGo() { g.letGo(int(g.held)) }

func overFree(n int64) int64 { return max(0, n-heldFree) }

// room is the place for the result of one call. Its methods but free are called beside the guest.
type room struct {
	box  *held
	mine *semaphore.Weighted // bytes of results, of the invocation
	most int64               // that both give; what is larger counts as this much
	has  int64
}

var _ facade.Room = (*room)(nil)

func (g *guest) room() *room {
	most := min(g.box.opt.MaxCallBytes, g.box.opt.MaxHeldBytes)
	if g.results == nil {
		g.results = semaphore.NewWeighted(most)
	}
	return &room{box: &g.box.held, mine: g.results, most: most}
}

func (r *room) weight(n int) int64 {
	if n <= heldFree {
		return 0
	}
	return min(int64(n), r.most)
}

// Read is facade.Room's.
func (r *room) Read(ctx context.Context, read func() (n int, err error), forget func()) error {
	for {
		n, err := r.one(ctx, read)
		if err != nil || r.weight(n) <= r.has || r.try(n) {
			return err
		}
		forget() // others first; it is read again
		r.free()
		if err := r.Take(ctx, n); err != nil {
			return err
		}
	}
}

func (r *room) one(ctx context.Context, read func() (n int, err error)) (int, error) {
	if err := r.box.reads.Acquire(ctx, 1); err != nil {
		return 0, err
	}
	defer r.box.reads.Release(1) // read may panic
	return read()
}

func (r *room) try(n int) bool {
	w := r.weight(n)
	if r.has > 0 || !r.mine.TryAcquire(w) {
		return false
	}
	if !r.box.results.TryAcquire(w) {
		r.mine.Release(w)
		return false
	}
	r.has = w
	return true
}

// Take is facade.Room's.
func (r *room) Take(ctx context.Context, n int) error {
	w := r.weight(n)
	if w == 0 {
		return nil
	}
	if err := r.mine.Acquire(ctx, w); err != nil {
		return err
	}
	if err := r.box.results.Acquire(ctx, w); err != nil {
		r.mine.Release(w)
		return err
	}
	r.has = w
	return nil
}

// free gives the place back: the guest has the result, or nobody wants it any more.
func (r *room) free() {
	if r.has > 0 {
		r.box.results.Release(r.has)
		r.mine.Release(r.has)
		r.has = 0
	}
}
