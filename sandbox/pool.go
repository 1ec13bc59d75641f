package sandbox

import (
	"context"
	"slices"
	"time"

	"edged/sandbox/event"
)

// maxSpare bounds the sandboxes that wait for whatever version misses next.
const maxSpare = 64

var (
	errRetired  = event.ErrNotServing.New("sandbox.Serve", "the version has been retired")
	errCrowded  = event.ErrOverloaded.New("sandbox.Serve", "every sandbox of this node is in use")
	errShutdown = event.ErrDraining.New("sandbox.Serve", "the sandbox room is closed")
)

// acquire waits for a slot and takes a sandbox for one invocation: a ready one of this version, else a spare one onto
// which the version's image is mapped, else a new one, else the one that another version can miss. The slot comes first,
// so that under load only as many sandboxes are in use as can run, and those stay in the processor's caches. The invocation was taken at start
// and may take limit; its tally is open.
func (v *Version) acquire(ctx context.Context, start time.Time, limit time.Duration) (*guest, error) {
	var queued time.Duration
	p := v.pace()
	waits := !v.box.turns.try(p)
	if waits {
		if err := v.admit(); err != nil {
			return nil, err
		}
		if err := v.box.turns.wait(&v.queues, p, until{gone: ctx, kill: v.kill, deadline: start.Add(limit)}); err != nil {
			v.depart()
			return nil, err
		}
		queued = time.Since(start)
	}
	g, err := v.pick(!waits)
	if err != nil {
		v.box.turns.give(p)
		return nil, err
	}
	g.pace = p
	g.tally.open(start, limit, queued)
	return g, nil
}

// admit counts an invocation; depart ends it.
func (v *Version) admit() error {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.admitLocked()
}

func (v *Version) admitLocked() error {
	if v.retired.Load() {
		return errRetired
	}
	v.active++
	return nil
}

func (v *Version) depart() {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.active--
	if v.retired.Load() && v.active == 0 {
		close(v.empty)
	}
}

// pick takes the sandbox of an invocation that was admitted, or is here (admit). After an error it is admitted no more.
func (v *Version) pick(admit bool) (*guest, error) {
	v.mu.Lock()
	if admit {
		if err := v.admitLocked(); err != nil {
			v.mu.Unlock()
			return nil, err
		}
	}
	if n := len(v.ready); n > 0 {
		g := v.ready[n-1]
		v.ready[n-1] = nil
		v.ready = v.ready[:n-1]
		v.enlistLocked(g)
		v.mu.Unlock()
		g.origin, g.out = event.Hot, false
		return g, nil
	}
	v.mu.Unlock()
	g, err := v.obtain()
	if err != nil {
		v.depart()
		return nil, err
	}
	g.version, g.served, g.born = v, 0, time.Now()
	g.ready.forget() // it was another version's
	v.mu.Lock()
	defer v.mu.Unlock()
	v.enlistLocked(g)
	return g, nil
}

// obtain is pick's slow way: the guest it returns holds this version's image.
func (v *Version) obtain() (*guest, error) {
	g, err := v.box.takeSpare()
	if err != nil {
		return nil, err
	}
	if g != nil {
		g.origin = event.Warm
		if err := g.in.Remap(v.image); err == nil {
			return g, nil
		}
		g.in.Close() // a fresh one takes its place, and its count
	}
	return v.box.create(v)
}

// release gives a guest back after its invocation ended. The guest is byte for byte its image again before anybody else
// can have it; one that cannot be restored is closed.
func (v *Version) release(g *guest, now time.Time) {
	whole := g.restore(now)
	v.mu.Lock()
	v.delistLocked(g)
	if whole && !v.retired.Load() {
		v.ready = append(v.ready, g)
		v.active--
		v.mu.Unlock()
		return
	}
	v.mu.Unlock()
	if whole {
		v.box.giveSpare(g)
	} else {
		v.box.discard(g)
	}
	v.depart() // the invocation has ended only now: whoever waits for that may free what the guest stood on
}

// The guests that are at work are a list through the guests themselves: nothing is allocated per invocation.

func (v *Version) enlistLocked(g *guest) {
	g.next, g.prev = v.first, nil
	if v.first != nil {
		v.first.prev = g
	}
	v.first = g
}

func (v *Version) delistLocked(g *guest) {
	if g.prev != nil {
		g.prev.next = g.next
	} else {
		v.first = g.next
	}
	if g.next != nil {
		g.next.prev = g.prev
	}
	g.next, g.prev, g.outlived = nil, nil, time.Time{}
}

