package sqlstore

import (
	"fmt"
	"strings"
	"testing"

	"edged/sqlstore/codec"
)

const series = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i+1 FROM n WHERE i<%d) "

// sql §6: every limit through the door, at its border and one over it; over it nothing is committed.
func TestLimitsThroughTheDoor(t *testing.T) {
	s := openStore(t, Options{})
	d := s.newTestDatabase(t, "a", "CREATE TABLE t(x); CREATE TABLE wide("+commas("c%d", 300)+")")
	text := func(n int) codec.Value { return codec.Text(strings.Repeat("x", n)) }
	params := make([]codec.Value, codec.MaxParams)
	marks := commas("?%d", codec.MaxParams)
	pad := func(n int) string { return "SELECT 1 AS a --" + strings.Repeat("x", n-len("SELECT 1 AS a --")) }
	for _, tt := range []struct {
		name     string
		ok, over codec.Statement
	}{
		{"sql text", stmt(pad(codec.MaxSQLBytes)), stmt(pad(codec.MaxSQLBytes + 1))},
		{"parameters", stmt("SELECT "+marks, params...), stmt("SELECT "+marks+",?101", append(params, codec.Null())...)},
		{"columns", stmt("SELECT " + commas("%d", 100)), stmt("SELECT " + commas("%d", 101))},
		{"rows", stmt(fmt.Sprintf(series, 10_000) + "SELECT i FROM n"), stmt(fmt.Sprintf(series, 10_001) + "SELECT i FROM n")},
		{"column name", stmt(`SELECT 1 AS "` + strings.Repeat("é", 64) + `"`), stmt(`SELECT 1 AS "` + strings.Repeat("é", 64) + `x"`)},
		{"text in", stmt("SELECT length(?1)", text(codec.MaxTextBytes)), stmt("SELECT length(?1)", text(codec.MaxTextBytes+1))},
		{"text out", stmt("SELECT ?1||'y' AS x", text(codec.MaxTextBytes-1)), stmt("SELECT ?1||'y' AS x", text(codec.MaxTextBytes))},
		{"blob out", stmt("SELECT zeroblob(1000000) AS x"), stmt("SELECT zeroblob(1000001) AS x")},
		{"row", stmt("SELECT ?1 AS a, ?2 AS b", text(1_000_000), text(2_000_000-63-1_000_000)), stmt("SELECT ?1 AS a, ?2 AS b", text(1_000_000), text(2_000_001-63-1_000_000))},
		{"returned rows", stmt(fmt.Sprintf(series, 10_000) + "INSERT INTO t SELECT i FROM n WHERE 1 RETURNING x"), stmt(fmt.Sprintf(series, 10_001) + "INSERT INTO t SELECT i FROM n WHERE 1 RETURNING x")},
		{"wide table", stmt("SELECT c1 FROM wide"), stmt("SELECT * FROM wide")},
	} {
		mustExecute(t, d, "DELETE FROM t")
		if _, err := d.Execute(t.Context(), tt.ok); err != nil {
			t.Errorf("%s at its limit: %v", tt.name, err)
		}
		mustExecute(t, d, "DELETE FROM t")
		want := codec.ErrSQL
		if tt.name == "parameters" {
			want = codec.ErrType
		}
		_, err := d.Execute(t.Context(), tt.over)
		wantNamed(t, err, want)
		if n := one(t, d, "SELECT count(*) FROM t"); n != codec.Integer(0) {
			t.Errorf("%s: %d rows committed", tt.name, n.Int64())
		}
	}
}

func commas(form string, n int) string {
	parts := make([]string, n)
	for i := range parts {
		parts[i] = fmt.Sprintf(form, i+1)
	}
	return strings.Join(parts, ",")
}

// sql §6: the whole output of a call, all results together.
func TestOutputOfATransaction(t *testing.T) {
	s := openStore(t, Options{})
	d := s.newTestDatabase(t, "a", "CREATE TABLE t(x)")
	call := func(total int) error {
		envelope := len(`{"results":[]}`) - 1
		statements := []codec.Statement{stmt("INSERT INTO t VALUES(1)")}
		envelope += len(`{"lastInsertRowId":"1","rows":[],"rowsWritten":1}`) + 1
		const each, overhead = 900_000, len(`{"rows":[{"a":{"type":"text","value":""}}],"rowsWritten":0}`) + 1
		for left := total - envelope; left > 0; {
			n := min(left, each)
			if left-n > 0 && left-n < 200 {
				n -= 200
			}
			statements = append(statements, stmt("SELECT ?1 AS a", codec.Text(strings.Repeat("x", n-overhead))))
			left -= n
		}
		r, err := d.Transaction(t.Context(), statements)
		if err == nil && len(codec.AppendResults(nil, r)) != total {
			t.Errorf("the output has %d bytes, not %d", len(codec.AppendResults(nil, r)), total)
		}
		return err
	}
	if err := call(codec.MaxOutputBytes); err != nil {
		t.Error(err)
	}
	mustExecute(t, d, "DELETE FROM t")
	wantNamed(t, call(codec.MaxOutputBytes+1), codec.ErrSQL)
	if n := one(t, d, "SELECT count(*) FROM t"); n != codec.Integer(0) {
		t.Errorf("%d rows committed", n.Int64())
	}
}
