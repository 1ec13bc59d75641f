package facade

import (
	"context"

	"edged/sandbox/engine"
)

// The methods of a database (sql §2).
var (
	sqlExecute     = &Method{"sql", "execute", sqlErrors}
	sqlQuery       = &Method{"sql", "query", sqlErrors}
	sqlTransaction = &Method{"sql", "transaction", sqlErrors}

	sqlErrors = []string{"sql_error", "numeric_out_of_range", "busy", unavailable}
)

// sqlMaxCall bounds the JSON of one call's parameters that is copied out of the guest: a hundred statements of a hundred
// kilobytes with values of a megabyte would be more than a sandbox's memory anyway.
const sqlMaxCall = 64 << 20

// sqlRun(number, method, sql, parameters as JSON) brings the result. Methods: 0 execute, 1 query, 2 transaction, whose
// statements stand in the place of the parameters.
func hostSQLRun(in *engine.Instance, args []engine.Value) engine.Value {
	b, c, ok := of(in, args[0])
	which, ok2 := args[1].Int()
	text, ok3 := in.AppendString(nil, args[2])
	params, ok4 := in.AppendString(nil, args[3])
	if !ok || !ok2 || !ok3 || !ok4 || b.SQL == nil || which < 0 || which > 2 {
		return badCall(in)
	}
	if len(params) > sqlMaxCall {
		return in.ThrowError("sql_error", "the parameters are too large")
	}
	m := [...]*Method{sqlExecute, sqlQuery, sqlTransaction}[which]
	return start(in, c, b, m, len(text)+len(params), func(ctx context.Context, room Room) (func(*engine.Instance) engine.Value, error) {
		var result []byte
		var err error
		switch m {
		case sqlExecute:
			result, err = b.SQL.Execute(ctx, string(text), params)
		case sqlQuery:
			result, err = b.SQL.Query(ctx, string(text), params)
		default:
			result, err = b.SQL.Transaction(ctx, params)
		}
		if err == nil {
			err = room.Take(ctx, len(result))
		}
		return func(in *engine.Instance) engine.Value { return in.JSON(result) }, err
	})
}
