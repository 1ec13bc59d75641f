package sqlstore

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"testing"
	"time"

	"edged/internal/fault"
	"edged/sqlstore/codec"
	"edged/sqlstore/engine"
)

// sql §8.1: only the rest of the target runs, in order, and the ledger has one entry per file.
func TestApplyRunsTheSuffix(t *testing.T) {
	s := openStore(t, Options{})
	d := s.newTestDatabase(t, "a", "")
	files := []MigrationFile{
		file("1.sql", "CREATE TABLE t(x); INSERT INTO t VALUES('1;1'); -- ; CREATE TABLE no(x);\n"),
		file("2.sql", "CREATE TRIGGER tr AFTER INSERT ON t BEGIN UPDATE t SET x=x||'!' WHERE rowid=NEW.rowid; SELECT 1; END; INSERT INTO t VALUES('2')"),
		file("3.sql", "/* nothing but a comment */"),
		file("4.sql", "ALTER TABLE t ADD COLUMN y DEFAULT 4; CREATE INDEX i ON t(y); CREATE VIEW v AS SELECT * FROM t; ANALYZE; DROP VIEW v"),
	}
	a, err := d.Apply(t.Context(), files[:2])
	if err != nil || fmt.Sprint(a.Files) != "[applied applied]" {
		t.Fatalf("%v, %v", a, err)
	}
	a, err = d.Apply(t.Context(), files)
	if err != nil || fmt.Sprint(a.Files) != "[applied_before applied_before applied applied]" || len(a.Ledger) != 4 {
		t.Fatalf("%v, %v", a, err)
	}
	a, err = d.Apply(t.Context(), files)
	if err != nil || fmt.Sprint(a.Files) != "[applied_before applied_before applied_before applied_before]" {
		t.Fatalf("again: %v, %v", a, err)
	}
	ledger, err := d.Ledger(t.Context())
	if err != nil || fmt.Sprint(ledger) != fmt.Sprint(a.Ledger) || ledger[3] != (Entry{"4.sql", files[3].SHA256}) {
		t.Errorf("ledger %v, %v", ledger, err)
	}
	r, err := d.Query(t.Context(), stmt("SELECT group_concat(x||y) FROM t"))
	if err != nil || r.Rows[0][0] != codec.Text("1;14,2!4") {
		t.Errorf("%v, %v", r.Rows, err)
	}
}

