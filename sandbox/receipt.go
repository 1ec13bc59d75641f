package sandbox

import (
	"context"
	"errors"
	"time"

	"edged/internal/fault"
	"edged/sandbox/binding"
	"edged/sandbox/event"
)

// tally is what the receipt of an invocation is made of. It belongs to the goroutine that runs the guest, and outlives the invocation's
// state by the reset, which tells how much memory was written.
type tally struct {
	start     time.Time
	limit     time.Duration // of the present kind of invocation, to its head or settlement
	admission time.Duration
	queued    time.Duration
	wall      time.Duration // 0 before the head
	wallLeft  time.Duration
	cpu       time.Duration // once it is over
	memory    int64         // likewise
	in, out   int64
	sub       int
	waits     []event.Wait // by the binding's place, fetch last; empty before the first call. Kept for the next invocation

	want    *event.Receipt          // who called Serve wants the final values; nil for nobody
	watcher func(*event.Invocation) // is told the end; nil for nobody
	told    event.Invocation        // what it is told; used only with watcher
}

// open begins the tally of an invocation that was taken at start and must have come to its head or settlement after limit. What it
// waited for its slot is there already.
func (t *tally) open(start time.Time, limit, queued time.Duration) {
	*t = tally{start: start, limit: limit, queued: queued, waits: t.waits[:0]}
}

// watched returns who wants to be told of invocations of this version, nil for nobody.
func (v *Version) watched() func(*event.Invocation) {
	if v.box.opt.Watch == nil {
		return nil
	}
	return v.box.opt.Watch(v.spec.Worker)
}

// announced is the part of an Invocation that is known at its beginning.
func (v *Version) announced(start time.Time, kind event.Kind) event.Invocation {
	return event.Invocation{Start: start, Kind: kind, Worker: v.spec.Worker, Version: v.spec.UID}
}

// announcedRequest is announced for a request: what it says is copied, for its owner has it back before the invocation may be over.
func (v *Version) announcedRequest(ctx context.Context, start time.Time, req *event.Request) event.Invocation {
	i := v.announced(start, event.KindFetch)
	if depthOf(ctx) > 0 {
		i.Kind = event.KindService
	}
	i.Method, i.URL = string(req.Method), event.ShownURL(req.URL)
	if !req.Arrived.IsZero() {
		i.Receipt.Admission = start.Sub(req.Arrived)
	}
	return i
}

// refused tells a watcher of an invocation that got no sandbox.
func refused(watcher func(*event.Invocation), i event.Invocation, err error) {
	i.Outcome = outcomeOf(err)
	i.Receipt.Wall, i.Receipt.Final = time.Since(i.Start), true
	watcher(&i)
}

// waited counts the time of a call of the binding that has the place who: numbers of bindings begin at 1, fetch is behind the last.
func (g *guest) waited(who int, took time.Duration) {
	t, n := &g.tally, len(g.version.spec.Bindings)+1
	if who < 1 || who > n {
		return
	}
	if len(t.waits) == 0 {
		if cap(t.waits) < n {
			t.waits = make([]event.Wait, n)
		}
		t.waits = t.waits[:n]
		clear(t.waits)
	}
	t.waits[who-1].Calls++
	t.waits[who-1].Time += took
}

// placeOf is the place of a binding of this version for waited; 0 for none, which is not counted.
func (g *guest) placeOf(b *binding.Binding) int {
	for i := range g.version.spec.Bindings {
		if &g.version.spec.Bindings[i] == b {
			return i + 1
		}
	}
	return 0
}

// outbound is the place of fetch.
func (g *guest) outbound() int { return len(g.version.spec.Bindings) + 1 }

// headed notes that the handler has come to its response head, or to its end, at now.
func (g *guest) headed(now time.Time, err error) {
	t := &g.tally
	t.wall = now.Sub(t.start)
	if !g.deadline.IsZero() {
		t.wallLeft = max(0, g.deadline.Sub(now))
	}
	t.told.Outcome = outcomeOf(err)
}

// fell notes what ended an invocation after its head.
func (g *guest) fell(err error) {
	if err != nil && g.tally.told.Outcome == outcomeOK {
		g.tally.told.Outcome = outcomeOf(err)
	}
}

// sum closes the tally but for the memory, while the invocation's state is still there. The guest does not run.
func (g *guest) sum() {
	t := &g.tally
	t.cpu, t.sub = g.in.CPU(), g.subrequests
	if g.stream != nil {
		t.out += g.stream.sent
		if errors.Is(g.stream.err, errCut) {
			g.fell(errCut)
		}
	}
	for _, l := range g.loans {
		switch l {
		case g.lent:
			t.in += l.passed.Load()
			if l == g.spliced {
				t.out += l.passed.Load()
			}
		case g.spliced:
			t.out += l.passed.Load()
		}
	}
	if g.left {
		g.fell(errClient)
	}
}

// account ends the tally: into the worker's counters, and to those who want it. The guest is still this invocation's.
func (g *guest) account(memory int64) {
	t, v := &g.tally, g.version
	t.memory = memory
	v.counts.account(t, v)
	if t.want != nil {
		g.receipt(t.want)
		t.want.Final = true
		t.want = nil
	}
	if t.watcher != nil {
		g.receipt(&t.told.Receipt)
		t.told.Receipt.Final = true
		t.watcher(&t.told)
		t.watcher, t.told = nil, event.Invocation{}
	}
}

// atHead fills a receipt while the invocation goes on.
func (g *guest) atHead(r *event.Receipt) {
	t := &g.tally
	t.cpu, t.sub, t.memory = g.in.CPU(), g.subrequests, g.in.HeapBytes()
	g.receipt(r)
}

// receipt makes r of the tally. The strings in it are the version's.
func (g *guest) receipt(r *event.Receipt) {
	t, opt := &g.tally, &g.box.opt
	*r = event.Receipt{Origin: g.origin, Admission: t.admission, Queue: t.queued, Wall: t.wall, CPU: t.cpu, Memory: t.memory,
		BodyIn: t.in, BodyOut: t.out, Subrequests: t.sub, Waits: r.Waits[:0],
		Left: event.Headroom{CPU: max(0, opt.MaxCPU-t.cpu), Wall: t.wallLeft, Memory: max(0, g.version.free-t.memory),
			Subrequests: max(0, opt.MaxSubrequests-t.sub)}}
	bindings := g.version.spec.Bindings
	for i, w := range t.waits {
		if w.Calls == 0 {
			continue
		}
		if w.Name = "fetch"; i < len(bindings) {
			w.Name = bindings[i].Name
		}
		r.Waits = append(r.Waits, w)
	}
}

// outcomeOf is the word for how an invocation ended, one of the label's values.
func outcomeOf(err error) string {
	switch {
	case err == nil:
		return outcomeOK
	case fault.CodeOf(err) == fault.Canceled:
		return outcomeLeft
	}
	if named := fault.NamedOf(err); named != nil && outcomeNamed[named.Error()] {
		return named.Error()
	}
	return outcomeOther
}

var outcomeNamed = func() map[string]bool {
	out := map[string]bool{}
	for _, n := range outcomeNames {
		out[n.Error()] = true
	}
	return out
}()
