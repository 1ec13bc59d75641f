package e2e

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"
)

// migrationSet holds texts as 1.sql, 2.sql and so on, and makes a set of them.
func (n *node) migrationSet(name string, texts ...string) string {
	n.t.Helper()
	url := func(digest string) string { return n.info.ControlOrigin + "/artifacts/sha256/" + digest }
	var files []object
	for i, text := range texts {
		digest := n.held(text)
		files = append(files, object{"path": fmt.Sprint(i+1, ".sql"), "url": url(digest), "sha256": digest, "mediaType": "application/sql"})
	}
	manifest, err := json.Marshal(object{"files": files})
	if err != nil {
		n.t.Fatal(err)
	}
	m := n.held(string(manifest))
	return n.made("SQLiteMigrationSet/0.2.0/", name, object{"artifact": object{"url": url(m), "sha256": m}})
}

// ends polls an Operation to its end and gives it in one line, and the UID of its Resource.
func (n *node) ends(a answer) (outcome, uid string) {
	n.t.Helper()
	for end := time.Now().Add(20 * time.Second); ; <-time.After(20 * time.Millisecond) {
		var op struct {
			ID, ResourceUID, Status, Effect string
			Error                           struct{ Code, Message string }
		}
		if a.status != 200 && a.status != 202 || json.Unmarshal([]byte(a.body), &op) != nil || time.Now().After(end) {
			n.t.Fatalf("operation: %d %s", a.status, a.body)
		}
		if op.Status == "succeeded" || op.Status == "failed" {
			return strings.TrimSpace(op.Status + " " + op.Effect + " " + op.Error.Code + " " + op.Error.Message), op.ResourceUID
		}
		a = n.api("GET", root+"/operations/"+op.ID, nil)
	}
}

// migrationBody is the creation of an application.
func migrationBody(name, database, set string) string {
	return fmt.Sprintf(`{"form":"%sSQLiteMigrationApplication/0.2.0/","space":"default","name":%q,"spec":{"database":{"resourceUid":%q},"migrationSet":{"resourceUid":%q}}}`,
		forms, name, database, set)
}

func (n *node) migrate(name, database, set string) (outcome, uid string) {
	n.t.Helper()
	return n.ends(n.api("POST", root+"/resources", strings.NewReader(migrationBody(name, database, set)), "Idempotency-Key", fmt.Sprintf("e2e-migrate-%06d", keys.Add(1))))
}

// applied is what an application shows: paths applied, files of its set, ready.
func (n *node) applied(uid string) string {
	n.t.Helper()
	var r struct {
		Observed struct {
			AppliedEntries, TargetEntries []struct{ Path string }
			Ready                         bool
		}
	}
	if a := n.api("GET", root+"/resources/"+uid, nil); json.Unmarshal([]byte(a.body), &r) != nil {
		n.t.Fatalf("application: %s", a.body)
	}
	var paths []string
	for _, e := range r.Observed.AppliedEntries {
		paths = append(paths, e.Path)
	}
	return fmt.Sprint(strings.Join(paths, ","), " of ", len(r.Observed.TargetEntries), " ", r.Observed.Ready)
}

const notesWorker = `
export default {
	async fetch(request, env) {
		try {
			const {rows} = await env.DB.query('select * from notes order by id', []);
			return Response.json(rows.map((row) => Object.values(row).map((v) => v.value)));
		} catch (e) {
			return new Response(e.name + ': ' + e.message);
		}
	},
};`

const (
	makeNotes = "create table notes(id integer primary key, text text not null);\ninsert into notes(text) values ('one; two');\n"
	addAuthor = "alter table notes add column author text;\ncreate trigger stamp after insert on notes begin update notes set author = 'nobody' where id = new.id; end;\n"
	moreNotes = "insert into notes(text) values ('three');\n"
)

