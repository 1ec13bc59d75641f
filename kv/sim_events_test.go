package kv

import (
	"context"
	"fmt"
	"slices"

	"github.com/cockroachdb/pebble/v2/vfs"

	"edged/kv/replica"
)

var bg = context.Background()

// step lets one thing happen.
func (w *world) step() {
	w.now += w.rng.Int64N(2000)
	n := w.nodes[w.rng.IntN(len(w.nodes))]
	switch p := w.rng.IntN(1000); {
	case p < 260:
		w.write(n)
	case p < 330:
		w.sync(n)
	case p < 430:
		if n.up && len(n.list) > 0 && w.count(n) < 6 {
			s := w.connect(n, n.list[w.rng.IntN(len(n.list))])
			if s != nil && w.rng.IntN(5) == 0 { // it hangs with something on the wire
				for range 1 + w.rng.IntN(3) {
					w.serve(s, 1+w.rng.IntN(3))
				}
				s.hangs = w.now + w.rng.Int64N(3*simGrace)
			}
		}
	case p < 770:
		w.traffic()
	case p < 820:
		w.advertise(n)
	case p < 830:
		w.calm()
	case p < 836:
		w.straggler(n)
	case p < 842:
		w.relapse(n)
	case p < 880:
		if n.up {
			n.store.Sweep(bg)
		}
	case p < 900:
		w.toggleCut()
	case p < 925:
		w.now += []int64{60_000, 300_000, simGrace / 4, simGrace / 2, simGrace + 1}[w.rng.IntN(5)]
	case p < 945:
		w.tell(n)
	case p < 951:
		w.skewClock(n)
	default:
		w.disaster(n, p-951)
	}
	w.overdue()
}

func (w *world) count(n *simNode) (c int) {
	for _, s := range w.sessions {
		if s.client == n {
			c++
		}
	}
	return c
}

// overdue brings every node that runs what the control plane said long enough ago.
func (w *world) overdue() {
	if w.now-w.changed < simMember {
		return
	}
	for _, n := range w.nodes {
		if n.up && (n.members != w.version || n.dead < len(w.deadUIDs)) {
			w.tell(n)
		}
	}
}

func (w *world) write(n *simNode) {
	if !n.up {
		return
	}
	c := change{uid: simUIDs[w.rng.IntN(len(simUIDs))], key: fmt.Sprint("k", w.rng.IntN(3))}
	wr := &simWrite{uid: c.uid, key: c.key}
	switch p := w.rng.IntN(10); {
	case p < 4:
		c.rec = tombstone()
	case p < 9:
		wr.value = fmt.Sprint("v", w.rng.Uint32())
		c.rec = valueRecord([]byte(wr.value))
	default:
		wr.value = fmt.Sprint("t", w.rng.Uint32())
		c.rec = valueRecord([]byte(wr.value))
		wr.expires = w.now + n.skew + 60_000 + w.rng.Int64N(600_000)
		c.rec.Flags, c.rec.Expires = replica.Expires, wr.expires
	}
	w.commit(n, c, wr)
}

// commit makes a node write, and notes what was written.
func (w *world) commit(n *simNode, c change, wr *simWrite) {
	err := n.store.commits.do(0, func(t *tx) error { return t.write(c) })
	if err != nil {
		return // a deleted namespace, or a store that was fenced
	}
	_, seq := n.store.ledger.covers()
	rec, _ := w.peek(n, c.uid, c.key)
	wr.version = rec.Version
	if w.writes[n.epoch][seq] != nil && !w.rules.KeepEpoch {
		w.fail("%s used %v/%d twice", n.name, n.epoch, seq)
	}
	w.writes[n.epoch][seq] = wr
	n.pending = append(n.pending, wr)
	w.log("%s writes %s/%s=%q %v", n.name, c.uid, c.key, wr.value, wr.version)
	if w.late != nil {
		w.late = append(w.late, simPush{w.nodes[w.rng.IntN(len(w.nodes))], replica.Change{UID: c.uid, Key: c.key, Record: rec}})
	}
}

// advertise moves members' vectors to each other outside of sessions.
func (w *world) peek(n *simNode, uid, key string) (rec replica.Record, ok bool) {
	v, err := get(n.store.db, prefixed(nil, prefixRecord, appendPlace(nil, uid, key)))
	if err != nil {
		w.fail("peek: %v", err)
	}
	if v == nil {
		return rec, false
	}
	rec, err = replica.ParseRecord(v)
	if err != nil {
		w.fail("peek: %v", err)
	}
	return rec, true
}

func (w *world) sync(n *simNode) {
	if !n.up {
		return
	}
	if err := n.store.commits.sync(); err != nil {
		w.fail("sync: %v", err)
	}
	for _, wr := range n.pending {
		wr.acked = true
	}
	n.pending = nil
}

