package engine

import (
	"context"
	"path/filepath"
	"strings"
	"testing"

	"edged/internal/fault"
	"edged/sqlstore/codec"
)

func open(t testing.TB, opt Options, schema string) *Conn {
	t.Helper()
	if opt.Path == "" {
		opt.Path = filepath.Join(t.TempDir(), "main.db")
	}
	opt.Create, opt.Scripts = true, true
	c, err := Open(opt)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	ledger := "CREATE TABLE " + Ledger + "(position INTEGER PRIMARY KEY, path TEXT, sha256 TEXT)"
	if err := c.Scan(t.Context(), Host, ledger, nil, func([]codec.Value) error { return nil }); err != nil {
		t.Fatal(err)
	}
	if schema != "" {
		define(t, c, schema)
	}
	opt.Create, opt.Scripts = false, false
	user, err := Open(opt)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { user.Close() })
	return user
}

func define(t testing.TB, c *Conn, schema string) {
	t.Helper()
	err := c.Transact(t.Context(), func() error { return c.Script(t.Context(), Migrate, schema) })
	if err != nil {
		t.Fatal(err)
	}
}

func execute(c *Conn, sql string, params ...codec.Value) (codec.Result, error) {
	r, err := c.Execute(context.Background(), Write, []codec.Statement{{SQL: sql, Params: params}}, &codec.Meter{})
	if err != nil {
		return codec.Result{}, err
	}
	return r[0], nil
}

func query(c *Conn, sql string, params ...codec.Value) (codec.Result, error) {
	return c.Query(context.Background(), Read, codec.Statement{SQL: sql, Params: params}, &codec.Meter{})
}

