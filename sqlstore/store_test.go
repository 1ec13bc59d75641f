package sqlstore

import (
	"context"
	"errors"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"edged/internal/disk"
	"edged/internal/fault"
	"edged/internal/testkit"
	"edged/sqlstore/codec"
)

// sql §1: create makes an empty database with an empty ledger, never overwrites; delete removes all of it. Both can be said
// twice.
func TestCreateAndDelete(t *testing.T) {
	dir := t.TempDir()
	s := openStore(t, Options{Dir: dir})
	ctx := t.Context()
	if there, err := s.Exists("db1"); there || err != nil {
		t.Fatalf("before: %t, %v", there, err)
	}
	_, err := s.Database("db1", 1).Query(ctx, stmt("SELECT 1"))
	wantNamed(t, err, codec.ErrBackend)
	d := s.newTestDatabase(t, "db1", "CREATE TABLE t(x)")
	mustExecute(t, d, "INSERT INTO t VALUES(1)")
	if err := s.Create(ctx, "db1", 1); err != nil {
		t.Fatal(err)
	}
	if n := one(t, d, "SELECT count(*) FROM t"); n != codec.Integer(1) {
		t.Fatalf("creating again changed the rows: %v", n)
	}
	for range 2 {
		if err := s.Delete(ctx, "db1"); err != nil {
			t.Fatal(err)
		}
	}
	if there, _ := s.Exists("db1"); there {
		t.Error("the database is there after delete")
	}
	if left, _ := filepath.Glob(filepath.Join(dir, "*", "*")); len(left) != 0 {
		t.Errorf("files left: %v", left)
	}
	if err := s.Create(ctx, "db1", 1); err != nil {
		t.Fatal(err)
	}
	if l, err := d.Ledger(ctx); len(l) != 0 || err != nil {
		t.Errorf("ledger of a new database: %v, %v", l, err)
	}
	for _, uid := range []string{"", "../x", "a/b", ".", "a.b", "x\x00"} {
		if err := s.Create(ctx, uid, 1); fault.CodeOf(err) != fault.Invalid {
			t.Errorf("uid %q: %v, want invalid", uid, err)
		}
	}
}

// node-surface §2: the default data directory is ./data.
func TestRelativeDirectory(t *testing.T) {
	t.Chdir(t.TempDir())
	s := openStore(t, Options{Dir: "./data"})
	d := s.newTestDatabase(t, "db1", "CREATE TABLE t(x)")
	mustExecute(t, d, "INSERT INTO t VALUES(1)")
	if _, err := os.Stat(filepath.Join("data", databasesDir, "db1", "main.db")); err != nil {
		t.Error(err)
	}
}

