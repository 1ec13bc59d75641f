package sqlstore

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"edged/internal/fault"
	"edged/sqlstore/codec"
	"edged/sqlstore/engine"
)

const shopSchema = `CREATE TABLE item(id INTEGER PRIMARY KEY AUTOINCREMENT, v, "odd ""name" TEXT DEFAULT 'x''y', twice GENERATED ALWAYS AS (v||v));
CREATE TABLE bare(k TEXT PRIMARY KEY, v) WITHOUT ROWID;
CREATE INDEX byv ON item(v); CREATE VIEW seen AS SELECT v FROM item; CREATE TABLE audit(n);
CREATE TRIGGER note AFTER INSERT ON item BEGIN INSERT INTO audit VALUES(NEW.id); END;
CREATE TABLE child(p REFERENCES item(id));`

func shop(t *testing.T, s *Store, uid string) *Database {
	d := s.newTestDatabase(t, uid, shopSchema)
	for _, v := range []codec.Value{codec.Null(), codec.Integer(math.MinInt64), codec.Integer(math.MaxInt64), codec.Real(1), codec.Real(0.1), codec.Real(5e-324), codec.Real(-1.7976931348623157e308),
		codec.Text(""), codec.Text("it's\nπ"), codec.Text("a\x00b"), codec.Blob(nil), codec.Blob([]byte{0, 1, 255})} {
		mustExecute(t, d, "INSERT INTO item(v) VALUES(?1)", v)
	}
	mustExecute(t, d, "INSERT INTO bare VALUES('k', 1)")
	mustExecute(t, d, "INSERT INTO child VALUES(3)")
	mustExecute(t, d, "DELETE FROM item WHERE id=12")
	return d
}

// content is everything an operator can see of a database.
func content(t *testing.T, d *Database) string {
	t.Helper()
	out := ""
	for _, sql := range []string{"SELECT type,name,sql FROM sqlite_schema WHERE name NOT LIKE 'sqlite_autoindex%' ORDER BY name", "SELECT id, typeof(v), quote(v) FROM item ORDER BY id", "SELECT * FROM bare", "SELECT * FROM audit ORDER BY n", "SELECT * FROM child",
		"SELECT * FROM sqlite_sequence", "SELECT * FROM " + engine.Ledger} {
		r, err := d.Inspect(t.Context(), stmt(sql))
		if err != nil {
			t.Fatal(err)
		}
		for _, row := range r.Rows {
			out += fmt.Sprint(row, "\n")
		}
	}
	return out
}

// A backup, restored, and a dump, loaded, are the same database with the same ledger, under another uid too.
func TestBackupAndDumpAreTheSameDatabase(t *testing.T) {
	s := openStore(t, Options{})
	d := shop(t, s, "a")
	want := content(t, d)
	path := filepath.Join(t.TempDir(), "backup.db")
	if err := d.Backup(t.Context(), path); err != nil {
		t.Fatal(err)
	}
	if err := d.Backup(t.Context(), path); fault.CodeOf(err) != fault.Conflict {
		t.Errorf("backup over a file: %v, want conflict", err)
	}
	var text bytes.Buffer
	if err := d.Dump(t.Context(), &text); err != nil {
		t.Fatal(err)
	}
	mustExecute(t, d, "DELETE FROM child")
	for i, put := range []func(d *Database) error{
		func(d *Database) error { return d.Restore(t.Context(), path) },
		func(d *Database) error { return d.Load(t.Context(), bytes.NewReader(text.Bytes())) },
	} {
		for _, uid := range []string{"a", fmt.Sprint("new", i)} {
			other := s.Database(uid, 1)
			if err := put(other); err != nil {
				t.Fatalf("%d %s: %v", i, uid, err)
			}
			if got := content(t, other); got != want {
				t.Errorf("%d %s:\n%s\nwant\n%s", i, uid, got, want)
			}
			if a, err := other.Apply(t.Context(), []MigrationFile{file("0001.sql", shopSchema), file("2.sql", "CREATE TABLE more(x)")}); err != nil || len(a.Ledger) != 2 {
				t.Errorf("%d %s: migrating on: %v, %v", i, uid, a, err)
			}
			mustExecute(t, other, "DELETE FROM child")
		}
	}
}

