package control

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"

	"edged/control/artifact"
	"edged/control/form"
	"edged/control/state"
	"edged/internal/fault"
)

// The names of sql §8.2 as the store of databases has them.
var (
	errHistory = fault.Name(fault.Conflict, "migration_history_conflict", 990)
	errSQL     = fault.Name(fault.Invalid, "migration_sql_error", 991)
	errBusy    = fault.Name(fault.Unavailable, "database_busy", 992)
	errBackend = fault.Name(fault.Unavailable, "backend_unavailable", 993)
)

// fakeDatabases applies migrations in memory, which outlives the node that uses it as a disk does. A file whose text is "bad" fails.
type fakeDatabases struct {
	mu      sync.Mutex
	ledgers map[string][]form.Entry
	ran     map[string]int // by the text of a file: how often it was applied
	inside  map[string]int // by database: attempts under way
	most    int            // of them, ever

	// before is asked first, with what is applied so far, and after once a file is applied; both may wait for ctx, as a process
	// that dies there would, or fail the attempt. nil lets pass.
	before, after func(ctx context.Context, applied int) error
	lies          *Migrated // if set: what a failing attempt tells in place of the truth
}

func newFakeDatabases() *fakeDatabases {
	return &fakeDatabases{ledgers: map[string][]form.Entry{}, ran: map[string]int{}, inside: map[string]int{}}
}

func (f *fakeDatabases) migrate(ctx context.Context, m Migration) (did Migrated, err error) {
	f.mu.Lock()
	f.inside[m.Database]++
	f.most = max(f.most, f.inside[m.Database])
	before, after := f.before, f.after
	f.mu.Unlock()
	defer func() {
		f.mu.Lock()
		defer f.mu.Unlock()
		f.inside[m.Database]--
		if err != nil && f.lies != nil {
			did = *f.lies
		}
	}()
	did = Migrated{Ledger: f.ledger(m.Database), Effect: state.EffectNone}
	if before != nil {
		if err := before(ctx, len(did.Ledger)); err != nil {
			return did, err
		}
	}
	for i, e := range did.Ledger {
		if i >= len(m.Files) || m.Files[i].Path != e.Path || m.Files[i].SHA256 != e.SHA256 {
			return did, errHistory.Newf("test", "migration %d is another", i+1)
		}
	}
	for _, file := range m.Files[len(did.Ledger):] {
		r, err := file.Open()
		if err != nil {
			return did, err
		}
		text, err := io.ReadAll(r)
		if err = errors.Join(err, r.Close()); err != nil {
			return did, err
		}
		if string(text) == "bad" {
			return did, errSQL.Newf("test", "%s: no", file.Path)
		}
		f.mu.Lock()
		f.ran[string(text)]++
		f.ledgers[m.Database] = append(f.ledgers[m.Database], form.Entry{Path: file.Path, SHA256: file.SHA256})
		f.mu.Unlock()
		did.Ledger, did.Effect = f.ledger(m.Database), state.EffectPartial
		if after != nil {
			if err := after(ctx, len(did.Ledger)); err != nil {
				return did, err
			}
		}
	}
	return did, nil
}

func (f *fakeDatabases) ledger(database string) []form.Entry {
	f.mu.Lock()
	defer f.mu.Unlock()
	return append([]form.Entry{}, f.ledgers[database]...)
}

func (f *fakeDatabases) paths(database string) string {
	var out []string
	for _, e := range f.ledger(database) {
		out = append(out, e.Path)
	}
	return strings.Join(out, ",")
}

// startWithMigrations is a node with stores, a database and what applies migrations to it.
func startWithMigrations(t testing.TB, dir string, stores fakes, f *fakeDatabases) *node {
	t.Helper()
	return startWithStores(t, dir, stores, func(o *Options) { o.Migrate = f.migrate })
}

// migrationSet makes a set; the texts are those of 1.sql, 2.sql, and so on.
func (n *node) migrationSet(name string, texts ...string) string {
	n.t.Helper()
	var files []spec
	for i, text := range texts {
		sum, url := n.upload(text)
		files = append(files, spec{"path": string(rune('1'+i)) + ".sql", "url": url, "sha256": sum, "mediaType": "application/sql"})
	}
	raw, err := json.Marshal(spec{"files": files})
	if err != nil {
		n.t.Fatal(err)
	}
	sum, url := n.upload(string(raw))
	return n.made(form.SQLiteMigrationsURL, name, spec{"artifact": spec{"url": url, "sha256": sum}})
}

func migration(database, set string) spec {
	return spec{"database": ref(database), "migrationSet": ref(set)}
}

// outcome is the end of an Operation in one line: status effect code.
func (n *node) outcome(a answer) string {
	n.t.Helper()
	op := n.ended(a)
	code := ""
	if e, ok := op.member(n.t, "error").(map[string]any); ok {
		code = " " + e["code"].(string)
	}
	return op.text(n.t, "status") + " " + op.text(n.t, "effect") + code
}

// ready is what a migration shows of itself: the paths applied and whether it is ready.
func (n *node) ready(uid string) (applied string, ready any) {
	n.t.Helper()
	o := n.get(uid).member(n.t, "observed").(map[string]any)
	var out []string
	list, _ := o["appliedEntries"].([]any)
	for _, e := range list {
		out = append(out, e.(map[string]any)["path"].(string))
	}
	return strings.Join(out, ","), o["ready"]
}

// dies returns a hook that stops at a number of applied files, and what tells that it did.
func dies(at int) (hook func(context.Context, int) error, reached <-chan struct{}) {
	ch := make(chan struct{}, 1)
	return func(ctx context.Context, applied int) error {
		if applied != at {
			return nil
		}
		select {
		case ch <- struct{}{}:
		default:
		}
		<-ctx.Done()
		return ctx.Err()
	}, ch
}

// lose takes the bytes of a text out of custody, as a damaged disk would.
func (n *node) lose(text string) {
	n.t.Helper()
	blob, err := n.c.artifacts.Open(artifact.Digest(sha(text)))
	if err != nil {
		n.t.Fatal(err)
	}
	if err := errors.Join(blob.Close(), os.Remove(blob.Name())); err != nil {
		n.t.Fatal(err)
	}
}

// The fake keeps to what Options.Migrate promises, or the tests with it would show nothing.
func TestFakeDatabasesKeepTheirPromise(t *testing.T) {
	f := newFakeDatabases()
	file := func(path, text string) MigrationFile {
		return MigrationFile{path, text, func() (io.ReadCloser, error) { return io.NopCloser(strings.NewReader(text)), nil }}
	}
	m := Migration{Database: "d", Files: []MigrationFile{file("1", "one"), file("2", "bad")}}
	for range 2 {
		did, err := f.migrate(t.Context(), m)
		if fault.NamedOf(err) != errSQL || f.paths("d") != "1" || f.ran["one"] != 1 || !slices.Equal(did.Ledger, f.ledger("d")) {
			t.Fatal(did, err, f.ran)
		}
	}
	m.Files[1] = file("2", "two")
	did, err := f.migrate(t.Context(), m)
	if err != nil || len(did.Ledger) != 2 || f.ran["one"] != 1 {
		t.Error(did, err, f.ran)
	}
}
