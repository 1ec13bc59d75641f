package queue

import (
	"github.com/tidwall/btree"
)

const (
	windowMax = 16 << 10 // entries of one queue in memory
	refillMin = 1 << 10  // below this many the window is filled from the index
	refillMax = 4 << 10  // entries read at a time
)

// window is the part of a queue's due index that is in memory. Every durable waiting entry before horizon is in ready;
// those at or behind it are only on disk, and are read from there once, in order: the index is never scanned from its head
// again. Entries that are under way (being sent, or held by a delivery) are in spans and flights and nowhere else, so that what
// the index shows of them is not taken for news.
//
// Guarded by the queue's lock.
type window struct {
	ready   *btree.BTreeG[entry]
	horizon position // the zero position: nothing was read yet; end: all is in memory
	flights map[uint64]flight
	spans   []span
}

// flight is an entry in the hands of a delivery, a move or a sweep.
type flight struct {
	entry
	indexed bool // its index entry, at entry.position, still stands on disk
}

// span is a run of sequences whose send is not durable yet.
type span struct{ first, last uint64 }

func newWindow() window {
	less := func(a, b entry) bool { return a.before(b.position) }
	return window{
		ready:   btree.NewBTreeGOptions(less, btree.Options{NoLocks: true}),
		flights: make(map[uint64]flight),
	}
}

// add takes an entry that is durable and nowhere under way.
func (w *window) add(e entry) {
	if !e.before(w.horizon) {
		return
	}
	w.ready.Set(e)
	if w.ready.Len() > windowMax {
		last, _ := w.ready.PopMax()
		w.horizon = last.position
	}
}

// take moves an entry from the window into flight.
func (w *window) take(e entry) {
	w.ready.Delete(e)
	w.flights[e.seq] = flight{e, true}
}

// unindexed notes that the index entries of these flights are gone from the disk.
func (w *window) unindexed(entries []entry) {
	for _, e := range entries {
		w.flights[e.seq] = flight{e, false}
	}
}

// underWay reports whether what the index shows of seq is not to be believed.
func (w *window) underWay(seq uint64) bool {
	if _, flying := w.flights[seq]; flying {
		return true
	}
	for _, s := range w.spans {
		if s.first <= seq && seq <= s.last {
			return true
		}
	}
	return false
}

func (w *window) begin(s span) { w.spans = append(w.spans, s) }

func (w *window) finish(s span) {
	for i := range w.spans {
		if w.spans[i] == s {
			last := len(w.spans) - 1
			w.spans[i] = w.spans[last]
			w.spans = w.spans[:last]
			return
		}
	}
}

// wantsMore reports whether the index holds entries that the window has room for.
func (w *window) wantsMore() bool { return w.ready.Len() < refillMin && w.horizon != end }

// forget empties the window; what waits is on disk.
func (w *window) forget() {
	w.ready.Clear()
	w.horizon = position{}
}

// low returns a position before which nothing of the index is alive, given that nothing before swept waits and that no send or
// move is under way.
func (w *window) low(swept position) position {
	p := w.horizon
	if e, ok := w.ready.Min(); ok && e.before(p) {
		p = e.position
	}
	if p.before(swept) {
		p = swept
	}
	for _, f := range w.flights {
		if f.indexed && f.before(p) {
			p = f.position
		}
	}
	return p
}
