package kv

import (
	"errors"
	"fmt"

	"edged/kv/replica"
)

var errApply = errors.New("applying what a member sent")

// intake is the reading half of one session with a peer: frames in, durable changes out. One goroutine.
type intake struct {
	s      *Store
	peer   replica.Origin
	puller *replica.Puller
	id     uint64 // of the session, in coverage

	from   uint64         // what is asked for
	vector replica.Vector // what is told

	// fetch brings the value files of a unit here and pins them until release; nil when there are none to come.
	fetch func([]replica.Change) (release func(), err error)
}

// newIntake opens a session. It must be made before the request is sent, and closed when nothing of the session will be
// applied any more.
func (s *Store) newIntake(peer replica.Origin) (*intake, error) {
	s.coverMu.Lock()
	id := s.coverage.Open()
	s.coverMu.Unlock()
	in := &intake{s: s, peer: peer, id: id}
	read, err := s.ledger.readOf(peer)
	if err != nil {
		in.close()
		return nil, err
	}
	in.from = read.pos
	in.vector, _ = s.ledger.covers()
	in.puller = replica.NewPuller(s.ledger.epoch, peer, read.pos, s.opt.rules)
	return in, nil
}

func (in *intake) close() {
	in.s.coverMu.Lock()
	defer in.s.coverMu.Unlock()
	in.s.coverage.Close(in.id)
}

// frame takes one frame. After an error the session is over.
func (in *intake) frame(kind byte, body []byte) (m replica.Mark, marked bool, err error) {
	if kind == replica.FrameRecord {
		c, err := replica.ParseChange(body)
		if err == nil {
			err = in.puller.Record(c, len(body), in.s.opt.clock())
		}
		return m, false, err
	}
	if m, err = replica.ParseMark(kind, body); err != nil {
		return m, false, err
	}
	_, seq := in.s.ledger.covers()
	u, err := in.puller.Mark(m, seq)
	if err == nil {
		err = in.s.mayTalk(in.peer)
	}
	if err != nil {
		if errors.Is(err, replica.ErrRolledBack) {
			in.s.fence(err)
		}
		return m, false, err
	}
	return m, true, in.apply(u, m)
}

func (in *intake) apply(u replica.Unit, m replica.Mark) error {
	if len(u.Changes) > 0 {
		if err := in.s.opt.Space.Check(); err != nil {
			return err // the session is tried again until there is room
		}
	}
	if in.fetch != nil {
		release, err := in.fetch(u.Changes)
		if err != nil {
			return err
		}
		defer release()
	}
	s := in.s
	var out outcome
	bytes := 0
	for i := range u.Changes {
		bytes += len(u.Changes[i].Record.Value) + 256
	}
	liveMs := int64(0)
	if m.Live {
		liveMs = min(m.Now, s.opt.clock())
	}
	if err := s.commits.do(bytes, func(t *tx) (err error) { out, err = t.apply(u, liveMs); return err }); err != nil {
		return fmt.Errorf("%w: %w", errApply, err)
	}
	s.count(out)
	if m.Live {
		s.reachedLive(in, m)
	}
	return nil
}

func (s *Store) count(out outcome) {
	for v, name := range [...]string{replica.Take: "take", replica.Known: "known", replica.Older: "older", replica.DeadEnd: "dead"} {
		if n := out.verdicts[v]; n > 0 {
			s.opt.Metrics.applied[name].Add(float64(n))
		}
	}
	if out.returned > 0 {
		s.ledger.returned.Add(uint64(out.returned))
		s.opt.Metrics.returned.Add(float64(out.returned))
		s.opt.Log.Error("a record came back that a forgotten tombstone would have beaten", "records", out.returned, "do", "see docs/runbook.md, EdgedKVResurrected")
	}
}

// reachedLive notes that this store has all that a peer had.
func (s *Store) reachedLive(in *intake, m replica.Mark) {
	s.coverMu.Lock()
	s.coverage.Live(in.id, in.peer, m.Vector)
	s.coverMu.Unlock()
	if s.restoredMs.Load() != 0 { // in time: what was deleted since the backup is here now
		if err := s.clearRestored(); err != nil {
			s.opt.Log.Warn("noting that a restored store is level with a peer", "err", err)
		}
	}
}
