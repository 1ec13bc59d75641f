package replica

import (
	"errors"
	"fmt"
	"time"
)

// MaxSkew is how far a record may be ahead of the clock of the store that takes it.
const MaxSkew = 5 * time.Minute

// What can be wrong with a feed. Every one ends the session before the unit is applied.
var (
	ErrSkew       = errors.New("record is ahead of this node's clock")
	ErrContinuity = errors.New("feed has a gap")
	ErrTooMuch    = errors.New("unit is over its bounds")
	ErrRolledBack = errors.New("a peer knows more of this store's writes than the store itself: its disk went back in time")
)

// Unit is what is applied in one batch: records, then the position, then the vector if there is one.
type Unit struct {
	Changes []Change
	Peer    Origin
	Pos     uint64
	Vector  Vector // nil but at a live mark
}

// Puller is the reading half of a session: frames in, units out. Not safe for concurrent use.
type Puller struct {
	rules   Rules
	self    Origin
	peer    Origin
	pos     uint64
	changes []Change
	bytes   int
}

// NewPuller starts a session of the store self with the store peer, whose feed was read up to from.
func NewPuller(self, peer Origin, from uint64, rules Rules) *Puller {
	return &Puller{rules: rules, self: self, peer: peer, pos: from}
}

// Record takes one change of n bytes; its slices must stay untouched until the unit was applied.
func (p *Puller) Record(c Change, n int, nowMs int64) error {
	if len(p.changes) >= MaxChunkRecords || p.bytes+n > MaxChunkBytes+MaxFrameBytes {
		return ErrTooMuch
	}
	if ahead := c.Record.HLC.Millis() - nowMs; ahead > MaxSkew.Milliseconds() && !p.rules.NoSkewGate {
		return fmt.Errorf("%w: %v, from %v", ErrSkew, time.Duration(ahead)*time.Millisecond, c.Record.Origin)
	}
	p.changes = append(p.changes, c)
	p.bytes += n
	return nil
}

// Mark ends a unit and returns it. ownSeq is the last sequence number that this store itself gave out.
func (p *Puller) Mark(m Mark, ownSeq uint64) (Unit, error) {
	if (m.Prev != p.pos || int(m.Count) != len(p.changes)) && !p.rules.NoContinuity {
		return Unit{}, fmt.Errorf("%w: at %d with %d records, mark says %d with %d", ErrContinuity, p.pos, len(p.changes), m.Prev, m.Count)
	}
	if m.Live && m.Vector[p.self] > ownSeq && !p.rules.KeepEpoch {
		return Unit{}, ErrRolledBack
	}
	u := Unit{Changes: p.changes, Peer: p.peer, Pos: m.Next, Vector: m.Vector}
	if p.rules.MergeEarly {
		u.Vector = p.mergeEarly(m)
	}
	p.pos, p.changes, p.bytes = m.Next, nil, 0
	return u, nil
}

func (p *Puller) mergeEarly(m Mark) Vector {
	v := Vector{}
	v.Merge(m.Vector)
	for i := range p.changes {
		r := &p.changes[i].Record
		v[r.Origin] = max(v[r.Origin], r.Seq)
	}
	return v
}
