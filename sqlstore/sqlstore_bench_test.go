package sqlstore

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ncruces/go-sqlite3"

	"edged/sqlstore/codec"
)

const benchSchema = "CREATE TABLE t(id INTEGER PRIMARY KEY, name TEXT, score REAL)"

const benchRows = 10_000

// contenders are measured in one run: the same driver used directly with the same durability, and this room. Each opens a
// database with benchRows rows and returns how it runs a prepared statement list as one transaction.
func contenders(b *testing.B, run func(b *testing.B, exec func(read bool, list ...codec.Statement) int)) {
	b.Run("impl=raw", func(b *testing.B) {
		c := rawOpen(b, filepath.Join(b.TempDir(), "raw.db"))
		defer c.Close()
		if err := c.Exec(benchSchema + "; " + fmt.Sprintf(series, benchRows) + "INSERT INTO t SELECT i, 'name '||i, i/3.0 FROM n"); err != nil {
			b.Fatal(err)
		}
		prepared := map[string]*sqlite3.Stmt{}
		run(b, func(read bool, list ...codec.Statement) (rows int) {
			if len(list) > 1 {
				rawExec(b, c, "BEGIN IMMEDIATE")
			}
			for _, st := range list {
				s := prepared[st.SQL]
				if s == nil {
					var err error
					if s, _, err = c.PrepareFlags(st.SQL, sqlite3.PREPARE_PERSISTENT); err != nil {
						b.Fatal(err)
					}
					prepared[st.SQL] = s
				}
				rows += rawRun(b, s, st.Params)
			}
			if len(list) > 1 {
				rawExec(b, c, "COMMIT")
			}
			return rows
		})
		for _, s := range prepared {
			s.Close()
		}
	})
	b.Run("impl=ours", func(b *testing.B) {
		s := openStore(b, Options{})
		d := s.newTestDatabase(b, "a", benchSchema+"; "+fmt.Sprintf(series, benchRows)+"INSERT INTO t SELECT i, 'name '||i, i/3.0 FROM n")
		run(b, func(read bool, list ...codec.Statement) (rows int) {
			ctx := context.Background()
			switch {
			case read:
				r, err := d.Query(ctx, list[0])
				if err != nil {
					b.Fatal(err)
				}
				return len(r.Rows)
			case len(list) == 1:
				_, err := d.Execute(ctx, list[0])
				if err != nil {
					b.Fatal(err)
				}
			default:
				if _, err := d.Transaction(ctx, list); err != nil {
					b.Fatal(err)
				}
			}
			return 0
		})
	})
}

func rawOpen(b *testing.B, path string) *sqlite3.Conn {
	b.Helper()
	c, err := sqlite3.Open(path)
	if err == nil {
		err = c.Exec("PRAGMA journal_mode=WAL; PRAGMA synchronous=FULL")
	}
	if err != nil {
		b.Fatal(err)
	}
	return c
}

func rawExec(b *testing.B, c *sqlite3.Conn, sql string) {
	if err := c.Exec(sql); err != nil {
		b.Fatal(err)
	}
}

// rawRun binds, steps, copies every value out and resets.
func rawRun(b *testing.B, s *sqlite3.Stmt, params []codec.Value) (rows int) {
	for i, p := range params {
		switch p.Kind() {
		case codec.KindInteger:
			s.BindInt64(i+1, p.Int64())
		case codec.KindText:
			s.BindText(i+1, p.Bytes())
		}
	}
	for s.Step() {
		rows++
		row := make([]any, s.ColumnCount())
		if err := s.Columns(row...); err != nil {
			b.Fatal(err)
		}
	}
	if err := s.Reset(); err != nil {
		b.Fatal(err)
	}
	return rows
}

// BenchmarkPointSelect: one row by its key. The target is 0.6 of raw.
func BenchmarkPointSelect(b *testing.B) {
	contenders(b, func(b *testing.B, exec func(bool, ...codec.Statement) int) {
		b.ReportAllocs()
		i := int64(0)
		for b.Loop() {
			i = i%benchRows + 1
			if n := exec(true, stmt("SELECT id, name, score FROM t WHERE id=?1", codec.Integer(i))); n != 1 {
				b.Fatal(n)
			}
		}
	})
}

