package engine

import (
	"context"
	"errors"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/ncruces/go-sqlite3"

	"edged/internal/fault"
	"edged/sqlstore/codec"
)

// What this package relies on in the driver and in SQLite. A new version of either that breaks one of these breaks us.
func TestDriverFacts(t *testing.T) {
	c := open(t, Options{}, schema+"CREATE TABLE u(x UNIQUE); INSERT INTO u VALUES(1);")
	raw := c.db
	c.mode = Host
	t.Run("text after the first statement is returned", func(t *testing.T) {
		s, tail, err := raw.Prepare("SELECT 1 ; -- a\n SELECT 2")
		if err != nil || tail != " -- a\n SELECT 2" {
			t.Fatalf("%q, %v", tail, err)
		}
		s.Close()
	})
	t.Run("no statement is nil without an error", func(t *testing.T) {
		for _, sql := range []string{"", " ", ";;", "-- x", "/* x */ ;"} {
			if s, _, err := raw.Prepare(sql); s != nil || err != nil {
				t.Errorf("%q: %v, %v", sql, s, err)
			}
		}
	})
	t.Run("read-only is a property of the compiled statement", func(t *testing.T) {
		for sql, want := range map[string]bool{"SELECT 1": true, "INSERT INTO u SELECT 5 WHERE 0": false, "WITH a AS (SELECT 1) DELETE FROM u": false, "EXPLAIN SELECT 1": true, "EXPLAIN DELETE FROM u": false} {
			s, _, err := raw.Prepare(sql)
			if err != nil || s.ReadOnly() != want {
				t.Errorf("%q: %v, want %t", sql, err, want)
			}
			s.Close()
		}
	})
	t.Run("OR ROLLBACK ends the transaction", func(t *testing.T) {
		if err := errors.Join(raw.Exec("BEGIN"), raw.Exec("INSERT INTO u VALUES(2)")); err != nil {
			t.Fatal(err)
		}
		if err := raw.Exec("INSERT OR ROLLBACK INTO u VALUES(1)"); err == nil || !raw.GetAutocommit() {
			t.Errorf("%v, autocommit %t", err, raw.GetAutocommit())
		}
	})
	t.Run("changes keeps its value after a SELECT", func(t *testing.T) {
		if err := errors.Join(raw.Exec("INSERT INTO log VALUES(1),(2)"), raw.Exec("SELECT 1")); err != nil {
			t.Fatal(err)
		}
		if n := raw.Changes(); n != 2 {
			t.Errorf("%d", n)
		}
	})
	t.Run("a new WAL database is not synchronous by itself", func(t *testing.T) {
		plain, err := sqlite3.Open(filepath.Join(t.TempDir(), "x.db"))
		if err != nil {
			t.Fatal(err)
		}
		defer plain.Close()
		if err := plain.Exec("PRAGMA journal_mode=WAL; CREATE TABLE t(x)"); err != nil {
			t.Fatal(err)
		}
		s, _, err := plain.Prepare("PRAGMA synchronous")
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		if !s.Step() || s.ColumnInt(0) != 1 {
			t.Errorf("synchronous %d: the build's default changed", s.ColumnInt(0))
		}
	})
	t.Run("a compiled statement is authorized again when SQLite compiles it anew", func(t *testing.T) {
		st, err := c.compile("SELECT * FROM u", Write)
		if err != nil {
			t.Fatal(err)
		}
		c.mode = Host
		if err := raw.Exec("ALTER TABLE u RENAME TO u_old; CREATE VIEW u AS SELECT * FROM " + Ledger); err != nil {
			t.Fatal(err)
		}
		_, err = c.run(t.Context(), Write, st, nil, &codec.Meter{})
		if err == nil {
			t.Error("the statement reads the ledger through the new view")
		}
		c.rollback()
	})
}

// A statement under a deadline ends soon after it, and the connection goes on.
func TestInterrupt(t *testing.T) {
	c := open(t, Options{}, schema)
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	endless := "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i+1 FROM n) SELECT count(*) FROM n"
	start := time.Now()
	_, err := c.Query(ctx, Read, codec.Statement{SQL: endless}, &codec.Meter{})
	if fault.NamedOf(err) != codec.ErrSQL || time.Since(start) > 10*time.Second {
		t.Errorf("%v after %v", err, time.Since(start))
	}
	must(t)(query(c, "SELECT 1"))
}

// sql §3: every storage class comes back as itself, whatever the column is declared as.
func TestStorageClassesAreExact(t *testing.T) {
	c := open(t, Options{}, "CREATE TABLE k(i INTEGER, r REAL, t TEXT, b BLOB, d DATE, bo BOOLEAN, n NUMERIC, x)")
	blob := codec.Blob([]byte{0, 255})
	for _, tt := range []struct{ in, want []codec.Value }{
		{[]codec.Value{codec.Integer(1), codec.Real(1), codec.Text("é\x00😀"), blob, codec.Integer(20240101), codec.Integer(1), codec.Real(1), codec.Real(1)},
			[]codec.Value{codec.Integer(1), codec.Real(1), codec.Text("é\x00😀"), blob, codec.Integer(20240101), codec.Integer(1), codec.Integer(1), codec.Real(1)}},
		{[]codec.Value{codec.Integer(9223372036854775807), codec.Integer(3), codec.Integer(5), codec.Text("2"), codec.Text("2024-01-01"), codec.Text("true"), codec.Text("7"), codec.Blob(nil)},
			[]codec.Value{codec.Integer(9223372036854775807), codec.Real(3), codec.Text("5"), codec.Text("2"), codec.Text("2024-01-01"), codec.Text("true"), codec.Integer(7), codec.Blob(nil)}},
		{[]codec.Value{codec.Integer(-9223372036854775808), codec.Null(), codec.Text(""), codec.Null(), codec.Null(), codec.Null(), codec.Null(), codec.Text("")},
			[]codec.Value{codec.Integer(-9223372036854775808), codec.Null(), codec.Text(""), codec.Null(), codec.Null(), codec.Null(), codec.Null(), codec.Text("")}},
	} {
		must(t)(execute(c, "DELETE FROM k"))
		must(t)(execute(c, "INSERT INTO k VALUES(?1,?2,?3,?4,?5,?6,?7,?8)", tt.in...))
		r := must(t)(query(c, "SELECT * FROM k"))
		for i, v := range r.Rows[0] {
			if v != tt.want[i] {
				t.Errorf("column %s: %v %v, want %v %v", r.Columns[i], v.Kind(), v, tt.want[i].Kind(), tt.want[i])
			}
		}
	}
	r := must(t)(query(c, `SELECT 1 AS "__proto__", ?2 AS "", :name AS "a b"`, codec.Null(), codec.Real(0.1), codec.Text("third")))
	if strings.Join(r.Columns, "|") != "__proto__||a b" || r.Rows[0][2] != codec.Text("third") {
		t.Errorf("%q %v", r.Columns, r.Rows)
	}
}

// A connection that ran something large is known, so that it can be replaced; ordinary statements do not make one large.
func TestLarge(t *testing.T) {
	c := open(t, Options{}, schema)
	for range 50 {
		must(t)(execute(c, "INSERT INTO t(v) VALUES(zeroblob(100000))"))
	}
	if c.Large() {
		t.Error("large after small statements")
	}
	must(t)(query(c, "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i+1 FROM n WHERE i<300000) SELECT count(DISTINCT i) FROM n"))
	if !c.Large() {
		t.Error("not large after 300,000 rows were told apart")
	}
}
