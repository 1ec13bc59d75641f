package e2e

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// node-surface §6, sql §8: migrations are applied before traffic moves, each once; a history that was changed stops the deploy
// and leaves database and traffic as they were.
func TestDeployMigrations(t *testing.T) {
	t.Parallel()
	n := start(t, t.TempDir())
	dir := write(t, map[string]string{
		"worker.toml": "name = 'm'\nmain = 'm.js'\nhandlers = ['fetch']\nendpoint = true\n[bindings]\nDB = { sqlite = 'app', migrations = 'migrations' }\n",
		"m.js":        "export default { async fetch(r, env) { return Response.json((await env.DB.query('select count(*) as n from t')).rows) } };",
	})
	change := func(name, text string) {
		t.Helper()
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	change("migrations/1.sql", "create table t(a);\ninsert into t values (1);")
	url := n.deploy(dir)
	rows := func(count string) string { return `[{"n":{"type":"integer","value":"` + count + `"}}]` }
	expect(t, "one row", n.get(url), 200, rows("1"))
	if out := n.edged("deploy", dir, "--json"); !strings.Contains(out, `"changed": false`) {
		t.Errorf("again:\n%s", out)
	}
	change("migrations/2.sql", "insert into t values (2);")
	if out := n.edged("deploy", dir); !strings.Contains(out, "created    SQLiteMigrationApplication") || !strings.Contains(out, "unchanged  WorkerVersion") {
		t.Errorf("with another file:\n%s", out)
	}
	expect(t, "two rows", n.get(url), 200, rows("2"))
	change("migrations/1.sql", "create table t(a, b);")
	change("m.js", "export default { fetch() { return new Response('moved') } };")
	n.refused("migration_history_conflict", "deploy", dir)
	expect(t, "as before", n.get(url), 200, rows("2"))
}

// Secrets over the command line: from the environment, from a file that wins, rotated; the traffic of the version before comes
// back with a rollback; the values show nowhere.
func TestDeploySecretsAndRollback(t *testing.T) {
	n := start(t, t.TempDir())
	dir := write(t, map[string]string{
		"worker.toml": "name = 's'\nmain = 's.js'\nhandlers = ['fetch']\nendpoint = true\n[secrets]\nrequired = ['API_KEY']\n",
		"s.js":        "export default { fetch(r, env) { return new Response(env.API_KEY) } };", "values.toml": "API_KEY = 'opensesame-2'\n",
	})
	t.Setenv("API_KEY", "opensesame-1")
	url := n.deploy(dir)
	expect(t, "from the environment", n.get(url), 200, "opensesame-1")
	n.deploy(dir, "--rotate-secrets", "--secrets-file", filepath.Join(dir, "values.toml"))
	expect(t, "rotated", n.get(url), 200, "opensesame-2")
	n.edged("rollback", "s")
	expect(t, "rolled back", n.get(url), 200, "opensesame-1")
	n.edged("rollback", "s")
	expect(t, "and back", n.get(url), 200, "opensesame-2")
	for _, args := range [][]string{{"resources", "list", "--json"}, {"audit", "--json"}, {"deploy", dir, "--json"}} {
		if out := n.edged(args...); strings.Contains(out, "opensesame") {
			t.Errorf("edged %v shows a secret:\n%s", args, out)
		}
	}
	n.edged("delete", "s", "--with-dependents", "--yes")
	if a := n.get(url); a.status != 404 {
		t.Errorf("after its end: %+v", a)
	}
}