// BenchmarkInsert: one durable row; the disk decides.
func BenchmarkInsert(b *testing.B) {
	contenders(b, func(b *testing.B, exec func(bool, ...codec.Statement) int) {
		b.ReportAllocs()
		for b.Loop() {
			exec(false, stmt("INSERT INTO t(name, score) VALUES(?1, 1.5)", codec.Text("somebody")))
		}
	})
}

// BenchmarkTransaction10: ten durable updates of one row each.
func BenchmarkTransaction10(b *testing.B) {
	contenders(b, func(b *testing.B, exec func(bool, ...codec.Statement) int) {
		b.ReportAllocs()
		i := int64(0)
		list := make([]codec.Statement, 10)
		for b.Loop() {
			for j := range list {
				i = i%benchRows + 1
				list[j] = stmt("UPDATE t SET name=?2 WHERE id=?1", codec.Integer(i), codec.Text("somebody else"))
			}
			exec(false, list...)
		}
	})
}

// BenchmarkScan10000: all rows of a table of three columns.
func BenchmarkScan10000(b *testing.B) {
	contenders(b, func(b *testing.B, exec func(bool, ...codec.Statement) int) {
		b.ReportAllocs()
		for b.Loop() {
			if n := exec(true, stmt("SELECT id, name, score FROM t")); n != benchRows {
				b.Fatal(n)
			}
		}
	})
}

// BenchmarkOpenClose: open, one query, close in order. Ours also marks the database, fences the connection and opens a reader.
func BenchmarkOpenClose(b *testing.B) {
	b.Run("impl=raw", func(b *testing.B) {
		path := filepath.Join(b.TempDir(), "raw.db")
		rawExecOnce(b, path, benchSchema)
		for b.Loop() {
			rawExecOnce(b, path, "SELECT * FROM t")
		}
	})
	b.Run("impl=ours", func(b *testing.B) {
		s := openStore(b, Options{})
		d := s.newTestDatabase(b, "a", benchSchema)
		for b.Loop() {
			if _, err := d.Query(context.Background(), stmt("SELECT * FROM t")); err != nil {
				b.Fatal(err)
			}
			if err := s.exclusive(context.Background(), "a", func(string) error { return nil }); err != nil {
				b.Fatal(err)
			}
		}
	})
}

func rawExecOnce(b *testing.B, path, sql string) {
	c := rawOpen(b, path)
	rawExec(b, c, sql)
	if err := c.Close(); err != nil {
		b.Fatal(err)
	}
}

// BenchmarkThousandDatabases: a query on each of 1,000 databases in turn with 64 kept open, so that every access opens one
// and closes another; raw opens and closes each.
func BenchmarkThousandDatabases(b *testing.B) {
	const n = 1000
	b.Run("impl=raw", func(b *testing.B) {
		dir := b.TempDir()
		for i := range n {
			rawExecOnce(b, filepath.Join(dir, fmt.Sprint(i)), benchSchema)
		}
		for i := 0; b.Loop(); i++ {
			rawExecOnce(b, filepath.Join(dir, fmt.Sprint(i%n)), "SELECT * FROM t")
		}
	})
	b.Run("impl=ours", func(b *testing.B) {
		s := openStore(b, Options{})
		for i := range n {
			s.newTestDatabase(b, fmt.Sprint(i), benchSchema)
		}
		for i := 0; b.Loop(); i++ {
			if _, err := s.Database(fmt.Sprint(i%n), 1).Query(context.Background(), stmt("SELECT * FROM t")); err != nil {
				b.Fatal(err)
			}
		}
	})
}

// BenchmarkForm: parsing a call and rendering its result, beside the statement itself.
func BenchmarkForm(b *testing.B) {
	call := []byte(`{"sql":"SELECT id, name, score FROM t WHERE id=?1","params":[{"type":"integer","value":"4711"},{"type":"text","value":"` + strings.Repeat("x", 100) + `"}]}`)
	result := codec.Result{Columns: []string{"id", "name", "score"}, Rows: [][]codec.Value{{codec.Integer(4711), codec.Text("name 4711"), codec.Real(1570.3333333333333)}}}
	b.ReportAllocs()
	var out []byte
	for b.Loop() {
		if _, err := codec.ParseStatement(call); err != nil {
			b.Fatal(err)
		}
		out = codec.AppendResult(out[:0], &result)
	}
}
