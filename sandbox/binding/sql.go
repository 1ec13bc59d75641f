package binding

import "context"

// SQL is one database. Parameters and results are JSON in the tagged form of sql §3; the door checks every limit of
// sql §6. Named errors: sql_error, numeric_out_of_range, busy, backend_unavailable; a value of a wrong shape is Invalid.
type SQL interface {
	// Execute runs one statement and commits it. params is a JSON array.
	Execute(ctx context.Context, sql string, params []byte) (result []byte, err error)
	// Query runs one reading statement in a transaction that is rolled back.
	Query(ctx context.Context, sql string, params []byte) (result []byte, err error)
	// Transaction runs all of the statements or none. statements is a JSON array of {"sql", "params"?}.
	Transaction(ctx context.Context, statements []byte) (results []byte, err error)
}