// A backup is one moment: it goes on while others write, and holds no half of a transaction.
func TestBackupWhileWriting(t *testing.T) {
	s := openStore(t, Options{})
	d := s.newTestDatabase(t, "a", "CREATE TABLE t(x); CREATE TABLE u(x)")
	for range 200 {
		mustExecute(t, d, "INSERT INTO t VALUES(randomblob(9000))")
	}
	mustExecute(t, d, "INSERT INTO u SELECT x FROM t")
	stop := make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() {
		for {
			select {
			case <-stop:
				return
			default:
			}
			if _, err := d.Transaction(context.Background(), []codec.Statement{stmt("INSERT INTO t VALUES(1)"), stmt("INSERT INTO u VALUES(1)")}); err != nil {
				t.Error(err)
				return
			}
		}
	})
	for i := range 3 {
		path := filepath.Join(t.TempDir(), "b.db")
		if err := d.Backup(t.Context(), path); err != nil {
			t.Fatal(err)
		}
		other := s.Database(fmt.Sprint("copy", i), 1)
		if err := other.Restore(t.Context(), path); err != nil {
			t.Fatal(err)
		}
		r, err := other.Query(t.Context(), stmt("SELECT (SELECT count(*) FROM t) AS t, (SELECT count(*) FROM u) AS u"))
		if err != nil || r.Rows[0][0] != r.Rows[0][1] || r.Rows[0][0].Int64() < 200 {
			t.Errorf("%v, %v", r.Rows, err)
		}
	}
	close(stop)
	wg.Wait()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	path := filepath.Join(t.TempDir(), "b.db")
	if err := d.Backup(ctx, path); fault.CodeOf(err) != fault.Canceled {
		t.Errorf("cancelled backup: %v", err)
	}
	if left, _ := filepath.Glob(path + "*"); len(left) != 0 {
		t.Errorf("left %v", left)
	}
}

// What cannot be served is refused, and the database stays as it was.
func TestBadRestoresChangeNothing(t *testing.T) {
	s := openStore(t, Options{})
	d := shop(t, s, "a")
	want := content(t, d)
	dir := t.TempDir()
	good := filepath.Join(dir, "good.db")
	if err := d.Backup(t.Context(), good); err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile(good)
	if err != nil {
		t.Fatal(err)
	}
	for i := len(b) / 2; i < len(b)/2+2000; i++ {
		b[i] ^= 0xff
	}
	for name, data := range map[string][]byte{"damaged": b, "cut": b[:len(b)/2], "text": []byte("hello, this is no database at all, but it is long enough to look like one")} {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, data, 0o600); err != nil {
			t.Fatal(err)
		}
		if err := d.Restore(t.Context(), path); err == nil {
			t.Errorf("%s was restored", name)
		}
	}
	if err := os.WriteFile(good+"-wal", []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := d.Restore(t.Context(), good); fault.CodeOf(err) != fault.Conflict {
		t.Errorf("a file that is in use: %v, want conflict", err)
	}
	for _, sql := range []string{"CREATE TABLE x(a); SELEC", "ATTACH 'x' AS y", "VACUUM", "CREATE TABLE x(a REFERENCES y(b)); INSERT INTO x VALUES(1)", "CREATE TABLE " + engine.Ledger + "(a)", createLedger + "; INSERT INTO " + engine.Ledger + " VALUES(7,'x','y')", createLedger + "; DROP TABLE " + engine.Ledger,
		createLedger + "; CREATE TRIGGER x AFTER INSERT ON " + engine.Ledger + " BEGIN SELECT 1; END", "SAVEPOINT a", "PRAGMA synchronous=OFF"} {
		if err := d.Load(t.Context(), strings.NewReader(sql)); err == nil {
			t.Errorf("%q was loaded", sql)
		}
	}
	if got := content(t, d); got != want {
		t.Errorf("changed to\n%s", got)
	}
	if left, _ := filepath.Glob(filepath.Join(s.opt.Dir, temporaryDir, "*")); len(left) != 0 {
		t.Errorf("left %v", left)
	}
}

