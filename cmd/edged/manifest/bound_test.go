package manifest

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const boundManifest = `
name = "all"
main = "i.js"
handlers = ["fetch", "scheduled", "queue"]
crons = ["*/5 * * * *", "05 03 * * *"]

[secrets]
required = ["B_KEY", "A_KEY"]

[bindings]
CACHE  = { kv = "cache" }
DB     = { sqlite = "app", migrations = "migrations/" }
FILES  = { bucket = "files" }
OLD    = { bucket = "old", form = "0.2.0" }
TASKS  = { queue = "tasks", retention_seconds = 345600 }
OTHER  = { service = "other-worker" }

[[consumers]]
queue = "tasks"
max_batch_size = 10
max_batch_timeout_seconds = 2
max_concurrency = 4
max_retries = 3
retry_delay_seconds = 5
dead_letter_queue = "tasks-dead"

[[consumers]]
queue = "tasks-dead"
max_batch_size = 100
max_batch_timeout_seconds = 0
max_concurrency = 1
max_retries = 0
retry_delay_seconds = 0
`

// node-surface §6: every key of secrets, bindings, consumers and crons arrives as written, with its line.
func TestLoadBound(t *testing.T) {
	dir := lay(t, map[string]string{"worker.toml": boundManifest, "i.js": "", "migrations/002.sql": "b", "migrations/001.sql": "a", "migrations/README": "x"})
	m, err := Load(dir)
	if err != nil {
		t.Fatal(err)
	}
	migrations := filepath.Join(dir, "migrations")
	want := []any{
		[]Secret{{"A_KEY", 8}, {"B_KEY", 8}},
		[]Cron{{"*/5 * * * *", "0,5,10,15,20,25,30,35,40,45,50,55 * * * *", 5}, {"05 03 * * *", "5 3 * * *", 5}},
		[]Consumer{{"tasks", 10, 2, 4, 3, 5, "tasks-dead", 18}, {"tasks-dead", 100, 0, 1, 0, 0, "", 27}},
		[]Binding{
			{Name: "CACHE", Line: 11, Kind: KV, Target: "cache"},
			{Name: "DB", Line: 12, Kind: SQLite, Target: "app", MigrationsDir: migrations, MigrationsLine: 12, Migrations: []Migration{
				{"001.sql", filepath.Join(migrations, "001.sql"), 1}, {"002.sql", filepath.Join(migrations, "002.sql"), 1}}},
			{Name: "FILES", Line: 13, Kind: Bucket, Target: "files", BucketForm: "0.3.0"},
			{Name: "OLD", Line: 14, Kind: Bucket, Target: "old", BucketForm: "0.2.0"},
			{Name: "OTHER", Line: 16, Kind: Service, Target: "other-worker"},
			{Name: "TASKS", Line: 15, Kind: Queue, Target: "tasks", RetentionSeconds: 345600},
		},
	}
	for i, got := range []any{m.Secrets, m.Crons, m.Consumers, m.Bindings} {
		if fmt.Sprintf("%+v", got) != fmt.Sprintf("%+v", want[i]) {
			t.Errorf("got  %+v\nwant %+v", got, want[i])
		}
	}
	if f := m.Fault(3, "the %s", "word"); f.Error() != m.File+":3: the word" {
		t.Errorf("fault %s", f.Error())
	}
}

