package sqlstore

import (
	"context"
	"sync"
	"testing"

	"edged/sqlstore/codec"
)

// parallel runs fn in n goroutines, rounds times each.
func parallel(n, rounds int, fn func(worker, round int)) {
	var wg sync.WaitGroup
	for w := range n {
		wg.Go(func() {
			for r := range rounds {
				fn(w, r)
			}
		})
	}
	wg.Wait()
}

// sql §6: no update is lost.
func TestNoLostUpdate(t *testing.T) {
	s := openStore(t, Options{})
	d := s.newTestDatabase(t, "a", "CREATE TABLE c(n INTEGER); INSERT INTO c VALUES(0)")
	parallel(8, 25, func(int, int) {
		if _, err := d.Transaction(context.Background(), []codec.Statement{stmt("SELECT n FROM c"), stmt("UPDATE c SET n=n+1")}); err != nil {
			t.Error(err)
		}
	})
	if n := one(t, d, "SELECT n FROM c"); n != codec.Integer(200) {
		t.Errorf("%d of 200 updates", n.Int64())
	}
}

// sql §6: no write skew. Each of two leaves only while the other stays; one always stays.
func TestNoWriteSkew(t *testing.T) {
	s := openStore(t, Options{})
	d := s.newTestDatabase(t, "a", "CREATE TABLE duty(id INTEGER PRIMARY KEY, here INTEGER); INSERT INTO duty VALUES(0,1),(1,1)")
	for range 25 {
		parallel(2, 1, func(w, _ int) {
			leave := stmt("UPDATE duty SET here=0 WHERE id=?1 AND (SELECT sum(here) FROM duty)=2", codec.Integer(int64(w)))
			if _, err := d.Transaction(context.Background(), []codec.Statement{stmt("SELECT * FROM duty"), leave}); err != nil {
				t.Error(err)
			}
		})
		if n := one(t, d, "SELECT sum(here) FROM duty"); n != codec.Integer(1) {
			t.Fatalf("%d stayed, want 1", n.Int64())
		}
		mustExecute(t, d, "UPDATE duty SET here=1")
	}
}

// sql §6: a transaction sees one snapshot: no phantom appears between its statements; a query sees one too.
func TestNoPhantom(t *testing.T) {
	s := openStore(t, Options{})
	d := s.newTestDatabase(t, "a", "CREATE TABLE t(x); CREATE TABLE u(x)")
	count, insert := stmt("SELECT count(*) AS n FROM t"), stmt("INSERT INTO t VALUES(1)")
	parallel(6, 25, func(w, _ int) {
		if w < 3 {
			r, err := d.Transaction(context.Background(), []codec.Statement{count, insert, stmt("INSERT INTO u VALUES(1)"), count})
			if err != nil {
				t.Error(err)
			} else if before, after := r[0].Rows[0][0].Int64(), r[3].Rows[0][0].Int64(); after != before+1 {
				t.Errorf("%d rows became %d", before, after)
			}
			return
		}
		r, err := d.Query(context.Background(), stmt("SELECT (SELECT count(*) FROM t) AS t, (SELECT count(*) FROM u) AS u"))
		if err != nil || r.Rows[0][0] != r.Rows[0][1] {
			t.Errorf("half a transaction is seen: %v, %v", r.Rows, err)
		}
	})
}

// What was answered is seen by every later call, on whatever connection.
func TestAnsweredWritesAreSeen(t *testing.T) {
	s := openStore(t, Options{Readers: 3})
	d := s.newTestDatabase(t, "a", "CREATE TABLE t(w INTEGER PRIMARY KEY, n)")
	parallel(4, 50, func(w, round int) {
		_, err := d.Execute(context.Background(), stmt("REPLACE INTO t VALUES(?1, ?2)", codec.Integer(int64(w)), codec.Integer(int64(round))))
		if err != nil {
			t.Error(err)
		}
		r, err := d.Query(context.Background(), stmt("SELECT n FROM t WHERE w=?1", codec.Integer(int64(w))))
		if err != nil || r.Rows[0][0] != codec.Integer(int64(round)) {
			t.Errorf("worker %d wrote %d and reads %v, %v", w, round, r.Rows, err)
		}
	})
}

// sql §2: any failure of a transaction takes back all of it, whichever statement fails.
func TestTransactionIsAllOrNothing(t *testing.T) {
	s := openStore(t, Options{})
	d := s.newTestDatabase(t, "a", "CREATE TABLE t(x UNIQUE); INSERT INTO t VALUES(0)")
	for _, bad := range []string{"INSERT INTO t VALUES(0)", "SELECT", "COMMIT", "INSERT OR ROLLBACK INTO t VALUES(0)", "SELECT ?1", "SELECT 1 AS a, 2 AS a", "SELECT 9e999 AS x"} {
		for at := range 3 {
			list := []codec.Statement{stmt("INSERT INTO t VALUES(1)"), stmt("INSERT INTO t VALUES(2)"), stmt("UPDATE t SET x=9 WHERE x=1")}
			list[at] = stmt(bad)
			if r, err := d.Transaction(t.Context(), list); err == nil || r != nil {
				t.Errorf("%q at %d: %v", bad, at, r)
			}
		}
	}
	if got := one(t, d, "SELECT group_concat(x) FROM t"); got != codec.Text("0") {
		t.Errorf("rows %v", got)
	}
	r, err := d.Transaction(t.Context(), []codec.Statement{stmt("INSERT INTO t VALUES(1)"), stmt("SELECT x FROM t ORDER BY x"), stmt("DELETE FROM t")})
	if err != nil || len(r) != 3 || len(r[1].Rows) != 2 || r[2].RowsWritten != 2 || !r[0].Inserted || r[1].Inserted {
		t.Errorf("%+v, %v", r, err)
	}
}
