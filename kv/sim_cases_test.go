package kv

import (
	"fmt"
)

func (w *world) advertise(n *simNode) {
	if len(w.ads) > 20 || len(w.ads) > 0 && w.rng.IntN(2) == 0 {
		ad := w.ads[0]
		w.ads = w.ads[1:]
		if ad.to.up {
			ad.to.store.advertised(ad.from, ad.vector)
		}
		return
	}
	if !n.up || n.store.ledger.durable.Load() < n.store.stagedNow() {
		return
	}
	v, _ := n.store.ledger.covers()
	for _, m := range w.nodes {
		if m != n && w.linked(m, n) {
			w.ads = append(w.ads, simAd{m, n.epoch, v})
		}
	}
}

// calm is a while in which those that can talk do, so that tombstones are covered; sessions that hang go on hanging.
func (w *world) calm() {
	for range 2 {
		w.settle()
	}
	w.now += []int64{1000, simGrace / 4, simGrace + 1}[w.rng.IntN(3)]
	w.adsAndSweeps()
}

// writeThis makes a node write a key, durably.
func (w *world) writeThis(n *simNode, key, value string) bool {
	seq := n.store.ledger.seq
	rec := tombstone()
	if value != "" {
		rec = valueRecord([]byte(value))
	}
	w.commit(n, change{simUIDs[0], key, rec}, &simWrite{uid: simUIDs[0], key: key, value: value})
	w.sync(n)
	return n.store.ledger.seq > seq
}

// straggler is a record that is long on its way while the key is deleted by one who never saw it, and all hear of the delete
// from that one alone.
func (w *world) straggler(y *simNode) {
	x, d := w.nodes[w.rng.IntN(len(w.nodes))], w.nodes[w.rng.IntN(len(w.nodes))]
	if x == y || d == y || d == x || !w.linked(x, y) || !w.writeThis(y, "k0", fmt.Sprint("s", w.rng.Uint32())) {
		return
	}
	s := w.connect(x, Member{Epoch: y.epoch})
	if s == nil {
		return
	}
	for live, ok := false, true; ok && !live; {
		live, ok = w.serve(s, 50)
	}
	s.hangs = w.now + simGrace + 200_000 + w.rng.Int64N(simGrace)
	w.now += 200_000
	if !d.up || !w.writeThis(d, "k0", "") {
		return
	}
	for range 2 {
		for _, n := range w.nodes {
			if n != d {
				w.whole(n, d)
			}
		}
	}
	w.now += simGrace + 1000
	w.adsAndSweeps()
}

// relapse is a node that is restored from a backup made before a delete.
func (w *world) relapse(n *simNode) {
	if !n.up || !w.writeThis(n, "k1", fmt.Sprint("r", w.rng.Uint32())) {
		return
	}
	w.settle()
	w.backup(n)
	d := w.nodes[w.rng.IntN(len(w.nodes))]
	if !d.up || !w.writeThis(d, "k1", "") {
		return
	}
	w.settle()
	w.now += []int64{1000, simGrace / 2, simGrace + 1000}[w.rng.IntN(3)]
	w.settle()
	w.adsAndSweeps()
	w.restore(n)
}

func (w *world) adsAndSweeps() {
	for _, n := range w.nodes {
		w.advertise(n)
	}
	for range 2 * len(w.ads) {
		w.advertise(w.nodes[0])
	}
	for _, n := range w.nodes {
		if n.up {
			n.store.Sweep(bg)
		}
	}
}

// peek returns the record at a key, dead ones too.
