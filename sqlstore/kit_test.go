package sqlstore

import (
	"context"
	"io"
	"strings"
	"testing"

	"edged/internal/fault"
	"edged/internal/testkit"
	"edged/sqlstore/codec"
)

func TestMain(m *testing.M) { testkit.Main(m) }

func openStore(t testing.TB, opt Options) *Store {
	t.Helper()
	if opt.Dir == "" {
		opt.Dir = t.TempDir()
	}
	s, err := Open(opt)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

// newDatabase makes a database with a schema that came through a migration.
func (s *Store) newTestDatabase(t testing.TB, uid, schema string) *Database {
	t.Helper()
	if err := s.Create(t.Context(), uid, 1); err != nil {
		t.Fatal(err)
	}
	d := s.Database(uid, 1)
	if schema != "" {
		if _, err := d.Apply(t.Context(), []MigrationFile{file("0001.sql", schema)}); err != nil {
			t.Fatal(err)
		}
	}
	return d
}

func file(path, sql string) MigrationFile {
	return MigrationFile{Path: path, SHA256: digest(sql), Open: func() (io.ReadCloser, error) { return io.NopCloser(strings.NewReader(sql)), nil }}
}

func stmt(sql string, params ...codec.Value) codec.Statement {
	return codec.Statement{SQL: sql, Params: params}
}

func mustExecute(t testing.TB, d *Database, sql string, params ...codec.Value) codec.Result {
	t.Helper()
	r, err := d.Execute(context.Background(), stmt(sql, params...))
	if err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
	return r
}

// one runs a query that gives one value.
func one(t testing.TB, d *Database, sql string, params ...codec.Value) codec.Value {
	t.Helper()
	r, err := d.Query(context.Background(), stmt(sql, params...))
	if err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
	return r.Rows[0][0]
}

func wantNamed(t testing.TB, err error, want *fault.Named) {
	t.Helper()
	if fault.NamedOf(err) != want {
		t.Errorf("got %v, want %v", err, want)
	}
}
