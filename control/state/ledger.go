package state

import "edged/control/form"

// ledgerRow is what was applied to a database when a migration Operation last read its ledger (sql §8.3). It is no member of the
// database's record: what migrations show stays what it was if that is lost.
type ledgerRow struct {
	Database string       `json:"database"` // UID
	Entries  []form.Entry `json:"entries"`
}

// migrated takes over what the end of a migration's Operation tells, for a record that is not stored yet. An end that could not
// read the ledger leaves the one before.
func (s *State) migrated(r *Resource, c *Command) {
	if c.Ledger == nil || r.spec.Database == "" {
		return
	}
	s.ledgers.Set(r.spec.Database, &ledgerRow{r.spec.Database, c.Ledger.Entries})
	if set := s.get(r.spec.MigrationSet); set != nil && set.Index != nil {
		r.Target = set.Index.Entries()
	}
}

// ledger returns the last verified ledger of a database, nil if none was.
func (s *State) ledger(database string) []form.Entry {
	if row, ok := s.ledgers.Get(database); ok {
		return row.Entries
	}
	return nil
}

// Ledger returns what was applied to a database when that was last verified; nothing if it never was. Shared and immutable.
func (s *State) Ledger(database string) []form.Entry {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.ledger(database)
}
