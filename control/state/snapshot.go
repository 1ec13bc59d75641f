package state

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"edged/control/form"
)

// snapshotFormat is the newest format that Write makes; a newer one is refused. A state without a fleet is written as 1, which
// programs that know no fleets read; one with a fleet would lose it there.
const snapshotFormat = 2

// entry is one line of a snapshot; exactly one member is set.
type entry struct {
	Head      *head       `json:"head,omitempty"`
	Resource  *Resource   `json:"resource,omitempty"`
	Operation *Operation  `json:"operation,omitempty"`
	Replay    *replayRow  `json:"replay,omitempty"`
	Tomb      *tombRow    `json:"tomb,omitempty"`
	Token     *Token      `json:"token,omitempty"`
	Runs      *runRow     `json:"runs,omitempty"`
	Ledger    *ledgerRow  `json:"ledger,omitempty"`
	Fleet     *fleetRow   `json:"fleet,omitempty"`
	Member    *Member     `json:"member,omitempty"`
	Removed   *removedRow `json:"removed,omitempty"`
	Invite    *Invite     `json:"invite,omitempty"`
	End       *int        `json:"end,omitempty"` // number of lines before it: a cut snapshot shows
}

type head struct {
	Format  int      `json:"format"`
	Last    int64    `json:"last"`
	Births  uint64   `json:"births"`
	Secret  []byte   `json:"secret,omitempty"`
	Marker  []byte   `json:"marker,omitempty"`
	Facades []string `json:"facades,omitempty"`
}

type replayRow struct {
	Key []byte `json:"key"`
	replay
}

type tombRow struct {
	UID string `json:"uid"`
	tombstone
}

// Frozen is the state at one instant. It can be written while the state goes on.
type Frozen struct{ t tables }

// Freeze returns the state as it is now, at a cost that does not depend on its size.
func (s *State) Freeze() *Frozen {
	s.mu.Lock()
	defer s.mu.Unlock()
	t := s.tables
	t.resources, t.operations, t.replays = t.resources.Copy(), t.operations.Copy(), t.replays.Copy()
	t.tombs, t.tokens, t.runs, t.ledgers = t.tombs.Copy(), t.tokens.Copy(), t.runs.Copy(), t.ledgers.Copy()
	t.fleet = t.fleet.copy()
	return &Frozen{t}
}

// Each calls fn for every live Resource in ascending order of UID until it returns false.
func (f *Frozen) Each(fn func(*Resource) bool) {
	f.t.resources.Scan(func(_ string, r *Resource) bool { return fn(r) })
}

// Write encodes the frozen state. Equal states give equal bytes.
func (f *Frozen) Write(w io.Writer) error {
	buf := bufio.NewWriter(w)
	enc := json.NewEncoder(buf)
	enc.SetEscapeHTML(false)
	lines := 0
	put := func(e entry) bool { lines++; return enc.Encode(e) == nil } // a buffered writer keeps its first error
	put(entry{Head: &head{f.t.fleet.format(), f.t.last, f.t.births, f.t.secret, f.t.marker, f.t.facades}})
	f.t.resources.Scan(func(_ string, r *Resource) bool { return put(entry{Resource: r}) })
	f.t.operations.Scan(func(_ string, op *Operation) bool { return put(entry{Operation: op}) })
	f.t.replays.Scan(func(k string, r *replay) bool { return put(entry{Replay: &replayRow{[]byte(k), *r}}) })
	f.t.tombs.Scan(func(uid string, t *tombstone) bool { return put(entry{Tomb: &tombRow{uid, *t}}) })
	f.t.tokens.Scan(func(_ string, t *Token) bool { return put(entry{Token: t}) })
	f.t.runs.Scan(func(_ string, row *runRow) bool { return put(entry{Runs: row}) })
	f.t.ledgers.Scan(func(_ string, row *ledgerRow) bool { return put(entry{Ledger: row}) })
	f.t.fleet.write(put)
	n := lines
	put(entry{End: &n})
	return buf.Flush()
}

// Restore replaces the state by one that Write encoded. One of a newer format is an ErrNewer and leaves the state as it was; after any
// other error the state must not be used.
func (s *State) Restore(r io.Reader) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	lines, began := 0, false
	for batch := range decodeAll(r, s.drivers) {
		if !began {
			if err := headOf(batch); err != nil {
				return err
			}
			began = true
			s.resources.Scan(func(uid string, r *Resource) bool { s.note(uid, r); return true }) // all of it may be gone
			s.reset()
			s.fleetRevision++
		}
		for i := range batch.entries {
			e := &batch.entries[i]
			if e.End != nil {
				if *e.End != lines {
					return fmt.Errorf("snapshot has %d lines, not %d", lines, *e.End)
				}
				return nil
			}
			if err := s.load(e); err != nil {
				return fmt.Errorf("snapshot line %d: %w", lines+1, err)
			}
			lines++
		}
		if batch.err != nil {
			return fmt.Errorf("read snapshot line %d: %w", lines+1, batch.err)
		}
	}
	return fmt.Errorf("read snapshot line %d: %w", lines+1, io.ErrUnexpectedEOF)
}

// headOf judges the first line of a snapshot.
func headOf(first decoded) error {
	switch {
	case len(first.entries) == 0 && first.err != nil:
		return fmt.Errorf("read snapshot line 1: %w", first.err)
	case len(first.entries) == 0 || first.entries[0].Head == nil:
		return errors.New("snapshot line 1 is no head")
	case first.entries[0].Head.Format > snapshotFormat:
		return newer("a snapshot of the control state has format %d, this program knows up to %d", first.entries[0].Head.Format, snapshotFormat)
	}
	return nil
}

func (s *State) load(e *entry) error {
	switch {
	case e.Head != nil:
		s.last, s.births, s.secret, s.marker, s.facades = e.Head.Last, e.Head.Births, e.Head.Secret, e.Head.Marker, e.Head.Facades
	case e.Resource != nil:
		s.loadResource(e.Resource)
	case e.Operation != nil:
		s.setOperation(e.Operation)
	case e.Replay != nil:
		rec := e.Replay.replay
		s.replays.Load(string(e.Replay.Key), &rec)
	case e.Tomb != nil:
		t := e.Tomb.tombstone
		s.tombs.Load(e.Tomb.UID, &t)
	case e.Token != nil:
		s.addToken(e.Token)
	case e.Runs != nil:
		s.runs.Load(e.Runs.Trigger, e.Runs)
	case e.Ledger != nil:
		s.ledgers.Load(e.Ledger.Database, e.Ledger)
	case e.Fleet != nil || e.Member != nil || e.Removed != nil || e.Invite != nil:
		s.fleet.load(e)
	default:
		return newer("a line of a snapshot of the control state is of a kind that this program does not know")
	}
	return nil
}

// prepare makes of a stored record what follows from it alone.
func (r *Resource) prepare(drivers form.Table) error {
	if r.driver = drivers[r.Form]; r.driver == nil {
		return fmt.Errorf("resource %s has the Form %s, which this program does not implement", r.UID, r.Form)
	}
	spec, v := r.driver.Parse(r.Spec)
	if v != nil {
		return fmt.Errorf("resource %s: stored spec: %w", r.UID, v)
	}
	r.spec = spec
	return nil
}

// loadResource puts a prepared record back with its indexes.
func (s *State) loadResource(r *Resource) {
	s.resources.Load(r.UID, r)
	s.note(r.UID, nil)
	s.enlist(r)
	s.claim(r)
	for _, p := range r.Pins {
		p.Source = r.UID
		s.holders.Set(holderKey(r, p), p)
	}
}