// sql §8.2: a failed file is rolled back with its entry, earlier ones stay, the next attempt goes on there.
func TestFailedFileRollsBackAndResumes(t *testing.T) {
	s := openStore(t, Options{})
	for i, bad := range []string{
		"CREATE TABLE half(x); INSERT INTO half VALUES(1); SELEC 1", "CREATE TABLE half(x); INSERT INTO t VALUES(1)", "CREATE TABLE half(x); INSERT OR ROLLBACK INTO t VALUES(1)",
		"CREATE TABLE half(x); COMMIT", "CREATE TABLE half(x); BEGIN", "CREATE TABLE half(x); END; SELECT 1", "CREATE TABLE half(x); ROLLBACK", "CREATE TABLE half(x); SAVEPOINT s",
		"CREATE TABLE half(x); VACUUM", "CREATE TABLE half(x); VACUUM INTO 'x.db'", "CREATE TABLE half(x); PRAGMA foreign_keys=OFF", "CREATE TABLE half(x); PRAGMA user_version", "CREATE TABLE half(x); ATTACH 'x.db' AS x",
		"CREATE TABLE half(x); SELECT * FROM pragma_table_list", "CREATE TABLE half(x); SELECT load_extension('x')", "CREATE TABLE half(x); CREATE VIRTUAL TABLE v USING generate_series",
		"CREATE TABLE half(x); SELECT * FROM _edged_migrations", "CREATE TABLE half(x); INSERT INTO _edged_migrations VALUES(9,'x','y')", "CREATE TABLE half(x); DELETE FROM main._EDGED_MIGRATIONS",
		"CREATE TABLE half(x); DROP TABLE _edged_migrations", "CREATE TABLE half(x); ALTER TABLE _edged_migrations RENAME TO z", "CREATE TABLE half(x); CREATE INDEX i ON _edged_migrations(path)",
		"CREATE TABLE half(x); CREATE TRIGGER i AFTER INSERT ON _edged_migrations BEGIN SELECT 1; END", "CREATE TABLE half(x); CREATE TEMP TRIGGER i AFTER INSERT ON main._edged_migrations BEGIN SELECT 1; END",
		"CREATE TABLE half(x); CREATE TEMP TABLE _edged_migrations(a)", "CREATE TABLE half(x); CREATE VIEW spy AS SELECT * FROM _edged_migrations; SELECT * FROM spy",
		"CREATE TABLE half(x); CREATE TRIGGER tr AFTER INSERT ON half BEGIN DELETE FROM _edged_migrations; END; INSERT INTO half VALUES(1)",
		"CREATE TABLE half(x); DELETE FROM sqlite_schema", "CREATE TABLE half(x); INSERT INTO sqlite_schema VALUES('table','z','z',2,'')", "CREATE TABLE half(x); CREATE TABLE pragma_x(a)",
		"CREATE TABLE half(x REFERENCES t(x)); INSERT INTO half VALUES(77)", "CREATE TABLE half(x); INSERT INTO half VALUES('open", "CREATE TABLE half(x); SELECT \x00",
	} {
		d := s.newTestDatabase(t, fmt.Sprint(i), "")
		first, last := file("1.sql", "CREATE TABLE t(x PRIMARY KEY); INSERT INTO t VALUES(1)"), file("3.sql", "CREATE TABLE u(x)")
		a, err := d.Apply(t.Context(), []MigrationFile{first, file("2.sql", bad), last})
		wantNamed(t, err, ErrMigration)
		if fmt.Sprint(a.Files) != "[applied failed not_run]" || a.Effect != EffectPartial {
			t.Errorf("%s: %v", bad, a)
		}
		a, err = d.Apply(t.Context(), []MigrationFile{first, file("2.sql", bad), last})
		wantNamed(t, err, ErrMigration)
		if fmt.Sprint(a.Files) != "[applied_before failed not_run]" || a.Effect != EffectNone {
			t.Errorf("%s again: %v", bad, a)
		}
		good := file("2.sql", "CREATE TABLE half(x)") // fails if the bad file left its table
		if a, err = d.Apply(t.Context(), []MigrationFile{first, good, last}); err != nil || len(a.Ledger) != 3 {
			t.Errorf("after %s: %v, %v", bad, a, err)
		}
	}
}

// sql §8.1: a ledger that is no exact prefix of the target stops everything before it runs.
func TestHistoryConflict(t *testing.T) {
	s := openStore(t, Options{})
	d := s.newTestDatabase(t, "a", "")
	one, two := file("1.sql", "CREATE TABLE a(x)"), file("2.sql", "CREATE TABLE b(x)")
	if _, err := d.Apply(t.Context(), []MigrationFile{one, two}); err != nil {
		t.Fatal(err)
	}
	marker := file("9.sql", "CREATE TABLE marker(x)")
	for name, target := range map[string][]MigrationFile{
		"changed": {one, file("2.sql", "CREATE TABLE c(x)"), marker}, "moved": {two, one, marker}, "renamed": {one, file("3.sql", "CREATE TABLE b(x)"), marker},
		"missing": {one, marker}, "shorter": {one},
	} {
		a, err := d.Apply(t.Context(), target)
		wantNamed(t, err, ErrHistory)
		if a.Effect != EffectNone || len(a.Ledger) != 2 {
			t.Errorf("%s: %v", name, a)
		}
	}
	_, err := d.Query(t.Context(), stmt("SELECT * FROM marker"))
	wantNamed(t, err, codec.ErrSQL)
	damage(t, s, "a", "UPDATE "+engine.Ledger+" SET position=5 WHERE position=1")
	_, err = d.Apply(t.Context(), []MigrationFile{one, two})
	wantNamed(t, err, ErrHistory)
	damage(t, s, "a", "DROP TABLE "+engine.Ledger)
	_, err = d.Apply(t.Context(), []MigrationFile{one, two})
	wantNamed(t, err, ErrHistory)
}

