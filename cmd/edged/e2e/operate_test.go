package e2e

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// prints runs a client command and compares what it prints.
func (n *node) prints(want string, args ...string) {
	n.t.Helper()
	if got := n.edged(args...); got != want {
		n.t.Errorf("edged %s prints\n%s\nwant\n%s", strings.Join(args, " "), got, want)
	}
}

// refused runs a client command that must fail with exit code 1 and say something.
func (n *node) refused(want string, args ...string) {
	n.t.Helper()
	if out, code := n.try(args...); code != 1 || !strings.Contains(out, want) {
		n.t.Errorf("edged %s: exit %d, %s, want %q", strings.Join(args, " "), code, out, want)
	}
}

// kv §3 through the operators' door: values byte for byte, metadata, listings; what is no namespace of the caller's is not
// there.
func TestOperateKV(t *testing.T) {
	t.Parallel()
	n := start(t, t.TempDir())
	cache := n.made("EdgeKVNamespace/0.2.0/", "cache", object{})
	n.made("AtLeastOnceQueue/0.2.0/", "tasks", object{"messageRetentionSeconds": 3600})
	big := strings.Repeat("0123456789abcdef", 1<<16) // 1 MiB: a file of its own
	file := filepath.Join(t.TempDir(), "big")
	if err := os.WriteFile(file, []byte(big), 0o600); err != nil {
		t.Fatal(err)
	}
	n.prints("put \"a/b\\n\"\n", "kv", "put", "cache", "a/b\n", "\x01hello", "--ttl", "1h", "--metadata", "kind=x")
	n.prints("put \"big\"\n", "kv", "put", "cache", "big", "--file", file)
	n.prints("\x01hello", "kv", "get", "cache", "a/b\n")
	n.prints(big, "kv", "get", cache, "big", "--uid")
	n.prints("{\n  \"key\": \"a/b\\n\",\n  \"size\": 6,\n  \"metadata\": {\n    \"kind\": \"x\"\n  },\n  \"value\": {\n    \"encoding\": \"base64\",\n    \"data\": \"AWhlbGxv\"\n  }\n}\n",
		"kv", "get", "cache", "a/b\n", "--json")
	n.prints("\"a/b\\n\"\nbig\n", "kv", "list", "cache")
	n.prints("big\n", "kv", "list", "cache", "--prefix", "b")
	n.prints("[\n  \"a/b\\n\"\n]\n", "kv", "list", "cache", "--limit", "1", "--json")
	n.prints("deleted \"big\"\n", "kv", "delete", "cache", "big")
	n.refused("the key has no value", "kv", "get", "cache", "big")
	if out := n.edged("kv", "lag"); !strings.HasPrefix(out, "the node runs alone: there is nothing to be behind\n\nNAMESPACE") || !strings.Contains(out, cache) {
		t.Errorf("lag\n%s", out)
	}
	at := strings.TrimSpace(n.edged("kv", "position"))
	n.prints("reached "+at+"\n", "kv", "wait", "--until", at)
	n.refused("the time for it is over", "kv", "wait", "--until", at+"0", "--timeout", "100ms")
	n.refused("until must be a position", "kv", "wait", "--until", "x")
	n.refused(`no EdgeKVNamespace "tasks"`, "kv", "list", "tasks")
	n.refused("is no Resource of the Form", "kv", "list", n.uidOf("AtLeastOnceQueue/0.2.0"), "--uid")
	n.refused("invalid_key", "kv", "put", "cache", "", "x")
	n.refused("whole seconds from 60", "kv", "put", "cache", "k", "x", "--ttl", "1s")
	n.kill()
	n = start(t, n.dir)
	n.prints("\x01hello", "kv", "get", "cache", "a/b\n")
	audit := n.edged("audit", "--target", cache)
	for _, want := range []string{"kv.put", "kv.delete"} {
		if !strings.Contains(audit, want) {
			t.Errorf("the audit lacks %s:\n%s", want, audit)
		}
	}
}