// traffic moves one session forward, or harms it.
func (w *world) traffic() {
	if len(w.late) > 0 && w.rng.IntN(4) == 0 {
		i := w.rng.IntN(len(w.late))
		w.push(w.late[i])
		w.late = slices.Delete(w.late, i, i+1)
	}
	if len(w.sessions) == 0 {
		return
	}
	s := w.sessions[w.rng.IntN(len(w.sessions))]
	if w.now < s.hangs {
		return
	}
	end := func() { w.endSessions(func(x *simSession) bool { return x == s }) }
	switch p := w.rng.IntN(100); {
	case p < 45:
		if !w.linked(s.client, s.server) {
			return // it stalls
		}
		if len(s.wire) < 6 {
			if _, ok := w.serve(s, 1+w.rng.IntN(3)); !ok {
				end()
			}
		}
	case p < 90:
		if len(s.wire) == 0 || !w.linked(s.client, s.server) {
			return
		}
		b := s.wire[0]
		s.wire = s.wire[1:]
		if !w.deliver(s, b) {
			end()
		}
	case p < 93 && len(s.wire) > 0: // lost
		s.wire = s.wire[1:]
	case p < 95 && len(s.wire) > 0: // repeated
		s.wire = append(s.wire[:1:1], s.wire...)
	case p < 97 && len(s.wire) > 1: // reordered
		s.wire[0], s.wire[1] = s.wire[1], s.wire[0]
	case p < 98 && len(s.wire) > 0: // cut inside a unit: the rest never comes
		w.deliver(s, s.wire[0][:w.rng.IntN(len(s.wire[0]))])
		end()
	case p >= 98:
		end()
	}
}

func (w *world) push(p simPush) {
	if !p.to.up {
		return
	}
	c := p.change
	p.to.store.commits.do(0, func(t *tx) error {
		old, had, err := t.get(appendPlace(nil, c.UID, c.Key))
		if err == nil {
			_, _, err = t.applyOne(&c, stored{old, had})
		}
		return err
	})
}

func (w *world) toggleCut() {
	i, j := w.rng.IntN(len(w.nodes)), w.rng.IntN(len(w.nodes))
	pair := [2]int{min(i, j), max(i, j)}
	w.cut[pair] = !w.cut[pair]
}

// skewClock sets a clock far ahead, or right again.
func (w *world) skewClock(n *simNode) {
	bad := false
	for _, m := range w.nodes {
		bad = bad || m.skew > 60_000 && m != n
	}
	if n.skew > 60_000 || bad {
		n.skew = w.rng.Int64N(120_000) - 60_000
	} else {
		n.skew, n.skewed = 1_200_000+w.rng.Int64N(3_600_000), true
	}
	w.log("%s clock %+d ms", n.name, n.skew)
}

// disaster lets something bad happen to a node, p in 0 to 48.
func (w *world) disaster(n *simNode, p int) {
	switch {
	case p < 10:
		if n.up {
			w.log("%s crashes", n.name)
			w.crash(n)
		} else {
			w.startAgain(n)
		}
	case p < 18:
		if !n.up {
			w.startAgain(n)
		}
	case p < 21:
		if n.up && w.listed(n) {
			w.wipe(n)
		}
	case p < 32:
		w.backup(n)
	case p < 42:
		w.restore(n)
	case p < 46: // struck from the list, whether it runs or not; it is told when it can be told
		if len(w.current) > 2 && w.listed(n) {
			w.log("%s forgotten", n.name)
			w.lose(n)
			w.replace(n, false)
		}
	default:
		if len(w.deadUIDs) == 0 {
			w.deadUIDs = append(w.deadUIDs, simUIDs[2])
			w.changed = w.now
			w.log("namespace %s deleted", simUIDs[2])
			w.tell(n)
		}
	}
}

func (w *world) listed(n *simNode) bool {
	return slices.ContainsFunc(w.current, func(m Member) bool { return m.Name == n.name })
}

// startAgain starts a node that was down. One that was struck from the list meanwhile runs on its old list until it is told.
func (w *world) startAgain(n *simNode) {
	w.log("%s starts", n.name)
	w.start(n)
}

func (w *world) backup(n *simNode) {
	if !n.up {
		return
	}
	w.sync(n)
	n.fs.RemoveAll("/backup")
	if err := n.store.Backup("/backup"); err != nil {
		w.fail("backup: %v", err)
		return
	}
	n.saved = vfs.NewCrashableMem()
	if _, err := vfs.Clone(n.fs, n.saved, "/backup", "/kv", vfs.CloneSync); err != nil {
		w.fail("clone: %v", err)
	}
	w.log("%s backed up", n.name)
}

// restore puts a node's last backup in place of its disk.
func (w *world) restore(n *simNode) {
	if n.saved == nil || !w.listed(n) {
		return
	}
	w.log("%s restored", n.name)
	w.lose(n)
	w.stop(n)
	n.fs, n.saved = n.saved, nil
	w.start(n)
	w.replace(n, true)
	w.tell(n)
}