// sql §8 through the real node: a worker queries what migrations made, a longer set goes on and leaves the older application not ready,
// every failure has its code and effect, and the ledger is there after a kill -9.
func TestMigrations(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	n := start(t, dir)
	db := n.made("SQLiteDatabase/0.2.0/", "app", object{})
	worker := n.served("notes", notesWorker, object{"handlers": []string{"fetch"}, "sqliteBindings": []bound{{"DB", ref{db}}}})
	url := n.address("notes", worker)
	set := n.migrationSet("set-2", makeNotes, addAuthor)
	outcome, older := n.migrate("m2", db, set)
	if outcome != "succeeded complete" || n.applied(older) != "1.sql,2.sql of 2 true" {
		t.Fatalf("%s, shows %s", outcome, n.applied(older))
	}
	expect(t, "what the files made", n.get(url), 200, `[["1","one; two",null]]`)

	outcome, bad := n.migrate("bad", db, n.migrationSet("set-bad", makeNotes, addAuthor, moreNotes, "insert into nothing values (1)"))
	if !strings.HasPrefix(outcome, "failed partial migration_sql_error 4.sql: ") || n.applied(bad) != "1.sql,2.sql,3.sql of 4 false" {
		t.Errorf("%s, shows %s", outcome, n.applied(bad))
	}
	if got := n.applied(older); got != "1.sql,2.sql,3.sql of 2 false" {
		t.Errorf("the older application shows %s", got)
	}
	expect(t, "the file before the failed one stays", n.get(url), 200, `[["1","one; two",null],["2","three","nobody"]]`)
	for name, row := range map[string]struct{ want, text string }{
		"pragma": {"failed none migration_sql_error 4.sql: ", "pragma user_version = 3"},
		"commit": {"failed none migration_sql_error 4.sql: ", "insert into notes(text) values ('lost'); commit; begin"},
	} {
		outcome, uid := n.migrate(name, db, n.migrationSet("set-"+name, makeNotes, addAuthor, moreNotes, row.text))
		if !strings.HasPrefix(outcome, row.want) || n.applied(uid) != "1.sql,2.sql,3.sql of 4 false" {
			t.Errorf("%s: %s, shows %s", name, outcome, n.applied(uid))
		}
	}
	if outcome, _ := n.migrate("other", db, n.migrationSet("set-other", makeNotes, moreNotes)); !strings.HasPrefix(outcome, "failed none migration_history_conflict ") {
		t.Errorf("another history: %s", outcome)
	}
	outcome, newer := n.migrate("m3", db, n.migrationSet("set-3", makeNotes, addAuthor, moreNotes))
	if outcome != "succeeded complete" || n.applied(newer) != "1.sql,2.sql,3.sql of 3 true" {
		t.Errorf("%s, shows %s", outcome, n.applied(newer))
	}
	n.kill()
	n = start(t, dir)
	if n.applied(newer) != "1.sql,2.sql,3.sql of 3 true" || n.applied(older) != "1.sql,2.sql,3.sql of 2 false" {
		t.Errorf("after a kill they show %s and %s", n.applied(newer), n.applied(older))
	}
	same := fmt.Sprintf(`{"spec":{"database":{"resourceUid":%q},"migrationSet":{"resourceUid":%q}}}`, db, set)
	put := n.api("PUT", root+"/resources/"+older, strings.NewReader(same), "Idempotency-Key", "e2e-migrate-again-1", "Takoform-Expected-Generation", "1")
	if outcome, _ := n.ends(put); !strings.HasPrefix(outcome, "failed none migration_history_conflict ") {
		t.Errorf("the older set again: %s", outcome)
	}
	remove := func(uid, generation string) int {
		t.Helper()
		return n.api("DELETE", root+"/resources/"+uid, nil, "Idempotency-Key", fmt.Sprintf("e2e-migrate-%06d", keys.Add(1)), "Takoform-Expected-Generation", generation).status
	}
	if got := remove(set, "1"); got != http.StatusConflict {
		t.Errorf("the set of an application that failed is deleted: %d", got)
	}
	if got := remove(older, "2"); got != http.StatusOK {
		t.Errorf("deletion of the application: %d", got)
	}
	expect(t, "what is applied stays", n.get(url), 200, `[["1","one; two",null],["2","three","nobody"]]`)
}

// host-api §7.5, sql §8.1: killed at any point of an application, the same Operation goes on where the ledger ends. 3.sql would fail if a
// file ran twice, and if one were skipped.
func TestCrashOfAMigration(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		name, point, last, want, shows string
	}{
		{"before anything ran", "control.dispatched", addAuthor, "succeeded complete", "1.sql,2.sql,3.sql of 3 true"},
		{"after the first file", "sqlstore.migrated", addAuthor, "succeeded complete", "1.sql,2.sql,3.sql of 3 true"},
		{"before the record", "control.done", addAuthor, "succeeded complete", "1.sql,2.sql,3.sql of 3 true"},
		{"after the first file, with a bad one", "sqlstore.migrated", "insert into nothing values (1)", "failed partial migration_sql_error 3.sql: ", "1.sql,2.sql of 3 false"},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			n := startAt(t, "", dir)
			db := n.made("SQLiteDatabase/0.2.0/", "app", object{})
			set := n.migrationSet("set", makeNotes, moreNotes, row.last)
			m := asked{method: "POST", path: "/resources", key: "the-key-of-the-migration", body: migrationBody("m", db, set)}
			n.stop()
			n = startAt(t, row.point, dir)
			n.send(m) // answered or not
			n.wait()  // it has died by itself
			n = startAt(t, "", dir)
			a, ok := n.send(m)
			if !ok {
				t.Fatal("the node died again")
			}
			outcome, uid := n.ends(a)
			if !strings.HasPrefix(outcome, row.want) || n.applied(uid) != row.shows {
				t.Errorf("%s, shows %s", outcome, n.applied(uid))
			}
			worker := n.served("notes", notesWorker, object{"handlers": []string{"fetch"}, "sqliteBindings": []bound{{"DB", ref{db}}}})
			if got := n.get(n.address("notes", worker)).body; strings.Count(got, "one; two") != 1 || strings.Count(got, "three") != 1 {
				t.Errorf("the table has %s", got)
			}
		})
	}
}
