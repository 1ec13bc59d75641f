package kv

import (
	"edged/kv/replica"
)

// change is one write of this node's own: a put, or with flag Deleted a delete.
type change struct {
	uid, key string
	rec      replica.Record // Version and LSeq are given by the ledger
}

// write stages one change of this node's own.
func (t *tx) write(c change) error {
	sp := t.l.space(c.uid)
	if sp == nil || sp.is() != stateLive {
		return ErrUnavailable.New("kv.write", "the namespace is not on this node")
	}
	t.placeBuf = appendPlace(t.placeBuf[:0], c.uid, c.key)
	place := t.placeBuf
	old, had, err := t.get(place)
	if err != nil {
		return err
	}
	deletes := c.rec.Flags&replica.Deleted != 0
	if limit := t.l.quota; limit > 0 && !(had && deletes) {
		grown := sp.bytes.Load() + weight(len(c.key), &c.rec)
		if had {
			grown -= weight(len(c.key), &old)
		}
		if grown > limit {
			return ErrUnavailable.Newf("kv.write", "the namespace is over its quota of %d bytes", limit)
		}
	}
	c.rec.Version = t.version(old.HLC)
	return t.set(sp, place, old, c.rec)
}

// outcome counts what became of a unit's records.
type outcome struct {
	verdicts [4]int
	returned int // would have been beaten by a tombstone that was forgotten
}

// apply stages one unit of a peer's feed: its records, then the position in that feed, then the vector. liveMs is the peer's
// clock at a live mark, else 0.
func (t *tx) apply(u replica.Unit, liveMs int64) (outcome, error) {
	var out outcome
	olds, err := t.lookup(u.Changes, func(c *replica.Change) bool { return !t.settled(c) })
	if err != nil {
		return out, err
	}
	for i := range u.Changes {
		v, returned, err := t.applyOne(&u.Changes[i], olds[i])
		if err != nil {
			return out, err
		}
		out.verdicts[v]++
		if returned {
			out.returned++
		}
	}
	t.merge(u.Vector)
	if liveMs == 0 { // keep the last one
		was, err := t.l.readOf(u.Peer)
		if err != nil {
			return out, err
		}
		liveMs = was.liveMs
	}
	t.keyBuf = numKey(t.keyBuf[:0], prefixRead, uint64(u.Peer))
	return out, t.b.Set(t.keyBuf, readState{u.Pos, liveMs}.append(nil), nil)
}

// settled reports whether a record is decided without a look at what its key holds.
func (t *tx) settled(c *replica.Change) bool {
	sp := t.l.spaceLocked(c.UID)
	return t.l.rules.Admit(nil, c.Record.Version, t.l.vector.Covers(c.Record.Origin, c.Record.Seq), sp.dead()) != replica.Take
}

// applyOne stages one record of a peer. old is what the store holds at its key, without this batch.
func (t *tx) applyOne(c *replica.Change, old stored) (v replica.Verdict, returned bool, err error) {
	sp, rec := t.l.spaceLocked(c.UID), c.Record
	t.placeBuf = appendPlace(t.placeBuf[:0], c.UID, c.Key)
	place := t.placeBuf
	if was, ok := t.seen[string(place)]; ok {
		old = stored{was, was.Origin != 0}
	}
	var version *replica.Version
	if old.had {
		version = &old.rec.Version
	}
	if v = t.l.rules.Admit(version, rec.Version, t.l.vector.Covers(rec.Origin, rec.Seq), sp.dead()); v != replica.Take {
		return v, false, nil
	}
	returned = !old.had && !rec.Dead() && t.l.lost.beats(place, rec.Version)
	t.l.clock.See(rec.HLC)
	return v, returned, t.set(sp, place, old.rec, rec)
}
