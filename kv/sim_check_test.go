package kv

import (
	"slices"

	"edged/kv/replica"
)

// lose is called when a node's disk is about to go: what only it held is no longer owed.
func (w *world) lose(n *simNode) {
	var others []*simNode
	for _, m := range w.nodes {
		if m != n && w.listed(m) {
			others = append(others, m)
			w.sync(m)
		}
	}
	for _, byOrigin := range w.writes {
		for _, wr := range byOrigin {
			if wr.acked && !slices.ContainsFunc(others, func(m *simNode) bool { return w.holds(m, wr) }) {
				wr.acked = false
			}
		}
	}
}

// holds reports whether a node has a write, or what won over it. A node that is down counts with what its disk has.
func (w *world) holds(n *simNode, wr *simWrite) bool {
	if !n.up {
		w.start(n)
		defer w.stop(n)
	}
	return w.dominated(n, wr)
}

// dominated reports whether a node's state is at least a write's. Once a namespace is deleted nobody needs its writes.
func (w *world) dominated(n *simNode, wr *simWrite) bool {
	if slices.Contains(w.deadUIDs, wr.uid) {
		return true
	}
	if sp := n.store.ledger.space(wr.uid); sp != nil && sp.dead() {
		return true
	}
	if rec, ok := w.peek(n, wr.uid, wr.key); ok {
		return rec.Version.Compare(wr.version) >= 0
	}
	v, _ := n.store.ledger.covers()
	return w.endedBy(wr, func(d *simWrite) bool { return v.Covers(d.version.Origin, d.version.Seq) })
}

// endedBy reports whether some write at or above wr ended its key's life (a delete, or one that has expired) and fits.
func (w *world) endedBy(wr *simWrite, fits func(*simWrite) bool) bool {
	for _, byOrigin := range w.writes {
		for _, d := range byOrigin {
			ends := d.value == "" || d.expires != 0 && d.expires < w.now
			if ends && d.uid == wr.uid && d.key == wr.key && d.version.Compare(wr.version) >= 0 && fits(d) {
				return true
			}
		}
	}
	return false
}

// checkVectors holds every vector to its word: what it covers is here or dominated.
func (w *world) checkVectors(when string) {
	for _, n := range w.nodes {
		if !n.up {
			continue
		}
		v, _ := n.store.ledger.covers()
		for o, byOrigin := range w.writes {
			for seq, wr := range byOrigin {
				if v.Covers(o, seq) && !w.dominated(n, wr) {
					w.fail("%s: %s claims %v/%d, and %s/%s is not there", when, n.name, o, seq, wr.uid, wr.key)
				}
			}
		}
	}
}

// checkClocks holds clocks to the gate: a clock that is far ahead must not drag others along.
func (w *world) checkClocks() {
	for _, n := range w.nodes {
		if n.up && !n.skewed {
			if ahead := n.store.ledger.clock.Last().Millis() - w.now; ahead > replica.MaxSkew.Milliseconds()+120_000 {
				w.fail("%s is dragged %d ms ahead", n.name, ahead)
			}
		}
	}
}

// heal repairs the world: all run, all can talk, all know what the control plane knows, clocks are right, and time passes.
func (w *world) heal() {
	w.late = nil
	w.endSessions(func(*simSession) bool { return true })
	clear(w.cut)
	w.now += 2 * 3_600_000 // past every record from the future
	for _, n := range w.nodes {
		n.skew = w.rng.Int64N(120_000) - 60_000
		if !n.up {
			w.start(n)
		}
		if !w.listed(n) {
			if w.rules.ServeAnyone {
				w.gossipOnce(n) // it comes back and is not turned away
				w.replace(n, true)
			} else {
				w.gossipOnce(n)
				w.wipe(n)
			}
		}
	}
	for _, n := range w.nodes {
		w.tell(n)
	}
	for _, n := range w.nodes {
		w.tell(n) // also of those that were wiped by the first round
		w.sync(n)
	}
	for range 4 {
		w.settle()
	}
	w.checkVectors("healed")
	for range 2 { // tombstones go
		w.now += simGrace + 1_000_000
		for _, n := range w.nodes {
			n.store.Sweep(bg)
			w.sync(n)
		}
		w.settle()
	}
}

// gossipOnce lets a node that came back try to talk to everybody on its old list, both ways.
func (w *world) gossipOnce(n *simNode) {
	for _, m := range w.nodes {
		if m != n && m.up {
			w.whole(n, m)
			w.whole(m, n)
		}
	}
}

// settle lets every pair read each other's feed to its end.
func (w *world) settle() {
	for _, a := range w.nodes {
		for _, b := range w.nodes {
			if a != b {
				w.whole(a, b)
			}
		}
	}
}

// whole runs one session to its live mark.
func (w *world) whole(client, server *simNode) {
	w.sync(server)
	s := w.connect(client, Member{Epoch: server.epoch})
	if s == nil {
		return
	}
	for live, ok := false, true; ok && !live; {
		if live, ok = w.serve(s, 50); ok && len(s.wire) > 0 {
			ok = w.deliver(s, s.wire[0])
			s.wire = s.wire[1:]
		}
	}
	w.sync(client)
	w.endSessions(func(x *simSession) bool { return x == s })
}

// checkEqual holds the healed world to: all equal, nothing acknowledged lost, nothing deleted back.
func (w *world) checkEqual() {
	for _, uid := range simUIDs {
		for k := range 3 {
			key := "k" + string(rune('0'+k))
			first, ok := w.shown(w.nodes[0], uid, key)
			for _, n := range w.nodes[1:] {
				if rec, ok2 := w.shown(n, uid, key); ok != ok2 || ok && rec.Version != first.Version {
					w.fail("%s/%s: %s has %v %t, %s has %v %t", uid, key, w.nodes[0].name, first.Version, ok, n.name, rec.Version, ok2)
				}
			}
			if !slices.Contains(w.deadUIDs, uid) {
				w.checkKey(uid, key, first, ok)
			} else if ok {
				w.fail("%s/%s of a deleted namespace is there", uid, key)
			}
		}
	}
	for _, n := range w.nodes {
		if c := n.store.ledger.returned.Load(); c > 0 {
			w.fail("%s counts %d deletes that came back", n.name, c)
		}
	}
}

// shown returns the live record at a key.
func (w *world) shown(n *simNode, uid, key string) (replica.Record, bool) {
	rec, ok := w.peek(n, uid, key)
	return rec, ok && !n.store.ledger.hidden(&rec, w.now+n.skew)
}

func (w *world) checkKey(uid, key string, rec replica.Record, ok bool) {
	var owed *simWrite // the greatest write that was acknowledged and whose disk lived
	for _, byOrigin := range w.writes {
		for _, wr := range byOrigin {
			if wr.acked && wr.uid == uid && wr.key == key && (owed == nil || wr.version.Compare(owed.version) > 0) {
				owed = wr
			}
		}
	}
	if ok {
		wr := w.writes[rec.Origin][rec.Seq]
		if wr == nil || wr.version != rec.Version || wr.value != string(rec.Value) {
			w.fail("%s/%s: %v was never written", uid, key, rec.Version)
		}
		if owed != nil && rec.Version.Compare(owed.version) < 0 {
			w.fail("%s/%s: %v stands, %v (%q) is owed", uid, key, rec.Version, owed.version, owed.value)
		}
		return
	}
	if owed != nil && !w.endedBy(owed, func(*simWrite) bool { return true }) {
		w.fail("%s/%s: nothing stands, %v is owed", uid, key, owed.version)
	}
}
