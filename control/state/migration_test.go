package state

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"edged/control/form"
	"edged/control/rules"
	"edged/internal/testkit"
)

func migration(database, set string) object {
	return object{"database": ref(database), "migrationSet": ref(set)}
}

// files is a set or a ledger of the paths given, a path with "!" having other bytes.
func files(paths ...string) []form.File {
	var out []form.File
	for _, p := range paths {
		digit := "a"
		if strings.HasSuffix(p, "!") {
			digit = "b"
		}
		out = append(out, form.File{Path: strings.TrimSuffix(p, "!"), MediaType: "application/sql", SHA256: strings.Repeat(digit, 64), Size: 1})
	}
	return out
}

func ledger(paths ...string) *form.Ledger {
	return &form.Ledger{Entries: (&form.Index{Files: files(paths...)}).Entries()}
}

func (l *lab) set(uid string, paths ...string) {
	l.t.Helper()
	out := l.create(form.SQLiteMigrationsURL, uid, artifactSpec())
	l.end(out.Operation, true, &form.Index{SHA256: strings.Repeat("c", 64), Files: files(paths...)})
}

// applied ends the unfinished Operation of a migration; "" is success.
func (l *lab) applied(out Outcome, seed rules.Seed, effect Effect, now *form.Ledger) Outcome {
	l.t.Helper()
	if out.Refusal != nil {
		l.t.Fatalf("refused: %s", out.Refusal.Detail())
	}
	l.now++
	return l.s.Apply(&Command{Kind: EndOperation, At: l.now, Operation: out.Operation.ID, OK: seed == "", Seed: seed, Effect: effect, Ledger: now})
}

// shows renders what a migration observes in one line: applied paths / target paths, ready, reason.
func (l *lab) shows(uid string) string {
	l.t.Helper()
	o := l.served(uid)["observed"].(object)
	if len(o) == 0 {
		return "{}"
	}
	paths := func(member string) string {
		var out []string
		for _, e := range o[member].([]any) {
			out = append(out, fmt.Sprint(e.(object)["path"]))
		}
		return strings.Join(out, ",")
	}
	if len(o) != 5 || o["databaseUid"] != "db" {
		l.t.Errorf("%s observes %v", uid, o)
	}
	return strings.TrimSpace(fmt.Sprint(paths("appliedEntries"), "/", paths("targetEntries"), " ", o["ready"], " ", l.reason(uid)))
}

func newMigrations(t *testing.T) *lab {
	l := newLab(t)
	l.ok(l.create(form.SQLiteDatabaseURL, "db", object{}))
	l.set("two", "1", "2")
	l.set("three", "1", "2", "3")
	l.set("other", "1", "2!")
	return l
}

// sql §8.3, worker-aggregate rule 9: ready means the whole ledger and the whole set are equal; after a longer set was applied an older
// application is not ready and stays so. Only renderings move, only those that change, and a snapshot keeps all of it.
func TestMigrationReadiness(t *testing.T) {
	l := newMigrations(t)
	out := l.create(form.MigrationURL, "old", migration("db", "two"))
	if got := l.shows("old"); got != "{}" || l.served("old")["observedAt"] != nil {
		t.Errorf("before anything is verified it shows %s", got)
	}
	l.applied(out, "", "", ledger("1", "2"))
	if got := l.shows("old"); got != "1,2/1,2 true" {
		t.Fatalf("shows %s", got)
	}
	before, old := l.revisions(), l.served("old")
	out = l.create(form.MigrationURL, "new", migration("db", "three"))
	if end := l.applied(out, "", "", ledger("1", "2", "3")); end.Plan {
		t.Error("a migration is said to change what a node serves")
	}
	if got := l.moved(before); got != "new old" {
		t.Errorf("moved %s", got)
	}
	if got := l.shows("new") + "; " + l.shows("old"); got != "1,2,3/1,2,3 true; 1,2,3/1,2 false ExternalChange" {
		t.Errorf("shows %s", got)
	}
	now := l.served("old")
	for _, member := range []string{"generation", "observedGeneration", "spec", "phase", "lastOperation"} {
		if fmt.Sprint(now[member]) != fmt.Sprint(old[member]) {
			t.Errorf("%s moved from %v to %v", member, old[member], now[member])
		}
	}
	if now["observedAt"] == old["observedAt"] {
		t.Error("observedAt stays with another observation")
	}
	before = l.revisions()
	l.applied(l.update("new", migration("db", "three")), "", "", ledger("1", "2", "3"))
	if got := l.moved(before); got != "new" {
		t.Errorf("an idempotent re-apply moved %s", got)
	}
	l.applied(l.update("old", migration("db", "two")), rules.MigrationHistory, EffectNone, ledger("1", "2", "3"))
	l.ok(l.delete("new"))
	if got := l.shows("old"); got != "1,2,3/1,2 false ExternalChange" {
		t.Errorf("after the newer one is gone it shows %s", got)
	}
	s := New(form.Builtin())
	if err := s.Restore(bytes.NewReader(l.bytesOf())); err != nil {
		t.Fatal(err)
	}
	l.s = s
	before = l.revisions()
	l.s.renderAll(l.now, map[string]bool{"old": true})
	if got := l.moved(before); got != "" {
		t.Errorf("a restart moved %s", got)
	}
}

