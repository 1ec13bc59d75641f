package sqlstore

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"

	"edged/internal/testkit"
	"edged/sqlstore/codec"
)

const tortureEnv = "EDGED_SQLSTORE_TORTURE_DIR"

const tortureSchema = "CREATE TABLE log(worker, n, filler); CREATE TABLE head(worker INTEGER PRIMARY KEY, n); CREATE INDEX i ON log(n, filler)"

// tortureFiles are migrations that take a while, so that a kill finds them at work.
func tortureFiles(n int) []MigrationFile {
	files := []MigrationFile{file("0001.sql", tortureSchema)}
	for i := range n {
		files = append(files, file(fmt.Sprintf("%04d.sql", i+2), fmt.Sprintf("CREATE TABLE a%d(x); %sINSERT INTO a%d SELECT i FROM n; CREATE INDEX i%d ON a%d(x); CREATE TABLE b%d(x)", i, fmt.Sprintf(series, 1000), i, i, i, i)))
	}
	return files
}

// TestTortureChild is not a test of its own: TestKilledWhileWriting runs it in a process that it kills.
func TestTortureChild(t *testing.T) {
	dir := os.Getenv(tortureEnv)
	if dir == "" {
		t.Skip("runs only as the child of TestKilledWhileWriting")
	}
	s, err := Open(Options{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	ctx := context.Background()
	if err := s.Create(ctx, "db", 1); err != nil {
		t.Fatal(err)
	}
	d := s.Database("db", 1)
	if _, err := d.Apply(ctx, tortureFiles(0)); err != nil && !strings.Contains(err.Error(), "migrations were applied") {
		t.Fatal(err)
	}
	var out sync.Mutex
	say := func(format string, args ...any) {
		out.Lock()
		defer out.Unlock()
		fmt.Printf(format+"\n", args...)
	}
	var wg sync.WaitGroup
	for w := range 3 {
		wg.Go(func() {
			r, err := d.Query(ctx, stmt("SELECT ifnull(max(n),0) AS n FROM log WHERE worker=?1", codec.Integer(int64(w))))
			if err != nil {
				t.Error(err)
				return
			}
			for n := r.Rows[0][0].Int64() + 1; ; n++ {
				_, err := d.Transaction(ctx, []codec.Statement{
					stmt("INSERT INTO log VALUES(?1,?2,randomblob(300))", codec.Integer(int64(w)), codec.Integer(n)),
					stmt("REPLACE INTO head VALUES(?1,?2)", codec.Integer(int64(w)), codec.Integer(n)),
				})
				if err != nil {
					t.Error(err)
					return
				}
				say("ack %d %d", w, n)
			}
		})
	}
	wg.Go(func() {
		l, err := d.Ledger(ctx)
		for n := len(l); err == nil; n++ {
			_, err = d.Apply(ctx, tortureFiles(n))
			say("file %d", n)
		}
		t.Error(err)
	})
	wg.Wait()
}

// What was answered survives kill -9 at any moment, nothing is there by halves, and the file is whole (sql §§2, 8.1).
func TestKilledWhileWriting(t *testing.T) {
	if os.Getenv(tortureEnv) != "" {
		t.Skip("this is the child")
	}
	rng := testkit.Rand(t)
	dir := t.TempDir()
	acked, files := map[int]int64{}, 0
	for range 4 {
		cmd := exec.Command(os.Args[0], "-test.run=^TestTortureChild$", "-test.timeout=2m")
		cmd.Env = append(os.Environ(), tortureEnv+"="+dir)
		pipe, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		lines, until := bufio.NewScanner(pipe), 20+rng.IntN(100)
		note := func() {
			var w int
			var n int64
			if _, err := fmt.Sscanf(lines.Text(), "ack %d %d", &w, &n); err == nil {
				acked[w] = n
			} else if _, err := fmt.Sscanf(lines.Text(), "file %d", &n); err == nil {
				files = max(files, int(n))
			} else {
				t.Fatalf("the child says %q", lines.Text())
			}
		}
		for i := 0; i < until && lines.Scan(); i++ {
			note()
		}
		if err := cmd.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		for lines.Scan() { // said before it died
			note()
		}
		io.Copy(io.Discard, pipe)
		cmd.Wait()
		checkTortured(t, dir, acked, files)
	}
}

func checkTortured(t *testing.T, dir string, acked map[int]int64, files int) {
	t.Helper()
	s, err := Open(Options{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	d := s.Database("db", 1)
	for w, n := range acked {
		if got := one(t, d, "SELECT ifnull(max(n),0) AS n FROM log WHERE worker=?1", codec.Integer(int64(w))); got.Int64() < n {
			t.Fatalf("worker %d was told %d, %d is there", w, n, got.Int64())
		}
	}
	r, err := d.Query(t.Context(), stmt("SELECT worker, max(n) AS m, count(*) AS c, (SELECT n FROM head h WHERE h.worker=l.worker) AS h FROM log l GROUP BY worker"))
	if err != nil {
		t.Fatal(err)
	}
	for _, row := range r.Rows {
		if row[1] != row[2] || row[1] != row[3] {
			t.Fatalf("half a transaction: worker %d max %d count %d head %d", row[0].Int64(), row[1].Int64(), row[2].Int64(), row[3].Int64())
		}
	}
	ledger, err := d.Ledger(t.Context())
	if err != nil || len(ledger) < files+1 && files > 0 {
		t.Fatalf("ledger of %d files after %d were told: %v", len(ledger), files, err)
	}
	have := map[string]bool{}
	rows, err := d.Inspect(t.Context(), stmt("SELECT name FROM sqlite_schema"))
	if err != nil {
		t.Fatal(err)
	}
	for _, row := range rows.Rows {
		have[row[0].Bytes()] = true
	}
	for i := range len(ledger) + 2 {
		in := i < len(ledger)-1
		if a, b := have[fmt.Sprintf("a%d", i)], have[fmt.Sprintf("b%d", i)]; a != in || b != in {
			t.Fatalf("file %d is half there: %t %t, in the ledger %t", i, a, b, in)
		}
	}
	if _, err := d.Check(t.Context()); err != nil {
		t.Fatal(err)
	}
}
