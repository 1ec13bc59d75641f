package queue

import (
	"maps"
	"slices"
	"testing"

	"edged/internal/testkit"
)

// disk is a due index as the window's test sees it: what a reader finds, durable or not.
type testIndex map[position]entry

func (d testIndex) from(p position) []entry {
	keys := slices.SortedFunc(maps.Keys(d), func(a, b position) int {
		if a.before(b) {
			return -1
		}
		return 1
	})
	var out []entry
	for _, k := range keys {
		if !k.before(p) {
			out = append(out, d[k])
		}
	}
	return out
}

// The window against the whole index under random sends that become visible before they are durable, partial reads, deliveries,
// retries and overflow: every durable waiting entry before the horizon is in it once, and nothing else is.
func TestWindowModel(t *testing.T) {
	rng := testkit.Rand(t)
	for range 300 {
		w := newWindow()
		w.max = 1 + rng.IntN(6)
		index := testIndex{}
		waiting := map[uint64]entry{} // durable, in nobody's hands
		sending := map[uint64]entry{}
		taken := map[uint64]entry{}  // by a dispatcher, nothing written yet
		leased := map[uint64]entry{} // index entry gone
		seq := uint64(0)
		pick := func(m map[uint64]entry) (entry, bool) {
			keys := slices.Sorted(maps.Keys(m))
			if len(keys) == 0 {
				return entry{}, false
			}
			return m[keys[rng.IntN(len(keys))]], true
		}
		for range 200 {
			switch rng.IntN(8) {
			case 0: // a send begins, and readers see it
				seq++
				e := entry{position: position{int64(rng.IntN(20)), seq}}
				w.begin(span{seq, seq})
				sending[seq], index[e.position] = e, e
			case 1: // it is durable
				if e, ok := pick(sending); ok {
					delete(sending, e.seq)
					w.finish(span{e.seq, e.seq})
					w.add(e)
					waiting[e.seq] = e
				}
			case 2, 3: // the next part of the index is read
				n := 1 + rng.IntN(3)
				rest := index.from(w.horizon)
				for i, e := range rest {
					if i == n {
						break
					}
					w.read(e)
				}
				if len(rest) <= n {
					w.horizon = end
				}
			case 4: // the first is taken
				if e, ok := w.ready.Min(); ok {
					w.take(e)
					delete(waiting, e.seq)
					taken[e.seq] = e
				}
			case 7: // and leased, or given back after all
				e, ok := pick(taken)
				if !ok {
					break
				}
				delete(taken, e.seq)
				if rng.IntN(3) == 0 {
					delete(w.flights, e.seq)
					w.add(e)
					waiting[e.seq] = e
					break
				}
				delete(index, e.position)
				w.unindexed([]entry{e})
				leased[e.seq] = e
			case 5: // a leased one comes back
				if e, ok := pick(leased); ok {
					delete(leased, e.seq)
					e.due = int64(rng.IntN(20))
					index[e.position] = e
					delete(w.flights, e.seq)
					w.add(e)
					waiting[e.seq] = e
				}
			case 6: // or is gone
				if e, ok := pick(leased); ok {
					delete(leased, e.seq)
					delete(w.flights, e.seq)
				}
			}
			held := map[uint64]entry{}
			w.ready.Scan(func(e entry) bool { held[e.seq] = e; return true })
			for _, e := range waiting {
				if _, in := held[e.seq]; in != e.before(w.horizon) {
					t.Fatalf("entry %v in the window: %t, horizon %v", e.position, in, w.horizon)
				}
			}
			for _, e := range held {
				if waiting[e.seq] != e {
					t.Fatalf("the window has %v, which does not wait there", e.position)
				}
			}
			for _, e := range index.from(position{}) {
				if low := w.low(position{}); len(sending) == 0 && e.before(low) {
					t.Fatalf("%v is alive before %v", e.position, low)
				}
			}
		}
	}
}
