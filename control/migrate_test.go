package control

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"

	"edged/control/form"
	"edged/control/state"
	"edged/internal/fault"
)

func sha(text string) [32]byte { return sha256.Sum256([]byte(text)) }

// sql §8: a set is applied in order, a same-spec PUT verifies and runs nothing twice, a longer set goes on and leaves the older
// application not ready, a delete removes only the Resource. The deletion matrix holds database and set meanwhile.
func TestMigrations(t *testing.T) {
	f, dbs := newFakes(), newFakeDatabases()
	n := startWithMigrations(t, t.TempDir(), f, dbs)
	if n.do("GET", root+"/support?form="+form.MigrationURL, nil).member(t, "supported") != true {
		t.Fatal("the Form is not supported")
	}
	db := n.made(form.SQLiteDatabaseURL, "db", spec{})
	two, three := n.migrationSet("two", "a", "b"), n.migrationSet("three", "a", "b", "c")
	n.foretold(spec{"action": "create", "input": spec{"form": form.MigrationURL, "space": "default", "name": "m", "spec": migration(db, two)}}, "")
	n.foretold(spec{"action": "create", "input": spec{"form": form.MigrationURL, "space": "default", "name": "m", "spec": migration(two, db)}}, "invalid_spec")
	if dbs.paths(db) != "" {
		t.Error("a preview applied something")
	}
	old := n.made(form.MigrationURL, "old", migration(db, two))
	want := fmt.Sprintf(`{"databaseUid":%q,"migrationSetUid":%q,"appliedEntries":[{"path":"1.sql","sha256":"%x"},{"path":"2.sql","sha256":"%x"}],`+
		`"targetEntries":[{"path":"1.sql","sha256":"%x"},{"path":"2.sql","sha256":"%x"}],"ready":true}`, db, two, sha("a"), sha("b"), sha("a"), sha("b"))
	if read := n.get(old); !strings.Contains(string(read.body), `"observed":`+want) || !strings.Contains(string(read.body), `"output":{}`) {
		t.Errorf("reads %s, want %s", read.body, want)
	}
	n.succeeded(n.put(old, migration(db, two)))
	newer := n.made(form.MigrationURL, "new", migration(db, three))
	if dbs.paths(db) != "1.sql,2.sql,3.sql" || dbs.ran["a"] != 1 || dbs.ran["b"] != 1 || dbs.ran["c"] != 1 {
		t.Errorf("applied %s, ran %v", dbs.paths(db), dbs.ran)
	}
	if applied, ready := n.ready(old); ready != false || applied != "1.sql,2.sql,3.sql" {
		t.Errorf("the older shows %s %v", applied, ready)
	}
	if _, ready := n.ready(newer); ready != true {
		t.Error("the newer is not ready")
	}
	if got := n.outcome(n.put(old, migration(db, two))); got != "failed none migration_history_conflict" {
		t.Errorf("the older again: %s", got)
	}
	n.put(newer, migration(db, two)).is(t, 422, "invalid_spec")
	n.createWith(form.MigrationURL, "private", migration(db, two), spec{}).is(t, 422, "capability_required")
	n.del(db).is(t, 409, "dependency_conflict")
	n.del(two).is(t, 409, "dependency_conflict")
	n.del(old).is(t, 200, "")
	n.del(newer).is(t, 200, "")
	n.succeeded(n.del(two))
	if dbs.paths(db) != "1.sql,2.sql,3.sql" {
		t.Error("a delete took migrations back")
	}
	n.succeeded(n.del(db))
}

// Without a database store, or without what applies migrations, the Form is not supported and nothing pretends.
func TestMigrationsNeedWhatAppliesThem(t *testing.T) {
	for name, take := range map[string]func(*Options){
		"no store": func(o *Options) { delete(o.Stores, form.StoreSQL) }, "nothing applies": func(o *Options) { o.Migrate = nil },
	} {
		n := startWithStores(t, t.TempDir(), newFakes(), func(o *Options) {
			o.Migrate = newFakeDatabases().migrate
			take(o)
		})
		if n.do("GET", root+"/support?form="+form.MigrationURL, nil).member(t, "supported") != false {
			t.Errorf("%s: supported", name)
		}
		n.create(form.MigrationURL, "m", spec{}).is(t, 422, "unsupported_form")
	}
}