// A dump is for any SQLite: the sqlite3 program reads ours and we read its.
func TestDumpAgreesWithTheSQLiteShell(t *testing.T) {
	shell, err := exec.LookPath("sqlite3")
	if err != nil {
		t.Skip("no sqlite3 program")
	}
	s := openStore(t, Options{})
	d := shop(t, s, "a")
	var text, theirs bytes.Buffer
	if err := d.Dump(t.Context(), &text); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "theirs.db")
	for _, step := range []struct {
		in   *bytes.Buffer
		out  *bytes.Buffer
		args []string
	}{{&text, &bytes.Buffer{}, []string{"-bail", path}}, {nil, &theirs, []string{path, ".dump"}}} {
		cmd := exec.Command(shell, step.args...)
		if step.in != nil {
			cmd.Stdin = step.in
		}
		cmd.Stdout, cmd.Stderr = step.out, os.Stderr
		if err := cmd.Run(); err != nil {
			t.Fatal(err)
		}
	}
	other := s.Database("b", 1)
	if err := other.Load(t.Context(), &theirs); err != nil {
		t.Fatal(err)
	}
	want := content(t, d)
	if got := content(t, other); got[strings.Index(got, "\n"):] != want[strings.Index(want, "\n"):] {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

// Operators: reading also the schema and the ledger; writing rows only when asked for; the schema never.
func TestOperatorStatements(t *testing.T) {
	s := openStore(t, Options{})
	d := shop(t, s, "a")
	ctx := t.Context()
	for _, sql := range []string{"SELECT * FROM sqlite_schema", "SELECT count(*) FROM " + engine.Ledger, "PRAGMA table_info(item)", "SELECT * FROM pragma_index_list('item')", "PRAGMA page_count", "PRAGMA integrity_check"} {
		if _, err := d.Inspect(ctx, stmt(sql)); err != nil {
			t.Errorf("%s: %v", sql, err)
		}
	}
	for _, sql := range []string{"INSERT INTO audit VALUES(1)", "PRAGMA user_version=5", "PRAGMA journal_mode=DELETE", "PRAGMA writable_schema=1", "PRAGMA synchronous=OFF", "PRAGMA wal_checkpoint", "ATTACH 'x' AS y", "CREATE TABLE x(a)", "VACUUM", "BEGIN"} {
		if _, err := d.Inspect(ctx, stmt(sql)); fault.NamedOf(err) != codec.ErrSQL {
			t.Errorf("inspect %s: %v", sql, err)
		}
	}
	if r, err := d.Operate(ctx, stmt("INSERT INTO audit VALUES(77)")); err != nil || r.RowsWritten != 1 {
		t.Errorf("%v, %v", r, err)
	}
	for _, sql := range []string{"CREATE TABLE x(a)", "DELETE FROM " + engine.Ledger, "UPDATE sqlite_sequence SET seq=0", "PRAGMA user_version=5", "COMMIT"} {
		if _, err := d.Operate(ctx, stmt(sql)); fault.NamedOf(err) != codec.ErrSQL {
			t.Errorf("operate %s: %v", sql, err)
		}
	}
	tables, err := d.Tables(ctx)
	if err != nil || strings.Join(tables, " ") != "audit bare child item seen" {
		t.Errorf("tables %v, %v", tables, err)
	}
	all, err := d.Schema(ctx, "")
	if err != nil || len(all) != 7 {
		t.Errorf("schema %q, %v", all, err)
	}
	if item, err := d.Schema(ctx, "ITEM"); err != nil || len(item) != 3 {
		t.Errorf("schema of item %q, %v", item, err)
	}
	if r, err := d.Check(ctx); err != nil || r.Entries != 1 || r.Bytes < 4096 {
		t.Errorf("check %+v, %v", r, err)
	}
}

// A slow call is kept with its plan; the log has the plan and no statement text.
func TestSlowCalls(t *testing.T) {
	var log bytes.Buffer
	s := openStore(t, Options{Slow: time.Nanosecond, Log: slog.New(slog.NewTextHandler(&log, nil))})
	d := s.newTestDatabase(t, "a", "CREATE TABLE t(x); CREATE INDEX i ON t(x)")
	mustExecute(t, d, "INSERT INTO t VALUES('secret')")
	one(t, d, "SELECT count(*) FROM t WHERE x='secret'")
	for range slowKept + 5 {
		one(t, d, "SELECT 1")
	}
	slow := s.Slow()
	if len(slow) != slowKept {
		t.Fatalf("%d kept", len(slow))
	}
	s.slow.calls = nil
	one(t, d, "SELECT count(*) FROM t WHERE x='secret'")
	slow = s.Slow()
	if len(slow) != 1 || slow[0].Op != "query" || len(slow[0].Plan) != 1 || !strings.Contains(slow[0].Plan[0], "INDEX i") || !strings.Contains(slow[0].SQL[0], "secret") {
		t.Errorf("%+v", slow)
	}
	if strings.Contains(log.String(), "secret") || !strings.Contains(log.String(), "INDEX i") {
		t.Errorf("log: %s", log.String())
	}
}