func damage(t *testing.T, s *Store, uid, sql string) {
	t.Helper()
	db, err := s.acquire(t.Context(), uid)
	if err != nil {
		t.Fatal(err)
	}
	defer s.release(db)
	if err := db.writer.Scan(t.Context(), engine.Host, sql, nil, func([]codec.Value) error { return nil }); err != nil {
		t.Fatal(err)
	}
}

// A file that is not what its digest says is found before anything runs; errors of its source are told as they are.
func TestBadFilesAreFoundBeforeAnythingRuns(t *testing.T) {
	s := openStore(t, Options{})
	d := s.newTestDatabase(t, "a", "")
	gone := errors.New("gone")
	lie := file("2.sql", "SELECT 1")
	lie.SHA256 = digest("SELECT 2")
	for _, bad := range []MigrationFile{lie, file("2.sql", "SELECT '\xff'"), file("2.sql", "\uFEFFSELECT 1"), file("2.sql", strings.Repeat("-", engine.MaxScriptBytes+1)),
		{Path: "2.sql", SHA256: lie.SHA256, Open: func() (io.ReadCloser, error) { return nil, gone }}} {
		a, err := d.Apply(t.Context(), []MigrationFile{file("1.sql", "CREATE TABLE t(x)"), bad})
		if !errors.Is(err, gone) && (fault.CodeOf(err) != fault.Invalid || fault.NamedOf(err) != nil) {
			t.Errorf("%v", err)
		}
		if len(a.Ledger) != 0 || a.Effect != EffectNone {
			t.Errorf("%v", a)
		}
	}
	if _, err := d.Apply(t.Context(), nil); fault.CodeOf(err) != fault.Invalid {
		t.Errorf("empty set: %v", err)
	}
}

// A large file is split where SQLite's parser ends a statement, in time that grows with its length.
func TestLargeMigrationFile(t *testing.T) {
	var b strings.Builder
	b.WriteString("CREATE TABLE t(x);\n")
	const n = 40_000
	for i := range n {
		fmt.Fprintf(&b, "INSERT INTO t VALUES('%d;'); /* ; */ -- ;\n", i)
		if i == n/2 {
			b.WriteString("INSERT INTO t VALUES('" + strings.Repeat(";", 900_000) + "');/*" + strings.Repeat(";*", 50_000) + "*/;;;")
		}
	}
	s := openStore(t, Options{})
	d := s.newTestDatabase(t, "a", b.String())
	if got := one(t, d, "SELECT count(*) FROM t"); got != codec.Integer(n+1) {
		t.Errorf("%d rows", got.Int64())
	}
}

// What a file makes temporary is gone after it, so that it cannot reach into the application's statements.
func TestTemporaryObjectsEndWithTheFile(t *testing.T) {
	s := openStore(t, Options{})
	d := s.newTestDatabase(t, "a", "CREATE TABLE t(x); CREATE TEMP TABLE t2(x); CREATE TEMP TRIGGER tr AFTER INSERT ON main.t BEGIN DELETE FROM t; END; CREATE TEMP VIEW t AS SELECT 'shadow' AS x")
	mustExecute(t, d, "INSERT INTO t VALUES('real')")
	if got := one(t, d, "SELECT x FROM t"); got != codec.Text("real") {
		t.Errorf("got %v", got)
	}
	_, err := d.Apply(t.Context(), []MigrationFile{file("0001.sql", "x")})
	wantNamed(t, err, ErrHistory)
}