// sql §8.2: every failure has its code, and its effect is none or partial by what was applied; a later PUT on the same UID resumes.
func TestMigrationFailures(t *testing.T) {
	for _, row := range []struct {
		name    string
		texts   []string
		applied string // before
		err     error  // of the attempt; nil lets the fake find its own
		want    string
		ledger  string
		message string
	}{
		{"first file", []string{"bad"}, "", nil, "failed none migration_sql_error", "", "1.sql: no"},
		{"second file", []string{"a", "bad"}, "", nil, "failed partial migration_sql_error", "1.sql", "2.sql: no"},
		{"second file again", []string{"a", "bad"}, "a", nil, "failed none migration_sql_error", "1.sql", "2.sql: no"},
		{"another history", []string{"b", "c"}, "a", nil, "failed none migration_history_conflict", "1.sql", "migration 1 is another"},
		{"busy", []string{"a"}, "", errBusy.New("test", ""), "failed none database_busy", "", "database_busy"},
		{"backend", []string{"a"}, "", errBackend.Wrap("test", errors.New("secret path")), "failed none backend_unavailable", "", "backend_unavailable"},
		{"no name", []string{"a"}, "", fault.New(fault.Internal, "test", "never shown"), "failed none backend_unavailable", "", "backend_unavailable"},
		{"bytes", []string{"a"}, "", fault.New(fault.Invalid, "test", "1.sql does not have the digest"), "failed none artifact_invalid", "", "1.sql does not have the digest"},
		{"lost bytes", []string{"a", "lost"}, "", nil, "failed partial artifact_invalid", "1.sql", "the bytes of 2.sql are not held any more"},
	} {
		t.Run(row.name, func(t *testing.T) {
			dbs := newFakeDatabases()
			n := startWithMigrations(t, t.TempDir(), newFakes(), dbs)
			db := n.made(form.SQLiteDatabaseURL, "db", spec{})
			if row.applied != "" {
				n.made(form.MigrationURL, "first", migration(db, n.migrationSet("set.first", row.applied)))
			}
			set := n.migrationSet("set", row.texts...)
			if row.name == "lost bytes" {
				n.lose("lost")
			}
			dbs.before = func(context.Context, int) error { return row.err }
			a := n.create(form.MigrationURL, "m", migration(db, set))
			if got := n.outcome(a); got != row.want || dbs.paths(db) != row.ledger {
				t.Errorf("ended %s with %s, want %s with %s", got, dbs.paths(db), row.want, row.ledger)
			}
			if e := n.ended(a).member(t, "error").(map[string]any); e["message"] != row.message {
				t.Errorf("the message is %q, want %q", e["message"], row.message)
			}
			uid := n.ended(a).text(t, "resourceUid")
			if applied, ready := n.ready(uid); applied != row.ledger || ready != false || n.get(uid).text(t, "phase") != "error" {
				t.Errorf("shows %s %v", applied, ready)
			}
			n.del(db).is(t, 409, "dependency_conflict")
			if row.err != nil {
				dbs.before = nil
				n.succeeded(n.put(uid, migration(db, set)))
				if _, ready := n.ready(uid); ready != true {
					t.Error("a later PUT does not make it ready")
				}
			}
			n.succeeded(n.del(uid))
		})
	}
}

// host-api §7.5, sql §8.1: wherever the process dies, the same Operation goes on where the ledger ends: no file runs twice. When it
// fails after all, what the attempt before the crash applied counts.
func TestMigrationsSurviveACrash(t *testing.T) {
	for _, row := range []struct {
		name   string
		before bool
		at     int
		texts  []string
		want   string
		ledger string
	}{
		{"before anything", true, 0, []string{"a", "b"}, "succeeded complete", "1.sql,2.sql"},
		{"after one file", false, 1, []string{"a", "b"}, "succeeded complete", "1.sql,2.sql"},
		{"after all", false, 2, []string{"a", "b"}, "succeeded complete", "1.sql,2.sql"},
		{"before a bad one", false, 1, []string{"a", "bad"}, "failed partial migration_sql_error", "1.sql"},
		{"before the only one, which is bad", true, 0, []string{"bad"}, "failed none migration_sql_error", ""},
	} {
		t.Run(row.name, func(t *testing.T) {
			f, dbs := newFakes(), newFakeDatabases()
			n := startWithMigrations(t, t.TempDir(), f, dbs)
			db := n.made(form.SQLiteDatabaseURL, "db", spec{})
			set := n.migrationSet("set", row.texts...)
			hook, reached := dies(row.at)
			if row.before {
				dbs.before = hook
			} else {
				dbs.after = hook
			}
			a := n.create(form.MigrationURL, "m", migration(db, set))
			<-reached
			a.is(t, 202, "")
			dead := n.crashCopy()
			n.stop()
			dbs.before, dbs.after = nil, nil
			m := startWithMigrations(t, dead, f, dbs)
			if got := m.outcome(a); got != row.want || dbs.paths(db) != row.ledger {
				t.Errorf("ended %s with %s, want %s with %s", got, dbs.paths(db), row.want, row.ledger)
			}
			for text, times := range dbs.ran {
				if times != 1 {
					t.Errorf("%s ran %d times", text, times)
				}
			}
		})
	}
}

