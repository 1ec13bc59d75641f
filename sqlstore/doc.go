// Package sqlstore holds SQLite databases: one file each, exact values, fenced statements, migrations (sql.md of the
// contract).
//
//	options.go    Options
//	store.go      Store: create, delete, list
//	pool.go       which databases are open: opened on demand, closed when unused, held alone for a while
//	database.go   Database: execute, query, transaction; the queue of writers and the readers
//	ledger.go     the ledger of applied migrations
//	migrate.go    Apply: the files of a migration set, one transaction each
//	operate.go    operators: shell statements, the schema, checks
//	transfer.go   online backup, restore, dump as SQL text, load
//	slow.go       the slow calls of late, with their plans
//	files.go      names on the disk
//	metrics.go    Metrics
//	fault.go      the names of sql §8.2
//	codec/        values and limits, their JSON form; pure
//	engine/       the door to the SQLite driver
//
// Invariants. A call is durable (fsync) before it is answered and has no effect if it fails. A database has one writing
// connection, whose users take turns in the order they came; busy is told only after Options.WriteWait. Application code
// reaches neither the schema's tables nor the ledger. A file named "open" lies beside a database while it is open; finding one
// there means the last holder died, and the whole file is checked before it is served. A database under a newer epoch
// refuses older handles. No goroutine but Run's caller; a call runs on its caller's.
//
// Not here: Resources, references between them, artifacts (control); the JavaScript surface (sandbox). Nothing here copies a
// database to another node.
package sqlstore
