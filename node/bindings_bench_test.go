package node

import (
	"context"
	"testing"

	"edged/sqlstore/codec"
)

// What a call of a database costs before and after the database: text and parameters in, a result out.
func BenchmarkSQLCall(b *testing.B) {
	const sql = "SELECT id, name, score FROM users WHERE id = ?1 AND name <> ?2 AND score >= ?3 ORDER BY score DESC LIMIT 20"
	params := []byte(`[{"type":"integer","value":"4711"},{"type":"text","value":"some \"body\""},{"type":"real","value":1.5}]`)
	run := func(_ context.Context, st codec.Statement) (r codec.Result, err error) {
		if len(st.Params) != 3 || st.SQL != sql {
			b.Fatalf("%+v", st)
		}
		return r, nil
	}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := one(b.Context(), sql, params, run); err != nil {
			b.Fatal(err)
		}
	}
}
