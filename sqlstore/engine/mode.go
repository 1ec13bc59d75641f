package engine

// Mode says on whose behalf a statement is compiled and run.
type Mode uint8

// The modes. Each names what it allows; everything else is refused.
const (
	Host    Mode = iota // texts of this room itself: everything
	Read                // query: reading the application's tables
	Write               // execute, transaction: also changing their rows
	Migrate             // a migration file: also the schema, but no transaction control, PRAGMA, ATTACH, VACUUM or ledger
	Inspect             // an operator who reads: also the schema, the ledger and the PRAGMAs that only tell
	Operate             // an operator who writes: Inspect, and changing rows of the application's tables
	Load                // a dump that is loaded into an empty database: Migrate, and filling the ledger
)
