package codec

import "edged/internal/fault"

// The names by which an application knows a failure (sql §2). ErrType stands for JavaScript's TypeError: the call had the
// wrong shape and nothing ran.
var (
	ErrType    = fault.Name(fault.Invalid, "sql_type_error", 144)          // wrong types, counts out of bounds, unknown members
	ErrSQL     = fault.Name(fault.Invalid, "sql_error", 145)               // the statement, its effect, its values or its result
	ErrRange   = fault.Name(fault.Invalid, "numeric_out_of_range", 146)    // a REAL that is not finite, in or out
	ErrBusy    = fault.Name(fault.Unavailable, "busy", 147)                // write contention outlasted the wait; a retry may help
	ErrBackend = fault.Name(fault.Unavailable, "backend_unavailable", 148) // the database is not there, or its disk or quota is full
)