// node-surface §4: the door is for operators, and each sees what is its own tenant's and Space's alone; another's store
// looks as if it were not there.
func TestOperateTenants(t *testing.T) {
	t.Parallel()
	n := start(t, t.TempDir())
	cache := n.made("EdgeKVNamespace/0.2.0/", "cache", object{})
	n.edged("kv", "put", "cache", "k", "v")
	as := func(tenant, role, space string) []string {
		file := filepath.Join(t.TempDir(), "token")
		args := []string{"tokens", "create", "--json", "--tenant", tenant, "--principal", "p", "--role", role}
		if space != "" {
			args = append(args, "--space", space)
		}
		var made struct{ Token string }
		err := json.Unmarshal([]byte(n.edged(args...)), &made)
		if err == nil {
			err = os.WriteFile(file, []byte(made.Token), 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
		return []string{"--token-file", file}
	}
	for _, c := range []struct {
		who  []string
		want string
	}{
		{as("default", "editor", ""), "403"},
		{as("other", "operator", ""), "no such Resource"},
		{as("default", "operator", "elsewhere"), "no such Resource"},
	} {
		n.refused(c.want, append([]string{"kv", "get", cache, "k", "--uid"}, c.who...)...)
		n.refused("403", append([]string{"backup", "kv", filepath.Join(t.TempDir(), "f")}, c.who...)...)
	}
	n.prints("v", append([]string{"kv", "get", cache, "k", "--uid"}, as("default", "operator", "default")...)...)
}

// sql §§3–6 through the operators' door: reading unless --write, tagged values, the shell's own commands, text out and in.
func TestOperateSQL(t *testing.T) {
	t.Parallel()
	n := start(t, t.TempDir())
	n.made("SQLiteDatabase/0.2.0/", "app", object{})
	dump := filepath.Join(t.TempDir(), "app.sql")
	text := "CREATE TABLE notes(id INTEGER PRIMARY KEY, body TEXT, raw BLOB);\nINSERT INTO notes VALUES(1, 'one', x'00ff');\n"
	if err := os.WriteFile(dump, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	n.prints("imported app\n", "sql", "import", "app", dump, "--yes")
	n.prints("id  body  raw\n1   one   x'00ff'\n", "sql", "app", "-e", "select * from notes")
	n.prints("id         body        raw           r         n\ninteger 1  text \"one\"  blob x'00ff'  real 1.5  NULL\n",
		"sql", "app", "--tagged", "-e", "select *, 1.5 as r, null as n from notes")
	n.refused("sql_error", "sql", "app", "-e", "insert into notes values(2, 'two', null)")
	n.prints("1 rows written, last rowid 9007199254740993\n", "sql", "app", "--write", "-e", "insert into notes values(9007199254740993, 'two', null)")
	n.refused("sql_error", "sql", "app", "--write", "-e", "create table t(a)")
	n.prints("no rows\n", "sql", "app", "-e", "select 1 where 0")
	n.prints(`{"rows":[{"c":{"type":"integer","value":"2"}}],"rowsWritten":0}`+"\n", "sql", "app", "--json", "-e", "select count(*) as c from notes")
	n.prints("no slow calls\n", "sql", "slow")
	out := filepath.Join(t.TempDir(), "out.sql")
	n.edged("sql", "export", "app", out)
	n.refused("is there already", "sql", "export", "app", out)
	n.edged("sql", "app", "--write", "-e", "delete from notes")
	n.edged("sql", "import", "app", out, "--yes")
	n.prints("c\n2\n", "sql", "app", "-e", "select count(*) as c from notes")
	if out := n.edged("sql", "export", "app"); !strings.Contains(out, "9007199254740993") {
		t.Errorf("export\n%s", out)
	}
	got, code := runEdgedWith(t, ".tables\n.schema notes\nselect\n  count(*) as c\n  from notes;\n.quit\nselect 2;\n", "sql", "app", "--data-dir", n.dir)
	if want := "notes\nCREATE TABLE notes(id INTEGER PRIMARY KEY, body TEXT, raw BLOB);\nc\n2\n"; code != 0 || got != want {
		t.Errorf("script: exit %d\n%s\nwant\n%s", code, got, want)
	}
	if got, code := runEdgedWith(t, ".nothing\n", "sql", "app", "--data-dir", n.dir); code != 1 || !strings.Contains(got, ".help lists") {
		t.Errorf("an unknown command: exit %d, %s", code, got)
	}
}

// queue §§2–6 through the operators' door: what waits, dead letters back where they came from, purge.
func TestOperateQueue(t *testing.T) {
	t.Parallel()
	n := start(t, t.TempDir())
	queue := object{"messageRetentionSeconds": 3600}
	tasks, dead, other := n.made("AtLeastOnceQueue/0.2.0/", "tasks", queue), n.made("AtLeastOnceQueue/0.2.0/", "dead", queue), n.made("AtLeastOnceQueue/0.2.0/", "other", queue)
	worker := n.served("all", `export default {
		async fetch(request, env) { await env.TASKS.sendBatch([{body: 'one'}, {body: 'two'}]); return new Response('sent'); },
		async queue() { throw new Error('never'); } }`, object{"handlers": []string{"fetch", "queue"}, "queueProducerBindings": []bound{{"TASKS", ref{tasks}}}})
	consumer := n.made("QueueConsumer/0.3.0/", "all.consumer", object{"queue": ref{tasks}, "worker": ref{worker}, "maxBatchSize": 10, "maxBatchTimeoutSeconds": 0,
		"maxConcurrency": 1, "maxRetries": 0, "retryDelaySeconds": 0, "deadLetterQueue": ref{dead}})
	url := n.address("all", worker)
	expect(t, "send", n.get(url), 200, "sent")
	waiting := func(name, want string) {
		t.Helper()
		n.waits(func() bool {
			return strings.Contains(n.edged("queue", "stats", name, "--json"), `"waiting": `+want+",")
		}, name+" does not have "+want+" waiting")
	}
	waiting("dead", "2")
	if out := n.edged("queue", "stats"); !strings.Contains(out, "QUEUE  WAITING  IN HANDS") || strings.Count(out, "\n") != 4 {
		t.Errorf("stats\n%s", out)
	}
	peek := n.edged("queue", "peek", "dead", "--bodies")
	for _, want := range []string{"one", "two", tasks} {
		if !strings.Contains(peek, want) {
			t.Errorf("peek lacks %s:\n%s", want, peek)
		}
	}
	if out := n.edged("queue", "peek", "dead"); strings.Contains(out, "one") {
		t.Errorf("bodies unasked:\n%s", out)
	}
	if a := n.api("DELETE", "/apis/forms.takoform.com/v2/resources/"+consumer, nil, "Idempotency-Key", "the-end-of-the-consumer", "Takoform-Expected-Generation", "1"); a.status > 202 {
		t.Fatalf("%+v", a)
	}
	n.prints("moved 1, left 0 that have no queue to go to\n", "queue", "redrive", "dead", "--max", "1")
	waiting("tasks", "1")
	n.prints("moved 1, left 0 that have no queue to go to\n", "queue", "redrive", "dead", "--to", "other", "--origin", "tasks")
	waiting("other", "1")
	n.refused("no such Resource in this Space", "queue", "redrive", other, "--to", "r-aaaaaaaaaaaaaaaaaaaaaaaaaa", "--uid")
	if out, code := runEdgedWith(t, "no\n", "queue", "purge", "other", "--data-dir", n.dir); code != 1 || !strings.Contains(out, "for ever? [y/N]") {
		t.Errorf("purge: exit %d, %s", code, out)
	}
	n.prints("removed 1\n", "queue", "purge", "other", "--yes")
	waiting("other", "0")
}

// objects §3 through the operators' door: bodies byte for byte, listings with folders, parts, the checksums.
func TestOperateObjects(t *testing.T) {
	t.Parallel()
	n := start(t, t.TempDir())
	n.made("ObjectBucket/0.3.0/", "files", object{})
	n.made("ObjectBucket/0.2.0/", "old", object{})
	dir := t.TempDir()
	body := strings.Repeat("0123456789abcdef", 1<<17) // 2 MiB
	file := filepath.Join(dir, "big.bin")
	if err := os.WriteFile(file, []byte(body), 0o600); err != nil {
		t.Fatal(err)
	}
	n.prints("put a/big.bin\n", "objects", "put", "files", "a/", file, "--content-type", "application/x-big")
	if out, code := runEdgedWith(t, "tiny", "objects", "put", "old", "small", "-", "--data-dir", n.dir); code != 0 || out != "put small\n" {
		t.Errorf("put from standard input: %d %s", code, out)
	}
	n.prints("tiny", "objects", "get", "old", "small")
	n.prints("-  -  a/\n", "objects", "ls", "files")
	if out := n.edged("objects", "ls", "files", "-r"); !strings.HasPrefix(out, "2097152  ") || !strings.HasSuffix(out, "  a/big.bin\n") {
		t.Errorf("ls -r\n%s", out)
	}
	copied := filepath.Join(dir, "copy")
	n.edged("objects", "get", "files", "a/big.bin", copied)
	if got, err := os.ReadFile(copied); err != nil || string(got) != body {
		t.Errorf("%d bytes, %v", len(got), err)
	}
	if out := n.edged("objects", "stat", "files", "a/big.bin"); !strings.Contains(out, "2097152 bytes, application/x-big, etag ") {
		t.Errorf("stat\n%s", out)
	}
	if out := n.edged("objects", "stat", "files"); !strings.HasPrefix(out, "1 objects, 0 open uploads, ") {
		t.Errorf("stat\n%s", out)
	}
	n.prints("read 2 objects, 2097156 bytes: 0 damaged\n", "objects", "scrub")
	large := filepath.Join(dir, "large") // sparse: it has no bytes on disk
	if f, err := os.Create(large); err != nil || f.Truncate(301<<20) != nil || f.Close() != nil {
		t.Fatal(err)
	}
	n.prints("put large\n", "objects", "put", "files", "large", large)
	if out := n.edged("objects", "stat", "files", "large"); !strings.Contains(out, "315621376 bytes") {
		t.Errorf("stat\n%s", out)
	}
	n.prints("deleted large\n", "objects", "rm", "files", "large")
	n.refused("the key has no object", "objects", "get", "files", "large")
	n.refused("no ObjectBucket", "objects", "ls", "gone")
}

// Backups of what workers keep, restored beside the control room's onto an empty node: the same values, rows and messages
// under the same names; a backup of another room, half a backup, and a room that is there are refused.
func TestBackupStores(t *testing.T) {
	t.Parallel()
	n := start(t, t.TempDir())
	n.made("EdgeKVNamespace/0.2.0/", "cache", object{})
	n.made("SQLiteDatabase/0.2.0/", "app", object{})
	tasks := n.made("AtLeastOnceQueue/0.2.0/", "tasks", object{"messageRetentionSeconds": 3600})
	worker := n.served("send", `export default { async fetch(request, env) { await env.TASKS.send('kept'); return new Response('sent'); } }`,
		object{"handlers": []string{"fetch"}, "queueProducerBindings": []bound{{"TASKS", ref{tasks}}}})
	expect(t, "send", n.get(n.address("send", worker)), 200, "sent")
	big := filepath.Join(t.TempDir(), "big")
	content := strings.Repeat("kept", 1<<17)
	sql := filepath.Join(t.TempDir(), "app.sql")
	for path, text := range map[string]string{big: content, sql: "CREATE TABLE t(a); INSERT INTO t VALUES('kept');"} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	n.edged("kv", "put", "cache", "small", "kept")
	n.edged("kv", "put", "cache", "big", "--file", big)
	n.edged("sql", "import", "app", sql, "--yes")
	n.made("ObjectBucket/0.3.0/", "files", object{})
	n.edged("objects", "put", "files", "big", big)
	dir := t.TempDir()
	for _, room := range []string{"control", "kv", "sql", "queue", "objects"} {
		n.edged("backup", room, filepath.Join(dir, room))
	}
	n.edged("kv", "put", "cache", "small", "later")
	if left, err := filepath.Glob(filepath.Join(n.dir, "outgoing", "*")); err != nil || len(left) > 0 {
		t.Errorf("left behind: %v %v", left, err)
	}
	n.stop()
	fresh := filepath.Join(t.TempDir(), "data")
	restore := func(want int, say, room, file string, flags ...string) {
		t.Helper()
		if out, code := runEdged(t, append([]string{"restore", room, file, "--data-dir", fresh}, flags...)...); code != want || !strings.Contains(out, say) {
			t.Errorf("restore %s: exit %d, %s", room, code, out)
		}
	}
	restore(0, "restored", "control", filepath.Join(dir, "control"), "--node-key", filepath.Join(n.dir, "node.key"))
	restore(1, "no backup of kv", "kv", filepath.Join(dir, "queue"))
	whole, err := os.ReadFile(filepath.Join(dir, "kv"))
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, "half"), whole[:len(whole)/2], 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	restore(1, "not whole", "kv", filepath.Join(dir, "half"))
	for _, room := range []string{"kv", "sql", "queue", "objects"} {
		restore(0, "restored", room, filepath.Join(dir, room))
		restore(1, "is there", room, filepath.Join(dir, room))
	}
	m := start(t, fresh)
	m.prints("kept", "kv", "get", "cache", "small")
	m.prints(content, "kv", "get", "cache", "big")
	m.prints(content, "objects", "get", "files", "big")
	m.prints("a\nkept\n", "sql", "app", "-e", "select a from t")
	if out := m.edged("queue", "peek", "tasks", "--bodies"); !strings.Contains(out, "kept") {
		t.Errorf("the queue has\n%s", out)
	}
}