// sql §8.2, host-api §7.2: an unknown outcome is no end. The Operation is reconciling with effect unknown, nothing else is accepted for
// its UID, and the ledger decides as soon as it can be read; a failure whose ledger cannot be read decides nothing.
func TestMigrationOfUnknownOutcome(t *testing.T) {
	dbs := newFakeDatabases()
	n := startWithMigrations(t, t.TempDir(), newFakes(), dbs)
	db := n.made(form.SQLiteDatabaseURL, "db", spec{})
	set := n.migrationSet("set", "a", "bad")
	var broken, calls atomic.Int32
	broken.Store(1)
	fail := func(_ context.Context, applied int) error {
		if calls.Add(1); broken.Load() == 0 {
			return nil
		}
		return errBackend.New("test", "the disk failed")
	}
	dbs.after, dbs.lies = fail, &Migrated{Effect: state.EffectUnknown}
	a := n.create(form.MigrationURL, "m", migration(db, set))
	uid := a.text(t, "resourceUid")
	n.poll(func() bool {
		op := n.do("GET", root+"/operations/"+a.text(t, "id"), nil)
		return op.text(t, "status") == "reconciling" && op.text(t, "effect") == "unknown"
	})
	n.del(uid).is(t, 409, "resource_busy")
	dbs.mu.Lock()
	dbs.after, dbs.before, dbs.lies = nil, fail, &Migrated{Effect: state.EffectNone} // it does not run, and what was before cannot be read
	dbs.mu.Unlock()
	seen := calls.Load()
	n.poll(func() bool { return calls.Load() > seen })
	if got := n.do("GET", root+"/operations/"+a.text(t, "id"), nil).text(t, "status"); got != "reconciling" {
		t.Errorf("without a ledger it became %s", got)
	}
	broken.Store(0)
	dbs.mu.Lock()
	dbs.lies = nil
	dbs.mu.Unlock()
	if got := n.outcome(a); got != "failed partial migration_sql_error" {
		t.Errorf("ended %s", got)
	}
}

// sql §8.1: applications on one database are serialised, each on top of the one before; those on others go on meanwhile.
func TestMigrationsOfOneDatabaseTakeTurns(t *testing.T) {
	dbs := newFakeDatabases()
	n := startWithMigrations(t, t.TempDir(), newFakes(), dbs)
	db, other := n.made(form.SQLiteDatabaseURL, "db", spec{}), n.made(form.SQLiteDatabaseURL, "other", spec{})
	sets := []string{n.migrationSet("s1", "a"), n.migrationSet("s2", "a", "b"), n.migrationSet("s3", "a", "b", "c")}
	held := make(chan struct{})
	dbs.before = func(ctx context.Context, applied int) error {
		if applied > 0 {
			return nil
		}
		select {
		case <-held:
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	var all []answer
	for i, set := range sets {
		all = append(all, n.create(form.MigrationURL, fmt.Sprint("m", i), migration(db, set)))
	}
	for _, a := range all[1:] {
		if got := n.do("GET", root+"/operations/"+a.text(t, "id"), nil).text(t, "status"); got != "queued" {
			t.Errorf("one that waits is %s", got)
		}
	}
	dbs.mu.Lock()
	dbs.ledgers[other] = []form.Entry{{Path: "1.sql", SHA256: fmt.Sprintf("%x", sha("a"))}}
	dbs.mu.Unlock()
	n.made(form.MigrationURL, "elsewhere", migration(other, sets[1]))
	close(held)
	for _, a := range all {
		n.succeeded(a)
	}
	for i, a := range all {
		if applied, ready := n.ready(a.text(t, "resourceUid")); applied != "1.sql,2.sql,3.sql" || ready != (i == 2) {
			t.Errorf("m%d shows %s %v", i, applied, ready)
		}
	}
	if dbs.most != 1 || dbs.ran["a"] != 1 {
		t.Errorf("%d at once, a ran %d times", dbs.most, dbs.ran["a"])
	}
}