// sql §8.3: what a failed Operation verified is observed too; what could not be verified leaves the observation and its instant.
// observedGeneration speaks of successes only.
func TestMigrationFailures(t *testing.T) {
	l := newMigrations(t)
	out := l.create(form.MigrationURL, "m", migration("db", "three"))
	l.applied(out, rules.DatabaseBusy, EffectNone, nil)
	if got := l.shows("m"); got != "{}" || l.served("m")["phase"] != "error" {
		t.Errorf("nothing was verified and it shows %s", got)
	}
	l.applied(l.update("m", migration("db", "three")), rules.MigrationSQL, EffectPartial, ledger("1", "2"))
	if got := l.shows("m"); got != "1,2/1,2,3 false Provisioning" || l.served("m")["observedGeneration"] != 0.0 {
		t.Errorf("after two of three it shows %s in %v", got, l.served("m"))
	}
	was := l.served("m")
	l.applied(l.update("m", migration("db", "three")), rules.BackendUnavailable, EffectNone, nil)
	if now := l.served("m"); fmt.Sprint(now["observed"], now["observedAt"]) != fmt.Sprint(was["observed"], was["observedAt"]) {
		t.Errorf("a failed check moved %v to %v", was, now)
	}
	l.applied(l.create(form.MigrationURL, "x", migration("db", "other")), rules.MigrationHistory, EffectNone, ledger("1", "2"))
	if got := l.shows("x"); got != "1,2/1,2 false ExternalChange" {
		t.Errorf("equal counts and paths, other bytes: shows %s", got)
	}
	l.applied(l.update("m", migration("db", "three")), "", "", ledger("1", "2", "3"))
	if got := l.shows("m"); got != "1,2,3/1,2,3 true" || l.served("m")["phase"] != "idle" || l.served("m")["observedGeneration"] != 4.0 {
		t.Errorf("after it was repaired it shows %s", got)
	}
}

// sql §8, worker-aggregate §4: both references are fixed and checked like any other; the deletion matrix holds database and set
// while any application lives, one that failed too; its own delete ends at once. What is left behind after everything went is nothing.
func TestMigrationRelations(t *testing.T) {
	l := newMigrations(t)
	l.ok(l.create(form.KVNamespaceURL, "kv", object{}))
	l.refused(l.create(form.MigrationURL, "m", migration("kv", "two")), "REL-3", "/database")
	l.refused(l.create(form.MigrationURL, "m", migration("db", "db")), "REL-3", "/migrationSet")
	l.refused(l.create(form.MigrationURL, "m", migration("db", "nothing")), "REL-1", "/migrationSet")
	unsettled := l.create(form.SQLiteMigrationsURL, "late", artifactSpec())
	out := l.create(form.MigrationURL, "m", migration("db", "late"))
	l.refused(out, "REL-5", "late")
	l.seed(out, rules.ResourceBusy)
	l.end(unsettled.Operation, false, nil)
	l.refused(l.create(form.MigrationURL, "m", migration("db", "late")), "REL-5", "late")

	pending := l.create(form.MigrationURL, "m", migration("db", "two"))
	l.refused(l.delete("db"), "REL-8", "SQLiteMigrationApplication m")
	l.refused(l.delete("two"), "REL-8", "SQLiteMigrationApplication m")
	l.seed(l.delete("m"), rules.ResourceBusy)
	l.applied(pending, rules.MigrationSQL, EffectNone, nil)
	l.refused(l.delete("db"), "REL-8", "m")
	l.refused(l.delete("two"), "REL-8", "m")
	l.refused(l.update("m", migration("db", "three")), "immutable", "/migrationSet")
	l.applied(l.update("m", migration("db", "two")), "", "", ledger("1", "2"))
	if out := l.delete("m"); out.Operation == nil || out.Operation.Status != Succeeded {
		t.Fatalf("the delete ends %+v", out)
	}
	if got := l.s.Ledger("db"); len(got) != 2 {
		t.Errorf("with the application the ledger went: %v", got)
	}
	for _, uid := range []string{"two", "three", "other", "late", "db", "kv"} {
		l.ok(l.delete(uid))
	}
	if l.s.ledgers.Len() != 0 || l.s.resources.Len() != 0 {
		t.Errorf("%d ledgers stay of %d Resources", l.s.ledgers.Len(), l.s.resources.Len())
	}
}

