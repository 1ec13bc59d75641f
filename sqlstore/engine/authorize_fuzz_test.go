package engine

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"edged/sqlstore/codec"
)

// Whatever SQL an application sends: no file appears, schema and ledger stay, the connection stays usable, and query writes
// nothing at all (sql §5).
func FuzzApplicationStatement(f *testing.F) {
	for _, s := range []string{
		"SELECT * FROM t", "INSERT INTO t(v) VALUES(1)", "ATTACH 'x.db' AS y", "VACUUM INTO 'y.db'", "PRAGMA writable_schema=1", "PRAGMA journal_mode=DELETE", "CREATE TABLE x(a)",
		"WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i+1 FROM n LIMIT 9) SELECT * FROM n", "UPDATE _edged_migrations SET path='x'", "DELETE FROM sqlite_schema", "REPLACE INTO t VALUES(1,2) RETURNING *",
		"INSERT INTO w(v) VALUES(1)", "SELECT * FROM pragma_database_list", "EXPLAIN QUERY PLAN DELETE FROM t", "DROP TRIGGER tr", "COMMIT; BEGIN", "SELECT 1; DROP TABLE t", "ALTER TABLE t RENAME TO u", "ANALYZE", "DETACH main",
		"INSERT OR ROLLBACK INTO t(id) VALUES(1),(1)", "SELECT zeroblob(9000000)", "SELECT json_group_array(value) FROM json_each('[1,2]')", "UPDATE t SET v=(SELECT sql FROM sqlite_schema)",
	} {
		f.Add(s)
	}
	dir := f.TempDir()
	path := filepath.Join(dir, "main.db")
	c := open(f, Options{Path: path, MaxMemory: 16 << 20, MaxBytes: 1 << 20}, schema)
	state := func(t *testing.T) string {
		out := ""
		for _, sql := range []string{"SELECT count(*), group_concat(sql) FROM sqlite_schema", "SELECT count(*) FROM " + Ledger, "PRAGMA user_version", "PRAGMA journal_mode", "PRAGMA database_list"} {
			if err := c.Scan(context.Background(), Host, sql, nil, func(row []codec.Value) error {
				out += fmt.Sprint(row)
				return nil
			}); err != nil {
				t.Fatal(err)
			}
		}
		return out
	}
	rows := func(t *testing.T) string {
		out := ""
		for _, table := range []string{"t", "nr", "log", "auto", "parent", "child"} {
			if err := c.Scan(context.Background(), Host, "SELECT * FROM "+table, nil, func(row []codec.Value) error {
				out += fmt.Sprint(row)
				return nil
			}); err != nil {
				t.Fatal(err)
			}
		}
		return out
	}
	files := func(t *testing.T) string {
		entries, err := os.ReadDir(dir)
		if err != nil {
			t.Fatal(err)
		}
		return fmt.Sprint(entries)
	}
	f.Fuzz(func(t *testing.T, sql string) {
		if len(sql) > 4096 {
			return
		}
		if c.Broken() { // memory ran out: as the room's root does, go on with a fresh connection
			c.Close()
			var err error
			if c, err = Open(Options{Path: path, MaxMemory: 16 << 20, MaxBytes: 1 << 20}); err != nil {
				t.Fatal(err)
			}
		}
		before, data, there := state(t), rows(t), files(t)
		ctx, cancel := context.WithTimeout(context.Background(), 100*time.Millisecond)
		defer cancel()
		c.Query(ctx, Read, codec.Statement{SQL: sql}, &codec.Meter{})
		if !c.Broken() && rows(t) != data {
			t.Fatalf("query %q wrote", sql)
		}
		if c.Broken() {
			return
		}
		results, err := c.Execute(ctx, Write, []codec.Statement{{SQL: sql}}, &codec.Meter{})
		if c.Broken() {
			return
		}
		if !c.db.GetAutocommit() {
			t.Fatalf("%q left a transaction open", sql)
		}
		if after := state(t); after != before {
			t.Fatalf("%q changed\n%s to\n%s", sql, before, after)
		}
		if got := files(t); got != there {
			t.Fatalf("%q made files: %s", sql, got)
		}
		if changed := rows(t) != data; changed && (err != nil || results[0].RowsWritten == 0 && len(sql) < 10) {
			t.Fatalf("%q failed (%v) and left something", sql, err)
		}
		if _, err := execute(c, "DELETE FROM t"); err != nil {
			t.Fatalf("after %q: %v", sql, err)
		}
	})
}