func TestDatabasesLiveAcrossRestarts(t *testing.T) {
	dir := t.TempDir()
	s, err := Open(Options{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	d := s.newTestDatabase(t, "a", "CREATE TABLE t(x)")
	mustExecute(t, d, "INSERT INTO t VALUES(9223372036854775807)")
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	_, err = d.Query(t.Context(), stmt("SELECT 1"))
	wantNamed(t, err, codec.ErrBackend)
	files, _ := filepath.Glob(filepath.Join(dir, "databases", "a", "*"))
	if len(files) != 2 { // the database and its epoch: the log is moved, the mark is gone
		t.Errorf("files after close: %v", files)
	}
	s = openStore(t, Options{Dir: dir})
	if got := one(t, s.Database("a", 1), "SELECT x FROM t"); got != codec.Integer(9223372036854775807) {
		t.Errorf("got %v", got.Int64())
	}
}

// A database under a newer epoch refuses the older home, also after a restart.
func TestEpochFencesAnOlderHome(t *testing.T) {
	dir := t.TempDir()
	s := openStore(t, Options{Dir: dir})
	old := s.newTestDatabase(t, "a", "CREATE TABLE t(x)")
	mustExecute(t, s.Database("a", 2), "INSERT INTO t VALUES(1)")
	_, err := old.Execute(t.Context(), stmt("INSERT INTO t VALUES(2)"))
	wantNamed(t, err, codec.ErrBackend)
	wantNamed(t, s.Create(t.Context(), "a", 1), codec.ErrBackend)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	again := openStore(t, Options{Dir: dir})
	_, err = again.Database("a", 1).Query(t.Context(), stmt("SELECT 1"))
	wantNamed(t, err, codec.ErrBackend)
	if n := one(t, again.Database("a", 3), "SELECT count(*) FROM t"); n != codec.Integer(1) {
		t.Errorf("rows: %v", n.Int64())
	}
}

// Many databases, few open: all of them answer, and no more than MaxOpen stay open.
func TestManyDatabasesFewOpen(t *testing.T) {
	s := openStore(t, Options{MaxOpen: 3})
	const n = 12
	for i := range n {
		uid := string(rune('a' + i))
		d := s.newTestDatabase(t, uid, "CREATE TABLE t(x)")
		mustExecute(t, d, "INSERT INTO t VALUES(?1)", codec.Integer(int64(i)))
	}
	var wg sync.WaitGroup
	for w := range 4 {
		wg.Go(func() {
			for i := range 3 * n {
				j := (i*7 + w) % n
				d := s.Database(string(rune('a'+j)), 1)
				r, err := d.Query(context.Background(), stmt("SELECT x FROM t"))
				if err != nil || r.Rows[0][0] != codec.Integer(int64(j)) {
					t.Errorf("database %d: %v, %v", j, r.Rows, err)
				}
			}
		})
	}
	wg.Wait()
	s.mu.Lock()
	open := len(s.open)
	s.mu.Unlock()
	if open > 3 {
		t.Errorf("%d databases open, want at most 3", open)
	}
}

// The time limit of a call ends the statement (sql §2: sql_error), a caller that leaves ends it too; both leave nothing.
func TestRunawayStatementsEnd(t *testing.T) {
	s := openStore(t, Options{MaxTime: 50 * time.Millisecond})
	d := s.newTestDatabase(t, "a", "CREATE TABLE t(x)")
	endless := "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i+1 FROM n) INSERT INTO t SELECT i FROM n"
	_, err := d.Execute(t.Context(), stmt(endless))
	wantNamed(t, err, codec.ErrSQL)
	_, err = d.Query(t.Context(), stmt("WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i+1 FROM n) SELECT max(i) FROM n"))
	wantNamed(t, err, codec.ErrSQL)
	ctx, cancel := context.WithCancel(t.Context())
	time.AfterFunc(5*time.Millisecond, cancel)
	s.opt.MaxTime = time.Minute
	if _, err = d.Execute(ctx, stmt(endless)); fault.CodeOf(err) != fault.Canceled {
		t.Errorf("after cancel: %v, want canceled", err)
	}
	if n := one(t, d, "SELECT count(*) FROM t"); n != codec.Integer(0) {
		t.Errorf("%d rows stayed", n.Int64())
	}
}

// The memory limit of a connection ends the statement with sql_error; the database goes on with a fresh connection.
func TestMemoryLimitEndsAStatement(t *testing.T) {
	s := openStore(t, Options{MaxMemory: 8 << 20})
	d := s.newTestDatabase(t, "a", "CREATE TABLE t(x)")
	hog := "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i+1 FROM n WHERE i<100) SELECT length(group_concat(hex(zeroblob(500000+i)))) AS l FROM n"
	for range 2 {
		_, err := d.Execute(t.Context(), stmt(hog))
		wantNamed(t, err, codec.ErrSQL)
		_, err = d.Query(t.Context(), stmt("WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i+1 FROM n WHERE i<100000) SELECT count(*) FROM (SELECT randomblob(1000) AS b, i FROM n ORDER BY b)"))
		wantNamed(t, err, codec.ErrSQL)
	}
	mustExecute(t, d, "INSERT INTO t VALUES(1)")
	if n := one(t, d, "SELECT count(*) FROM t"); n != codec.Integer(1) {
		t.Errorf("%d rows", n.Int64())
	}
}

// A database at its quota refuses to grow with backend_unavailable, can be read, and takes writes again after rows went.
func TestQuota(t *testing.T) {
	s := openStore(t, Options{MaxBytes: 1 << 20})
	d := s.newTestDatabase(t, "a", "CREATE TABLE t(x)")
	var err error
	for i := 0; err == nil && i < 100; i++ {
		_, err = d.Execute(t.Context(), stmt("INSERT INTO t VALUES(zeroblob(50000))"))
	}
	wantNamed(t, err, codec.ErrBackend)
	if n := one(t, d, "SELECT count(*) FROM t"); n.Int64() < 10 {
		t.Errorf("only %d rows fit", n.Int64())
	}
	mustExecute(t, d, "DELETE FROM t")
	mustExecute(t, d, "INSERT INTO t VALUES(zeroblob(50000))")
}

// While the disk is nearly full growth is refused with backend_unavailable; reads and deletes go on.
func TestNearlyFullDisk(t *testing.T) {
	dir := t.TempDir()
	s := openStore(t, Options{Dir: dir})
	s.newTestDatabase(t, "a", "CREATE TABLE t(x); INSERT INTO t VALUES(1),(2)")
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	full := disk.NewSpace(disk.SpaceOptions{Dir: dir, Free: func(string) (uint64, error) { return 1, nil }})
	s = openStore(t, Options{Dir: dir, Space: full})
	d := s.Database("a", 1)
	_, err := d.Execute(t.Context(), stmt("INSERT INTO t VALUES(3)"))
	wantNamed(t, err, codec.ErrBackend)
	wantNamed(t, s.Create(t.Context(), "b", 1), codec.ErrBackend)
	mustExecute(t, d, "DELETE FROM t WHERE x=1")
	if n := one(t, d, "SELECT count(*) FROM t"); n != codec.Integer(1) {
		t.Errorf("%d rows", n.Int64())
	}
}

// A damaged file is found when it is opened after an unclean end, and not served.
func TestDamageIsFoundAfterAnUncleanEnd(t *testing.T) {
	dir := t.TempDir()
	s := openStore(t, Options{Dir: dir})
	d := s.newTestDatabase(t, "a", "CREATE TABLE t(x); CREATE INDEX i ON t(x)")
	for range 50 {
		mustExecute(t, d, "INSERT INTO t VALUES(randomblob(2000))")
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	main := filepath.Join(dir, "databases", "a", "main.db")
	b, err := os.ReadFile(main)
	if err != nil {
		t.Fatal(err)
	}
	for i := 20_000; i < 24_000; i++ {
		b[i] ^= 0x5a
	}
	if err := os.WriteFile(main, b, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "databases", "a", "open"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for range 2 { // the mark stays: it is found every time
		s = openStore(t, Options{Dir: dir})
		_, err = s.Database("a", 1).Query(t.Context(), stmt("SELECT 1"))
		wantNamed(t, err, codec.ErrBackend)
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

// Writers get their turn in the order they came; busy is told only after the wait (sql §2).
func TestWritersTakeTurns(t *testing.T) {
	s := openStore(t, Options{WriteWait: time.Minute})
	d := s.newTestDatabase(t, "a", "CREATE TABLE t(x)")
	db, err := s.acquire(t.Context(), "a")
	if err != nil {
		t.Fatal(err)
	}
	defer s.release(db)
	if err := db.write.Acquire(t.Context(), 1); err != nil {
		t.Fatal(err)
	}
	errs := make(chan error, 2)
	go func() {
		_, err := d.Execute(context.Background(), stmt("INSERT INTO t VALUES(1)"))
		errs <- err
	}()
	impatient, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := d.Execute(impatient, stmt("INSERT INTO t VALUES(2)")); fault.CodeOf(err) != fault.Canceled {
		t.Errorf("a caller that left: %v", err)
	}
	if _, err := d.Query(t.Context(), stmt("SELECT count(*) FROM t")); err != nil {
		t.Errorf("readers wait for the writer: %v", err)
	}
	db.write.Release(1)
	if err := <-errs; err != nil {
		t.Error(err)
	}
	if err := db.write.Acquire(t.Context(), 1); err != nil {
		t.Fatal(err)
	}
	s.opt.WriteWait = time.Millisecond
	_, err = d.Execute(t.Context(), stmt("INSERT INTO t VALUES(3)"))
	wantNamed(t, err, codec.ErrBusy)
	if !fault.CodeOf(err).Retryable() {
		t.Error("busy is not retryable")
	}
	db.write.Release(1)
}

// Delete waits for running calls, and calls wait for delete.
func TestExclusiveWaitsAndGivesUp(t *testing.T) {
	s := openStore(t, Options{})
	d := s.newTestDatabase(t, "a", "CREATE TABLE t(x)")
	db, err := s.acquire(t.Context(), "a")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := s.Delete(ctx, "a"); !errors.Is(err, context.Canceled) {
		t.Errorf("delete of a database in use by a caller that left: %v", err)
	}
	mustExecute(t, d, "INSERT INTO t VALUES(1)")
	done := make(chan error, 1)
	go func() { done <- s.Delete(context.Background(), "a") }()
	poll(t, func() bool { s.mu.Lock(); defer s.mu.Unlock(); return db.drained != nil })
	s.release(db)
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	_, err = d.Query(t.Context(), stmt("SELECT 1"))
	wantNamed(t, err, codec.ErrBackend)
}

// Run closes what nobody uses.
func TestRunClosesUnusedDatabases(t *testing.T) {
	s := openStore(t, Options{IdleTime: time.Millisecond})
	s.newTestDatabase(t, "a", "")
	mustExecute(t, s.Database("a", 1), "SELECT 1")
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- s.Run(ctx) }()
	poll(t, func() bool { s.mu.Lock(); defer s.mu.Unlock(); return len(s.open) == 0 })
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	mustExecute(t, s.Database("a", 1), "SELECT 1")
}

// Damage that is found while a database is served is told, and the mark stays, so that the next opening checks.
func TestDamageIsFoundWhileServing(t *testing.T) {
	dir := t.TempDir()
	s := openStore(t, Options{Dir: dir})
	d := s.newTestDatabase(t, "a", "CREATE TABLE t(x)")
	for range 50 {
		mustExecute(t, d, "INSERT INTO t VALUES(randomblob(2000))")
	}
	if err := s.exclusive(t.Context(), "a", func(string) error { return nil }); err != nil {
		t.Fatal(err)
	}
	main := filepath.Join(dir, "databases", "a", "main.db")
	b, err := os.ReadFile(main)
	if err != nil {
		t.Fatal(err)
	}
	for i := 20_480; i < len(b); i++ {
		b[i] = 0x5a
	}
	if err := os.WriteFile(main, b, 0o600); err != nil {
		t.Fatal(err)
	}
	_, err = d.Query(t.Context(), stmt("SELECT sum(length(x)) FROM t"))
	wantNamed(t, err, codec.ErrBackend)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if there, err := exists(filepath.Join(dir, "databases", "a", "open")); !there || err != nil {
		t.Errorf("the mark is gone: %v", err)
	}
}

// Whatever runs against whatever, every call ends, and no database is found in between.
func TestOpeningClosingAndDeletingAtOnce(t *testing.T) {
	s := openStore(t, Options{MaxOpen: 1, Readers: 1})
	seeds := make([]*rand.Rand, 6)
	for i := range seeds {
		seeds[i] = rand.New(rand.NewPCG(testkit.Rand(t).Uint64(), uint64(i)))
	}
	parallel(len(seeds), 60, func(w, _ int) {
		rng, ctx := seeds[w], context.Background()
		uid := string(rune('a' + rng.IntN(3)))
		d := s.Database(uid, 1)
		if rng.IntN(8) == 0 {
			var cancel context.CancelFunc
			ctx, cancel = context.WithCancel(ctx)
			cancel()
		}
		var err error
		switch rng.IntN(6) {
		case 0:
			err = s.Create(ctx, uid, 1)
		case 1:
			err = s.Delete(ctx, uid)
		case 2:
			s.evict(0, time.Time{})
		case 3:
			_, err = d.Apply(ctx, []MigrationFile{file("1.sql", "CREATE TABLE t(x)")})
		case 4:
			_, err = d.Execute(ctx, stmt("INSERT INTO t VALUES(1)"))
		default:
			_, err = d.Query(ctx, stmt("SELECT count(*) FROM t"))
		}
		if err != nil && fault.CodeOf(err) != fault.Canceled && fault.NamedOf(err) != codec.ErrBackend && !strings.Contains(err.Error(), "no such table") {
			t.Error(err)
		}
	})
	s.mu.Lock()
	defer s.mu.Unlock()
	for uid, d := range s.open {
		if d.refs != 0 || d.closing {
			t.Errorf("%s is left with %d users, closing %t", uid, d.refs, d.closing)
		}
	}
}