// takeSpare returns a sandbox without work, nil if a new one may be made instead (it is then counted already).
func (s *Sandbox) takeSpare() (*guest, error) {
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		return nil, errShutdown
	}
	if n := len(s.spare); n > 0 {
		g := s.spare[n-1]
		s.spare[n-1] = nil
		s.spare = s.spare[:n-1]
		s.mu.Unlock()
		return g, nil
	}
	if s.live < s.opt.MaxInstances && (!s.tight || s.live < s.opt.MaxRunning+s.opt.MaxBrief) {
		s.live++
		s.mu.Unlock()
		return nil, nil
	}
	versions := s.versionsLocked()
	s.mu.Unlock()
	for _, v := range versions {
		if g := v.surrender(); g != nil {
			return g, nil
		}
	}
	return nil, errCrowded
}

// surrender takes the ready guest that this version used least recently, nil if none is ready.
func (v *Version) surrender() *guest {
	v.mu.Lock()
	defer v.mu.Unlock()
	if len(v.ready) == 0 {
		return nil
	}
	g := v.ready[0]
	v.ready = slices.Delete(v.ready, 0, 1)
	return g
}

// create makes a guest whose place takeSpare has counted.
func (s *Sandbox) create(v *Version) (*guest, error) {
	in, err := s.engine.Clone(v.image)
	if err != nil {
		s.mu.Lock()
		s.live--
		s.mu.Unlock()
		return nil, err
	}
	return newGuest(s, in, event.Cold), nil
}

// discard closes a guest that nobody can use again.
func (s *Sandbox) discard(g *guest) {
	g.in.Close()
	s.mu.Lock()
	s.live--
	s.mu.Unlock()
}

// giveSpare keeps a guest for any version, or closes it if enough are kept.
func (s *Sandbox) giveSpare(g *guest) {
	g.version = nil
	g.since = time.Now()
	s.mu.Lock()
	if !s.closed && len(s.spare) < maxSpare {
		s.spare = append(s.spare, g)
		s.mu.Unlock()
		return
	}
	s.mu.Unlock()
	s.discard(g)
}

// trim moves guests that had no work since before to the spares and closes spares of that age.
func (s *Sandbox) trim(before time.Time) {
	s.mu.Lock()
	versions := s.versionsLocked()
	n := stale(s.spare, before)
	old := slices.Clone(s.spare[:n])
	s.spare = slices.Delete(s.spare, 0, n)
	s.mu.Unlock()
	for _, g := range old {
		s.discard(g)
	}
	for _, v := range versions {
		v.mu.Lock()
		n := stale(v.ready, before)
		old := slices.Clone(v.ready[:n])
		v.ready = slices.Delete(v.ready, 0, n)
		v.mu.Unlock()
		for _, g := range old {
			s.giveSpare(g)
		}
	}
}

// stale counts the guests at the front of a last-in-first-out list that nobody used since before. The list is ordered by
// that time: a guest moves to the back when it is used.
func stale(list []*guest, before time.Time) int {
	n := 0
	for n < len(list) && list[n].since.Before(before) {
		n++
	}
	return n
}

// pageOut gives back the memory of guests that had no work since before. They stay ready: most of what a guest has mapped, it
// shares with the page cache, and a thousand idle ones would hold gigabytes of that and of pages they once wrote.
func (s *Sandbox) pageOut(before time.Time) {
	if s.opt.Isolation == IsolateWorker {
		return // such a guest is more than its image
	}
	s.mu.Lock()
	versions := s.versionsLocked()
	s.mu.Unlock()
	for _, v := range versions {
		v.pageOut(before)
	}
}

func (v *Version) pageOut(before time.Time) {
	paged := false
	for i := 0; v.pageOutOne(i, before, &paged); i++ {
	}
	if paged {
		v.image.PageOut()
	}
}

// pageOutOne does it to the i-th of the ready guests and reports whether there may be more. The lock is held for a few system
// calls; that is a fraction of a request, and only a version that others of its guests serve has one that waits.
func (v *Version) pageOutOne(i int, before time.Time, paged *bool) (more bool) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if i >= len(v.ready) || !v.ready[i].since.Before(before) {
		return false
	}
	if g := v.ready[i]; !g.out {
		g.in.PageOut()
		g.out, *paged = true, true
	}
	return true
}