func must(t testing.TB) func(codec.Result, error) codec.Result {
	return func(r codec.Result, err error) codec.Result {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
}

const schema = `CREATE TABLE t(id INTEGER PRIMARY KEY, v);
CREATE TABLE nr(k TEXT PRIMARY KEY, v) WITHOUT ROWID;
CREATE TABLE log(x);
CREATE TRIGGER tr AFTER INSERT ON nr BEGIN INSERT INTO log VALUES('BEGIN; COMMIT; PRAGMA x; DROP TABLE t'); END;
CREATE VIEW w AS SELECT id, v FROM t;
CREATE TRIGGER wi INSTEAD OF INSERT ON w BEGIN INSERT INTO t(v) VALUES(NEW.v); END;
CREATE TABLE auto(id INTEGER PRIMARY KEY AUTOINCREMENT, v);
CREATE TABLE parent(id INTEGER PRIMARY KEY);
CREATE TABLE child(p REFERENCES parent(id) DEFERRABLE INITIALLY DEFERRED);
CREATE VIEW spy AS SELECT * FROM sqlite_schema;`

// sql §§3, 6: rowsWritten and lastInsertRowId.
func TestResultOfEachKindOfStatement(t *testing.T) {
	c := open(t, Options{}, schema)
	for _, tt := range []struct {
		sql      string
		written  int64
		inserted bool
		id       int64
	}{
		{"INSERT INTO t(v) VALUES('a'),('b')", 2, true, 2},
		{"SELECT * FROM t", 0, false, 0},
		{"UPDATE t SET v='c'", 2, false, 0},
		{"UPDATE t SET v='c' WHERE 0", 0, false, 0},
		{"INSERT INTO t(id,v) VALUES(2,'x') ON CONFLICT(id) DO UPDATE SET v='y'", 1, false, 0},
		{"INSERT INTO t(id,v) VALUES(3,'x') ON CONFLICT(id) DO UPDATE SET v='y'", 1, true, 3},
		{"INSERT OR IGNORE INTO t(id) VALUES(1)", 0, false, 0},
		{"REPLACE INTO t(id,v) VALUES(3,'z')", 1, true, 3},
		{"INSERT INTO nr VALUES('k',1)", 1, false, 0},
		{"INSERT INTO w(v) VALUES('through a view')", 0, false, 0},
		{"INSERT INTO auto(v) VALUES(1)", 1, true, 1},
		{"INSERT INTO auto(v) SELECT 1 WHERE 0", 0, false, 0},
		{"INSERT INTO t(v) VALUES(last_insert_rowid()) RETURNING v", 1, true, 5},
		{"WITH x(y) AS (SELECT 5) INSERT INTO t(v) SELECT y FROM x", 1, true, 6},
		{"DELETE FROM t WHERE id=6", 1, false, 0},
		{"EXPLAIN DELETE FROM t", 0, false, 0},
		{"EXPLAIN INSERT INTO t(id) VALUES(6)", 0, false, 0},
		{"INSERT INTO t(id) VALUES(6)", 1, true, 6},
		{"DELETE FROM t WHERE id=6", 1, false, 0},
		{"INSERT INTO t(id) VALUES(6) ON CONFLICT(id) DO UPDATE SET v=1", 1, true, 6},
		{"DELETE FROM t", 6, false, 0},
	} {
		r, err := execute(c, tt.sql)
		if err != nil || r.RowsWritten != tt.written || r.Inserted != tt.inserted || r.LastInsertRowID != tt.id {
			t.Errorf("%s: written %d, inserted %t, id %d, %v; want %d, %t, %d", tt.sql, r.RowsWritten, r.Inserted, r.LastInsertRowID, err, tt.written, tt.inserted, tt.id)
		}
	}
}

// sql §5: what is refused in every method, by its effect.
func TestForbiddenStatements(t *testing.T) {
	c := open(t, Options{}, schema)
	for _, sql := range []string{
		"", " -- nothing", "SELECT 1; SELECT 2", "SELECT 1; garbage", "SELECT 1;;-- x\n;SELECT 2", "SELECT 1\x00; SELECT 2",
		"BEGIN", "COMMIT", "END", "ROLLBACK", "SAVEPOINT a", "RELEASE a", "EXPLAIN COMMIT",
		"CREATE TABLE x(a)", "CREATE TEMP TABLE x(a)", "CREATE INDEX i ON t(v)", "CREATE VIEW x AS SELECT 1", "CREATE TEMP VIEW x AS SELECT 1",
		"CREATE TRIGGER x AFTER INSERT ON t BEGIN SELECT 1; END", "ALTER TABLE t ADD c", "ALTER TABLE t RENAME TO u", "DROP TABLE t", "DROP VIEW w",
		"CREATE VIRTUAL TABLE x USING generate_series", "CREATE TABLE x AS SELECT 1", "CREATE TEMP TRIGGER x AFTER INSERT ON t BEGIN SELECT 1; END",
		"ATTACH ':memory:' AS x", "ATTACH 'file' AS x", "DETACH main", "VACUUM", "VACUUM INTO 'f'", "ANALYZE", "REINDEX", "PRAGMA user_version", "PRAGMA user_version=4",
		"SELECT * FROM pragma_table_info('t')", "SELECT * FROM pragma_user_version", "SELECT load_extension('x')",
		"SELECT * FROM sqlite_schema", "SELECT count(*) FROM sqlite_master", "SELECT * FROM main.sqlite_schema", "SELECT * FROM sqlite_temp_schema", "SELECT * FROM sqlite_sequence",
		"SELECT * FROM spy", "SELECT 1 WHERE EXISTS(SELECT 1 FROM sqlite_schema)", "INSERT INTO sqlite_schema VALUES(1,2,3,4,5)", "UPDATE sqlite_sequence SET seq=9", "DELETE FROM sqlite_schema",
		"SELECT * FROM generate_series(1,2)", "SELECT * FROM dbstat", "SELECT decimal_mul('1','2')", "SELECT regexp('a','b')",
		"SELECT count(*) FROM _edged_migrations", "SELECT count(*) FROM _EDGED_migrations", "INSERT INTO _edged_migrations VALUES(1,2,3)", "DELETE FROM \"_Edged_Migrations\"",
		"SELECT a.v FROM t a JOIN _edged_migrations",
	} {
		for name, err := range map[string]error{"execute": second(execute(c, sql)), "query": second(query(c, sql))} {
			if fault.NamedOf(err) != codec.ErrSQL {
				t.Errorf("%s %q: %v, want sql_error", name, sql, err)
			}
		}
		if c.Broken() || !c.db.GetAutocommit() {
			t.Fatalf("%q left the connection unclean", sql)
		}
	}
}

func second(_ codec.Result, err error) error { return err }

// sql §5: forbidden words inside literals, comments, identifiers and the bodies of triggers are no reason to refuse.
func TestForbiddenWordsWithoutEffect(t *testing.T) {
	c := open(t, Options{}, schema+`CREATE TABLE "DROP TABLE"("PRAGMA", "COMMIT;");`)
	for _, sql := range []string{
		"SELECT 'BEGIN; DROP TABLE t', \"COMMIT;\" FROM \"DROP TABLE\" -- ATTACH",
		"/* PRAGMA x; */ SELECT 1 AS \"VACUUM\" ; -- CREATE TABLE x(a)\n /* DROP */ ;",
		"INSERT INTO nr VALUES('k', 'DROP')",
		"SELECT * FROM json_each('[1,2]')", "SELECT * FROM json_tree('{\"a\":1}')",
		"EXPLAIN QUERY PLAN SELECT * FROM t", "SELECT date('now'), count(*), printf('%d', 1), base64(x'00')",
		"WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i+1 FROM n WHERE i<5) SELECT sum(i) FROM n",
		"SELECT sum(v) OVER (ORDER BY id) AS s FROM t", "VALUES(1)",
	} {
		if _, err := execute(c, sql); err != nil {
			t.Errorf("%q: %v", sql, err)
		}
	}
	if r := must(t)(query(c, "SELECT x FROM log")); len(r.Rows) != 1 {
		t.Errorf("the trigger wrote %d rows", len(r.Rows))
	}
}

// sql §2: query refuses a statement that can write, and never leaves an effect.
func TestQueryRefusesWriters(t *testing.T) {
	c := open(t, Options{}, schema)
	for _, sql := range []string{"INSERT INTO t(v) VALUES(1)", "INSERT INTO t(v) SELECT 1 WHERE 0", "UPDATE t SET v=1 WHERE 0", "DELETE FROM t WHERE 0", "INSERT INTO t(v) VALUES(1) RETURNING v", "WITH x AS (SELECT 1) DELETE FROM t WHERE 0", "EXPLAIN INSERT INTO t(v) VALUES(1)"} {
		if _, err := query(c, sql); fault.NamedOf(err) != codec.ErrSQL {
			t.Errorf("%q: %v, want sql_error", sql, err)
		}
	}
	if r := must(t)(query(c, "SELECT count(*) AS n FROM t")); r.Rows[0][0] != codec.Integer(0) {
		t.Errorf("rows: %v", r.Rows)
	}
}

// sql §2: whatever SQLite did to the transaction, nothing stays and the next call works.
func TestRollbackWhateverHappened(t *testing.T) {
	c := open(t, Options{MaxBytes: 40 * PageBytes}, schema+"CREATE TABLE u(x UNIQUE); INSERT INTO u VALUES(1);")
	big := codec.Text(strings.Repeat("x", 900_000))
	slow, cancel := context.WithCancelCause(t.Context())
	cancel(nil)
	for _, tt := range []struct {
		ctx  context.Context
		sql  string
		p    []codec.Value
		want *fault.Named
	}{
		{nil, "INSERT INTO u VALUES(1)", nil, codec.ErrSQL},
		{nil, "INSERT OR ROLLBACK INTO u VALUES(1)", nil, codec.ErrSQL},
		{nil, "INSERT OR FAIL INTO u VALUES(5),(1)", nil, codec.ErrSQL},
		{nil, "INSERT INTO child VALUES(99)", nil, codec.ErrSQL}, // fails at COMMIT
		{nil, "INSERT INTO log VALUES(?1)", []codec.Value{big}, codec.ErrBackend},
		{nil, "SELECT 1e999 AS x", nil, codec.ErrRange},
		{nil, "SELECT 1 AS a, 2 AS a", nil, codec.ErrSQL},
		{nil, "SELECT CAST(x'ff' AS TEXT) AS a", nil, codec.ErrSQL},
		{nil, "SELECT abs(-9223372036854775807-1)", nil, codec.ErrSQL},
		{nil, "SELECT ?1", nil, codec.ErrSQL},
		{nil, "SELECT ?1", []codec.Value{codec.Null(), codec.Null()}, codec.ErrSQL},
		{nil, "SELECT ?101", nil, codec.ErrSQL},
		{nil, "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i+1 FROM n WHERE i<20000) SELECT i FROM n", nil, codec.ErrSQL}, // rows
		{slow, "SELECT 1", nil, nil},
	} {
		ctx := tt.ctx
		if ctx == nil {
			ctx = t.Context()
		}
		_, err := c.Execute(ctx, Write, []codec.Statement{{SQL: "INSERT INTO log VALUES('before')"}, {SQL: tt.sql, Params: tt.p}}, codec.NewTransactionMeter())
		if tt.ctx != nil && fault.CodeOf(err) == fault.Canceled {
			err = nil
		}
		if fault.NamedOf(err) != tt.want {
			t.Errorf("%s: %v, want %v", tt.sql, err, tt.want)
		}
		if r := must(t)(query(c, "SELECT count(*) AS n FROM log")); r.Rows[0][0] != codec.Integer(0) {
			t.Errorf("%s: left %v rows", tt.sql, r.Rows[0][0].Int64())
		}
	}
	must(t)(execute(c, "INSERT INTO log VALUES('after')"))
}