// node-surface §6, D-51: every refusal of a secret, binding, schedule or consumer names its line, and worker-version §2,
// attachments §§4 and 5 and queue §1 decide.
func TestBoundFaults(t *testing.T) {
	const all = "name = 'x'\nmain = 'i.js'\nhandlers = ['fetch','scheduled','queue']\n" // three lines
	sixtyFive := func(line string) string {
		var b strings.Builder
		for i := range 65 {
			fmt.Fprintf(&b, line+"\n", i, i)
		}
		return b.String()
	}
	for _, c := range []struct {
		name, doc string
		want      []string
	}{
		{"types", all + "crons = 'x'\nsecrets = 1\nbindings = []\nconsumers = {}\n",
			[]string{"4: crons must be an array", "5: secrets must be a table", "6: bindings must be a table", "7: consumers must be an array"}},
		{"secrets", all + "[secrets]\nrequired = [\n'ok',\n'A B',\n1,\n'GOOD']\nextra = 1\n",
			[]string{`10: unknown key "extra" in [secrets]`, `6: secret "ok" must match`, `7: secret "A B" must match`, "8: required must hold strings"}},
		{"secrets without names", all + "[secrets]\n", []string{"4: required is missing in [secrets]"}},
		{"a secret twice", all + "[secrets]\nrequired = ['A', 'A']\n", []string{`5: secret "A" collides with the secret of that name`}},
		{"65 secrets", all + "[secrets]\nrequired = [\n" + sixtyFive("'A%d', #%d") + "]\n", []string{"5: there are 65 secrets, allowed are 64"}},
		{"binding names", all + "[bindings]\na-b = { kv = 'c' }\n'1a' = { kv = 'd' }\n__proto__ = { kv = 'e' }\n",
			[]string{`5: binding "a-b" must match`, `6: binding "1a" must match`}},
		{"binding shapes", all + "[bindings]\nA = 'c'\nB = {}\nC = { kv = 'c', queue = 'q' }\nD = { kv = 1 }\nE = { kv = '-' }\nF = { kv = 'f', form = '0.3.0' }\n",
			[]string{`10: unknown key "form" in [bindings/F]`, `5: binding "A" must be a table`, `6: binding "B" names nothing`, `7: binding "C" has both kv and queue`,
				"8: kv must be a string", `9: "-" is no name`}},
		{"65 kv", all + "[bindings]\n" + sixtyFive("K%d = { kv = 'k%d' }"), []string{"4: there are 65 kv bindings, allowed are 64"}},
		{"bucket form", all + "[bindings]\nA = { bucket = 'a', form = '0.1.0' }\n", []string{`5: form "0.1.0" of a bucket must be one of`}},
		{"retention", all + "[bindings]\nA = { queue = 'a', retention_seconds = 59 }\nB = { queue = 'b', retention_seconds = 1209601 }\nC = { queue = 'c', retention_seconds = '60' }\n",
			[]string{"5: retention_seconds must be", "6: retention_seconds must be", "7: retention_seconds must be a whole number"}},
		{"targets", all + "[bindings]\nA = { kv = 'a' }\nB = { queue = 'a' }\nC = { kv = 'x' }\nD = { queue = 'q' }\nE = { queue = 'q', retention_seconds = 60 }\nF = { service = 'y' }\nG = { kv = 'a' }\n",
			[]string{"6: a is a kv in line 5", "7: x is the worker's own name", "9: q has another retention_seconds in line 8"}},
		{"migrations", all + "[bindings]\nA = { sqlite = 'a', migrations = 'gone' }\nB = { sqlite = 'b', migrations = 'empty' }\nC = { sqlite = 'c', migrations = 'bad' }\nD = { sqlite = 'd', migrations = '' }\n",
			[]string{"5: directory gone cannot be read", "6: directory empty has no .sql files", "7: directory bad has no .sql files", "8: migrations must name"}},
		{"crons", all + "crons = [\n'0 24 * * *',\n'*/60 * * * *',\n'@daily',\n'*/15 * * * *',\n'45,0,15,30 * * * *',\n'']\n",
			[]string{"10: cron \"\":", "5: cron \"0 24 * * *\": ", "6: cron \"*/60 * * * *\": ", "7: cron \"@daily\": ", "9: cron \"45,0,15,30 * * * *\" fires when \"*/15 * * * *\" of line 8 does"}},
		{"consumers", all + "[[consumers]]\nqueue = 'a'\n" + limits + "[[consumers]]\nqueue = 'b'\nmax_batch_size = 0\nmax_batch_timeout_seconds = 61\nmax_concurrency = 251\nmax_retries = 101\nretry_delay_seconds = 43201\ncolour = 1\n",
			[]string{"13: max_batch_size must be", "14: max_batch_timeout_seconds must be", "15: max_concurrency must be", "16: max_retries must be", "17: retry_delay_seconds must be", `18: unknown key "colour"`}},
		{"consumer without numbers", all + "[[consumers]]\nmax_retries = 1.5\n",
			[]string{"4: max_batch_size is missing", "4: max_batch_timeout_seconds is missing", "4: max_concurrency is missing", "4: queue is missing", "4: retry_delay_seconds is missing", "5: max_retries must be a whole number"}},
		{"a table in a consumer", all + "[[consumers]]\nqueue = 'a'\n" + limits + "[[consumers]]\nqueue = 'b'\n" + limits + "[consumers.sub]\nx = 1\n",
			[]string{`18: unknown key "sub"`}},
		{"a queue twice", all + "[[consumers]]\nqueue = 'a'\n" + limits + "[[consumers]]\nqueue = 'a'\n" + limits, []string{"11: queue a has a consumer in line 4"}},
		{"consumer of a kv", all + "[bindings]\nA = { kv = 'a' }\n[[consumers]]\nqueue = 'a'\n" + limits, []string{"7: a is a kv in [bindings]"}},
		{"dead letters go round", all + "[[consumers]]\nqueue = 'a'\ndead_letter_queue = 'b'\n" + limits + "[[consumers]]\nqueue = 'b'\ndead_letter_queue = 'a'\n" + limits,
			[]string{"14: dead letters go round: b to a to b", "6: dead letters go round: a to b to a"}},
		{"dead letters to itself", all + "[[consumers]]\nqueue = 'a'\ndead_letter_queue = 'a'\n" + limits, []string{"6: dead letters go round: a to a"}},
		{"dead letters to one, from two", all + "[[consumers]]\nqueue = 'a'\ndead_letter_queue = 'c'\n" + limits + "[[consumers]]\nqueue = 'b'\ndead_letter_queue = 'c'\n" + limits, nil},
		{"static site", "name='x'\n[assets]\ndirectory='site'\n[secrets]\nrequired=['A']\n[bindings]\nB={kv='b'}\n", []string{"4: secrets need main", "6: bindings need main"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := faults(t, c.doc)
			ok := len(got) == len(c.want)
			for i := 0; ok && i < len(got); i++ {
				ok = strings.HasPrefix(got[i], c.want[i])
			}
			if !ok {
				t.Errorf("got  %s\nwant %s", strings.Join(got, "\n     "), strings.Join(c.want, "\n     "))
			}
		})
	}
}

