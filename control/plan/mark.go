package plan

import (
	"encoding/json"
	"errors"
	"time"

	"github.com/cockroachdb/pebble/v2"

	"edged/internal/fault"
)

const markKey = 'e' // no id: the Mark, JSON

// Mark says where the plan of a node comes from that follows the plan of others. The zero Mark is that of a node that never did.
type Mark struct {
	Epoch   uint64    `json:"epoch"`             // of the control state that the plan's index counts in: later ones are greater
	Partial bool      `json:"partial,omitempty"` // parts that this node does not need are missing
	Fresh   time.Time `json:"fresh,omitzero"`    // the plan was known to be the newest one then
}

// Mark returns the mark that was kept last.
func (s *Store) Mark() (m Mark, err error) {
	b, closer, err := s.db.Get([]byte{markKey})
	if errors.Is(err, pebble.ErrNotFound) {
		return Mark{}, nil
	}
	if err != nil {
		return Mark{}, fault.Wrap(fault.Unavailable, "plan.Mark", err)
	}
	defer closer.Close()
	return m, fault.Wrap(fault.Invalid, "plan.Mark", json.Unmarshal(b, &m))
}

// SaveMarked is Save, with the mark in the same batch.
func (s *Store) SaveMarked(d *Delta, now *Plan, m Mark) error {
	s.mark = &m
	return s.Save(d, now)
}

func (s *Store) writeMark(b *pebble.Batch) error {
	if s.mark == nil {
		return nil
	}
	val, err := json.Marshal(s.mark)
	if err != nil {
		return err
	}
	return b.Set([]byte{markKey}, val, nil)
}
