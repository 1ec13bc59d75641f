package form

import "edged/control/rules"

// Entry is one migration file, applied or to be applied (sql §8.1).
type Entry struct {
	Path   string `json:"path"`
	SHA256 string `json:"sha256"` // 64 lower-case hex digits
}

// Ledger is what is applied to a database, in order; at most 512 entries.
type Ledger struct {
	Entries []Entry `json:"entries"`
}

// Entries returns the files of a migration set in their order.
func (x *Index) Entries() []Entry {
	out := make([]Entry, len(x.Files))
	for i := range x.Files {
		out[i] = Entry{x.Files[i].Path, x.Files[i].SHA256}
	}
	return out
}

// migrationApplication is SQLiteMigrationApplication 0.2.0 (sql §8). Both references are fixed. Its delete removes nothing but
// itself: schema and ledger stay in the database.
func migrationApplication() *Driver {
	return &Driver{
		URL: MigrationURL, Kind: "SQLiteMigrationApplication", Role: rules.Migration,
		Fields: []Field{
			reference("database", UseDatabase, []string{SQLiteDatabaseURL}, func(s *Spec, uid string) { s.Database = uid }),
			reference("migrationSet", UseMigrations, []string{SQLiteMigrationsURL}, func(s *Spec, uid string) { s.MigrationSet = uid }),
		},
		Frozen:  frozenAll,
		Outside: func(a Action) bool { return a != Delete },
		Observe: observeMigration,
	}
}

// observeMigration shows the ledger of the database beside the set (sql §8.3). Equal length or a common beginning is not
// enough: after a longer set was applied this one is not ready any more.
func observeMigration(o *Observation) (any, *rules.Cause) {
	cause := rules.Pins(o.Pins)
	if cause == nil {
		cause = rules.Migrated(o.Spec.Database, o.Spec.MigrationSet, len(o.Ledger), len(o.Target), commonEntries(o.Ledger, o.Target))
	}
	return struct {
		Database string  `json:"databaseUid"`
		Set      string  `json:"migrationSetUid"`
		Applied  []Entry `json:"appliedEntries"`
		Target   []Entry `json:"targetEntries"`
		Ready    bool    `json:"ready"`
	}{o.Spec.Database, o.Spec.MigrationSet, present(o.Ledger), present(o.Target), cause == nil}, cause
}

// commonEntries is the length of the longest common beginning.
func commonEntries(a, b []Entry) int {
	n := 0
	for n < len(a) && n < len(b) && a[n] == b[n] {
		n++
	}
	return n
}

// present renders a list without entries as one.
func present(list []Entry) []Entry {
	if list == nil {
		return []Entry{}
	}
	return list
}