// sql §7: migrations are UTF-8 without a byte order mark.
func TestMigrationText(t *testing.T) {
	dir := lay(t, map[string]string{"worker.toml": head + "[bindings]\nDB = { sqlite = 'a', migrations = 'm' }\n", "i.js": "", "m/1.sql": "\xff", "m/2.sql": "\ufeffselect 1"})
	if _, err := Load(dir); err == nil || !strings.Contains(err.Error(), "1.sql is not UTF-8") || !strings.Contains(err.Error(), "2.sql begins with a byte order mark") {
		t.Errorf("%v", err)
	}
}

// Values of secrets: strings by name; what is wrong names the line and shows no value.
func TestReadValues(t *testing.T) {
	file := filepath.Join(t.TempDir(), "values.toml")
	put := func(text string) {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	put("A = 'one'\nKEY = '''\nline\nline'''\n")
	if v, err := ReadValues(file); err != nil || v["A"] != "one" || v["KEY"] != "line\nline" {
		t.Errorf("%q, %v", v, err)
	}
	for _, c := range []struct{ text, want string }{
		{"A = 's3cret\n", ":1: is no TOML"}, {"A = 'x'\nB = 12345\n", ":2: B must be a string"}, {"A = ''\n", ":1: A is empty"}, {"[A]\nb = 's3cret'\n", ":1: A must be a string"},
	} {
		put(c.text)
		if _, err := ReadValues(file); err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "s3cret") || strings.Contains(err.Error(), "12345") {
			t.Errorf("%q: %v, want %q", c.text, err, c.want)
		}
	}
	if _, err := ReadValues(filepath.Join(t.TempDir(), "gone")); err == nil {
		t.Error("absent: no error")
	}
}
