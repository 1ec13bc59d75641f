package sqlstore

import "edged/internal/fault"

// The names of a failed application of migrations (sql §8.2). The names an application sees are in package codec.
var (
	ErrHistory      = fault.Name(fault.Conflict, "migration_history_conflict", 149) // the ledger is no prefix of the target; nothing ran
	ErrMigration    = fault.Name(fault.Invalid, "migration_sql_error", 150)         // SQL syntax, a forbidden effect, a failure while running
	ErrDatabaseBusy = fault.Name(fault.Unavailable, "database_busy", 151)           // others had the database for longer than the wait
)
