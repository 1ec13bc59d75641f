package e2e

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// drilled is a worker that uses everything that a backup has to bring back.
const drilled = `export default { async fetch(request, env) {
	const url = new URL(request.url), n = url.searchParams.get('n');
	switch (url.pathname) {
	case '/write':
		await env.CACHE.put('n' + n, n);
		await env.DB.execute('insert into t values(?1)', [{ type: 'integer', value: n }]);
		await env.FILES.put('n' + n, n);
		await env.TASKS.send(n);
		return new Response(n);
	case '/read': {
		const kv = await env.CACHE.get('n' + n), object = await env.FILES.get('n' + n);
		const { rows } = await env.DB.query('select n from t where n = ?1', [{ type: 'integer', value: n }]);
		return new Response([kv && new TextDecoder().decode(kv), object && await new Response(object.body).text(), rows.length].join());
	}
	}
	return new Response(env.API_KEY + ' ' + env.GREETING);
} }`

// The restore drill: everything is saved in one command while a worker writes, and restored onto an empty directory. What was
// acknowledged before the backup began is there, all Resources, addresses, tokens and secrets are the same, and the node that starts
// proves itself. A damaged file, a list that is missing, another key and a directory that is not empty restore nothing.
func TestBackupAll(t *testing.T) {
	t.Parallel()
	n := start(t, t.TempDir(), "--max-cpu", "1s")
	secret := filepath.Join(t.TempDir(), "secrets.toml")
	dir := write(t, map[string]string{"drilled.js": drilled, "m/1.sql": "create table t(n integer primary key);",
		"worker.toml": "name = \"drilled\"\nmain = \"drilled.js\"\nhandlers = [\"fetch\"]\nendpoint = true\n[vars]\nGREETING = \"hi\"\n[secrets]\nrequired = [\"API_KEY\"]\n" +
			"[bindings]\nCACHE = { kv = \"cache\" }\nDB = { sqlite = \"app\", migrations = \"m/\" }\nFILES = { bucket = \"files\" }\nTASKS = { queue = \"tasks\" }\n"})
	if err := os.WriteFile(secret, []byte("API_KEY = \"opensesame\"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	url := n.deploy(dir, "--secrets-file", secret)
	wrote := 0
	writeOne := func() {
		t.Helper()
		wrote++
		expect(t, "write", n.get(fmt.Sprintf("%s/write?n=%d", url, wrote)), 200, strconv.Itoa(wrote))
	}
	for range 20 {
		writeOne()
	}
	acknowledged := wrote
	backups := filepath.Join(t.TempDir(), "backups")
	var saved struct {
		Dir   string
		Files []struct{ Room string }
	}
	var out string
	done := make(chan int)
	go func() { // ends with the command
		var code int
		out, code = runEdged(t, "backup", "all", backups, "--json", "--data-dir", n.dir)
		done <- code
	}()
	code, during := -1, 0
	for code < 0 {
		select {
		case code = <-done:
		default:
			writeOne()
			during++
		}
	}
	if err := json.Unmarshal([]byte(out), &saved); err != nil || code != 0 || len(saved.Files) != 5 || saved.Files[0].Room != "control" || during == 0 {
		t.Fatalf("exit %d, %v, %d writes meanwhile\n%s", code, err, during, out)
	}
	before, token := n.api("GET", root+"/resources", nil), n.token()
	n.stop()

	key := filepath.Join(n.dir, "node.key")
	restore := func(want int, say, from, to, key string) {
		t.Helper()
		if out, code := runEdged(t, "restore", "all", from, "--data-dir", to, "--node-key", key); code != want || !strings.Contains(out, say) {
			t.Errorf("exit %d, %s, want %d and %q", code, out, want, say)
		}
	}
	other := filepath.Join(t.TempDir(), "node.key")
	m := start(t, filepath.Join(t.TempDir(), "other"))
	text, err := os.ReadFile(filepath.Join(m.dir, "node.key"))
	if err == nil {
		err = os.WriteFile(other, text, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	m.stop()
	fresh := filepath.Join(t.TempDir(), "data")
	restore(1, "has kv already", saved.Dir, m.dir, key)
	restore(1, "key", saved.Dir, fresh, other)
	restore(1, "no whole backup", t.TempDir(), fresh, key)
	damaged := t.TempDir()
	if err := os.CopyFS(damaged, os.DirFS(saved.Dir)); err != nil {
		t.Fatal(err)
	}
	objects, err := os.ReadFile(filepath.Join(damaged, "objects.tar"))
	if err == nil {
		objects[len(objects)/2] ^= 1
		err = os.WriteFile(filepath.Join(damaged, "objects.tar"), objects, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	restore(1, "is not what was saved", damaged, fresh, key)
	for _, name := range []string{"control", "kv", "artifacts", "tls"} {
		if _, err := os.Stat(filepath.Join(fresh, name)); err == nil {
			t.Errorf("a refused restore made %s", name)
		}
	}
	restore(0, "all of the backup", saved.Dir, fresh, key)

	n = start(t, fresh, "--max-cpu", "1s")
	if a := n.api("GET", root+"/resources", nil, "Authorization", "Bearer "+token); a.body != before.body {
		t.Errorf("restored\n%s\nwas\n%s", a.body, before.body)
	}
	expect(t, "secret", n.get(url+"/"), 200, "opensesame hi")
	for i := 1; i <= acknowledged; i++ {
		expect(t, "read", n.get(fmt.Sprintf("%s/read?n=%d", url, i)), 200, fmt.Sprintf("%d,%d,1", i, i))
	}
	var messages []string
	for line := range strings.Lines(n.edged("queue", "peek", "tasks", "--bodies", "--limit", "100")) {
		messages = append(messages, strings.Fields(line)...)
	}
	for i := 1; i <= acknowledged; i++ {
		if !slices.ContainsFunc(messages, func(m string) bool { return strings.Trim(m, `"`) == strconv.Itoa(i) }) {
			t.Errorf("message %d is lost: %v", i, messages)
		}
	}
	if r := n.selftest(); r.Failed != 0 || r.Skipped != 0 {
		t.Errorf("the restored node: %+v", r)
	}
}