// REL-10: a database or set that is lost makes its applications not ready, and what they showed stays.
func TestMigrationOfALostTarget(t *testing.T) {
	for _, gone := range []string{"db", "two"} {
		l := newMigrations(t)
		l.applied(l.create(form.MigrationURL, "m", migration("db", "two")), "", "", ledger("1", "2"))
		l.vanish(gone)
		if got := l.shows("m"); got != "1,2/1,2 false DependencyMissing" {
			t.Errorf("without %s it shows %s", gone, got)
		}
	}
	l := newMigrations(t)
	l.applied(l.create(form.MigrationURL, "m", migration("db", "two")), "", "", ledger("1", "2"))
	out := l.update("db", object{})
	l.now++
	l.s.Apply(&Command{Kind: EndOperation, At: l.now, Operation: out.Operation.ID, Effect: EffectNone, Seed: rules.UnsupportedCapability, Lost: true})
	if got := l.shows("m"); got != "1,2/1,2 false DependencyMissing" {
		t.Errorf("with its store gone it shows %s", got)
	}
}

// Rule 9 over random histories: after every step each application shows what the last verified ledger of its database and its own set
// say, read naively, and a pass over everything finds nothing left to render.
func TestMigrationHistoriesRenderWholly(t *testing.T) {
	rng := testkit.Rand(t)
	sets := map[string][]string{"s1": {"1"}, "s2": {"1", "2"}, "s3": {"1", "2", "3"}, "x2": {"1", "2!"}}
	names := slices.Sorted(maps.Keys(sets))
	for range 60 {
		l := newLab(t)
		for _, uid := range names {
			l.set(uid, sets[uid]...)
		}
		ledgers := map[string]*form.Ledger{}
		for _, db := range []string{"db1", "db2"} {
			l.ok(l.create(form.SQLiteDatabaseURL, db, object{}))
			ledgers[db] = ledger()
		}
		live := map[string]bool{} // value: something was verified
		specs := map[string][2]string{}
		for i := range 25 {
			uid := fmt.Sprint("m", i)
			db, set := fmt.Sprint("db", 1+rng.IntN(2)), names[rng.IntN(len(names))]
			var out Outcome
			switch old := slices.Sorted(maps.Keys(live)); {
			case len(old) == 0 || rng.IntN(3) == 0:
				specs[uid] = [2]string{db, set}
				out = l.create(form.MigrationURL, uid, migration(db, set))
			case rng.IntN(4) == 0:
				uid = old[rng.IntN(len(old))]
				l.ok(l.delete(uid))
				delete(live, uid)
			default:
				uid = old[rng.IntN(len(old))]
				db, set = specs[uid][0], specs[uid][1]
				out = l.update(uid, migration(db, set))
			}
			if out.Operation != nil {
				known := live[uid]
				switch target := ledger(sets[set]...); rng.IntN(4) {
				case 0:
					l.applied(out, rules.BackendUnavailable, EffectNone, nil)
				case 1:
					ledgers[db], known = ledger(sets[set][:rng.IntN(len(sets[set]))]...), true // a restored database may be behind
					l.applied(out, rules.MigrationSQL, EffectPartial, ledgers[db])
				default:
					ledgers[db], known = target, true
					l.applied(out, "", "", target)
				}
				live[uid] = known
			}
			l.agree(live, func(m string) (applied, target []form.Entry) {
				return ledgers[specs[m][0]].Entries, ledger(sets[specs[m][1]]...).Entries
			})
		}
	}
}

// agree compares what migrations show with what they should, "{}" where nothing was verified, and looks for a rendering that was missed.
func (l *lab) agree(live map[string]bool, should func(uid string) (applied, target []form.Entry)) {
	l.t.Helper()
	for uid, known := range live {
		want := "{}"
		if known {
			applied, target := should(uid)
			want = fmt.Sprint(applied, target, slices.Equal(applied, target))
		}
		if got := l.shown(uid); got != want {
			l.t.Fatalf("%s shows %s, want %s", uid, got, want)
		}
	}
	before, all := l.revisions(), map[string]bool{}
	for uid := range before {
		all[uid] = true
	}
	if l.s.renderAll(l.now, all); l.moved(before) != "" {
		l.t.Fatalf("a pass over everything moved %s", l.moved(before))
	}
}

// shown is what a migration observes, as its parts print.
func (l *lab) shown(uid string) string {
	l.t.Helper()
	var o struct {
		AppliedEntries, TargetEntries []form.Entry
		Ready                         bool
	}
	raw := l.s.Resource(uid).Observed
	if string(raw) == "{}" {
		return "{}"
	}
	if err := json.Unmarshal(raw, &o); err != nil {
		l.t.Fatal(err)
	}
	return fmt.Sprint(o.AppliedEntries, o.TargetEntries, o.Ready)
}