// A schema change is seen by statements that were compiled before it, on every connection; columns and rowids too.
func TestSchemaChangeReachesCompiledStatements(t *testing.T) {
	s := openStore(t, Options{})
	first := "CREATE TABLE t(x INTEGER PRIMARY KEY)"
	d := s.newTestDatabase(t, "a", first)
	insert, all := "INSERT INTO t(x) VALUES(?1)", "SELECT * FROM t"
	if r := mustExecute(t, d, insert, codec.Integer(7)); !r.Inserted || r.LastInsertRowID != 7 {
		t.Errorf("%+v", r)
	}
	if r, err := d.Query(t.Context(), stmt(all)); err != nil || len(r.Columns) != 1 {
		t.Fatalf("%v, %v", r, err)
	}
	_, err := d.Apply(t.Context(), []MigrationFile{file("0001.sql", first), file("2.sql", "DROP TABLE t; CREATE TABLE t(x PRIMARY KEY, y DEFAULT 'why') WITHOUT ROWID")})
	if err != nil {
		t.Fatal(err)
	}
	if r := mustExecute(t, d, insert, codec.Integer(8)); r.Inserted || r.RowsWritten != 1 {
		t.Errorf("%+v", r)
	}
	r, err := d.Query(t.Context(), stmt(all))
	if err != nil || fmt.Sprint(r.Columns) != "[x y]" || len(r.Rows) != 1 || r.Rows[0][1] != codec.Text("why") {
		t.Errorf("%v, %v", r, err)
	}
}

// sql §8.1: applications on one database are serialised: one of two different ones wins, the other conflicts; equal ones agree.
func TestConcurrentApplications(t *testing.T) {
	s := openStore(t, Options{})
	d := s.newTestDatabase(t, "a", "")
	var wg sync.WaitGroup
	errs := make([]error, 8)
	for i := range errs {
		wg.Go(func() {
			files := []MigrationFile{file("1.sql", "CREATE TABLE common(x)")}
			for j := range 3 {
				files = append(files, file(fmt.Sprintf("%d.sql", j+2), fmt.Sprintf("CREATE TABLE t%d_%d(x)", i%2, j)))
			}
			_, errs[i] = d.Apply(context.Background(), files)
		})
	}
	wg.Wait()
	won := 0
	for i, err := range errs {
		if err == nil {
			won++
		} else if fault.NamedOf(err) != ErrHistory {
			t.Errorf("%d: %v", i, err)
		}
	}
	ledger, err := d.Ledger(t.Context())
	if err != nil || len(ledger) != 4 || won != 4 {
		t.Errorf("%d won, ledger %v, %v", won, ledger, err)
	}
}

// sql §8.2: a database that others hold for longer than the wait is database_busy, and nothing ran.
func TestApplyToABusyDatabase(t *testing.T) {
	s := openStore(t, Options{MigrateWait: time.Millisecond})
	d := s.newTestDatabase(t, "a", "")
	db, err := s.acquire(t.Context(), "a")
	if err != nil {
		t.Fatal(err)
	}
	defer s.release(db)
	if err := db.write.Acquire(t.Context(), 1); err != nil {
		t.Fatal(err)
	}
	defer db.write.Release(1)
	a, err := d.Apply(t.Context(), []MigrationFile{file("1.sql", "CREATE TABLE t(x)")})
	wantNamed(t, err, ErrDatabaseBusy)
	if a.Effect != EffectNone || len(a.Ledger) != 0 {
		t.Errorf("%v", a)
	}
}

// Foreign keys hold during migrations, but are checked at the end of a file, so that tables can be rebuilt.
func TestMigrationsMayRebuildTables(t *testing.T) {
	s := openStore(t, Options{})
	s.newTestDatabase(t, "a", `CREATE TABLE p(id INTEGER PRIMARY KEY); CREATE TABLE c(p REFERENCES p(id)); INSERT INTO p VALUES(1); INSERT INTO c VALUES(1);
		CREATE TABLE p2(id INTEGER PRIMARY KEY, more); INSERT INTO p2 SELECT id, 'x' FROM p; DROP TABLE p; ALTER TABLE p2 RENAME TO p;`)
	d := s.Database("a", 1)
	_, err := d.Execute(t.Context(), stmt("INSERT INTO c VALUES(5)"))
	wantNamed(t, err, codec.ErrSQL)
	if got := one(t, d, "SELECT more FROM c JOIN p ON c.p=p.id"); got != codec.Text("x") {
		t.Errorf("got %v", got)
	}
}
