package manifest

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"edged/control/jsonraw"
	"edged/internal/testkit"
)

func TestMain(m *testing.M) { testkit.Main(m) }

// lay writes files below a new directory and returns it.
func lay(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, content := range files {
		path := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// node-surface §6: every key of this slice arrives as written, in canonical form.
func TestLoad(t *testing.T) {
	const doc = `
name = "hello"
main = "src/index.ts"
handlers = ["queue", "fetch"]
endpoint = true
domains = ["WWW.Example.test."]

[vars]
GREETING = "hi"
list = [1, 2.5, true, { "a.b" = "<x>" }]

[assets]
directory = "public"
run_worker_first = true
not_found = "single_page_application"
`
	dir := lay(t, map[string]string{
		"worker.toml": doc, "src/index.ts": "", "public/index.html": "<p>", "public/a/b.JS": "1", "public/.env": "SECRET",
		"public/.git/HEAD": "x", "public/.well-known/security.txt": "s", "public/data": "",
	})
	m, err := Load(dir)
	if err != nil {
		t.Fatal(err)
	}
	var files []string
	for _, f := range m.Assets.Files {
		files = append(files, fmt.Sprintf("%s %s %d", f.Path, f.MediaType, f.Size))
	}
	got := []any{m.Name, m.Main == filepath.Join(dir, "src/index.ts"), m.Handlers, m.Endpoint, m.Domains, string(m.Vars), m.Assets.RunWorkerFirst, m.Assets.NotFound, files}
	want := []any{"hello", true, []string{"fetch", "queue"}, true, []string{"www.example.test"},
		`{"GREETING":"hi","list":[1,2.5,true,{"a.b":"\u003cx\u003e"}]}`, true, "single_page_application",
		[]string{".well-known/security.txt text/plain 1", "a/b.JS text/javascript 1", "data application/octet-stream 0", "index.html text/html 3"}}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("got  %v\nwant %v", got, want)
	}
	again, err := Load(filepath.Join(dir, "worker.toml"))
	if err != nil || fmt.Sprint(again.Assets, again.Vars) != fmt.Sprint(m.Assets, m.Vars) {
		t.Errorf("the file instead of its directory: %+v, %v", again, err)
	}
}

// node-surface §6: a static site has no main.
func TestLoadStaticSite(t *testing.T) {
	dir := lay(t, map[string]string{"worker.toml": "name = 's'\nendpoint = true\n[assets]\ndirectory = 'd'\n", "d/index.html": ""})
	m, err := Load(dir)
	if err != nil || m.Main != "" || m.Handlers != nil || m.Vars != nil || m.Assets.NotFound != "none" {
		t.Errorf("got %+v, %v", m, err)
	}
}

// faults loads a manifest that stands beside some files and returns what is wrong with it, as line: text.
func faults(t *testing.T, doc string) []string {
	t.Helper()
	dir := lay(t, map[string]string{
		"worker.toml": doc, "i.js": "", "site/a.txt": "", "empty/.keep": "", "bad/a?b": "", "bad/c\\d": "", "bad/\xff": "", "bad/ok": "",
	})
	if err := os.Symlink("a.txt", filepath.Join(dir, "bad/link")); err != nil {
		t.Fatal(err)
	}
	_, err := Load(dir)
	if err == nil {
		return nil
	}
	var fs Faults
	if !errors.As(err, &fs) {
		return []string{err.Error()}
	}
	var out []string
	for _, f := range fs {
		out = append(out, strings.ReplaceAll(fmt.Sprintf("%d: %s", f.Line, f.Text), dir+"/", ""))
	}
	slices.Sort(out)
	return out
}

// limits are the numbers that a consumer needs.
const limits = "max_batch_size = 10\nmax_batch_timeout_seconds = 2\nmax_concurrency = 4\nmax_retries = 3\nretry_delay_seconds = 5\n"

const head = "name = 'x'\nmain = 'i.js'\nhandlers = ['fetch']\n" // three lines

// node-surface §6: every refusal names the line, and worker-version §2, attachments §3 and worker-bundle §2 decide.
func TestFaults(t *testing.T) {
	long := strings.Repeat("é", 8192)
	for _, c := range []struct {
		name, doc string
		want      []string
	}{
		{"sound", head, nil},
		{"scheduled and queue are legal", "name='x'\nmain='i.js'\nhandlers=['scheduled','queue']\n", nil},
		{"no handlers at all", "name='x'\nmain='i.js'\nhandlers=[]\n", nil},
		{"malformed", "name = \n", []string{"1: unexpected character U+000A"}},
		{"duplicate key", "name = 'x'\nname = 'y'\n", []string{"2: key name is already defined"}},
		{"unknown keys", head + "nmae = 'x'\n[assets]\ndirectory = 'site'\nspa = true\n",
			[]string{`4: unknown key "nmae"`, `7: unknown key "spa" in [assets]`}},
		{"triggers without handlers", head + "crons = ['* * * * *']\n[[consumers]]\nqueue = 'q'\n" + limits,
			[]string{"4: crons need the handler scheduled", "5: consumers need the handler queue"}},
		{"types", "name = 1\nmain = []\nhandlers = 'fetch'\nendpoint = 'yes'\ndomains = [1]\nvars = 1\nassets = 2\n",
			[]string{"1: name must be a string", "2: main must be a string", "3: handlers must be an array", "4: endpoint must be true or false",
				"5: domains must hold strings", "6: vars must be a table", "7: assets must be a table"}},
		{"empty", "", []string{"1: a worker needs main", "1: name is missing"}},
		{"name: upper case", "name = 'X'\nmain='i.js'\nhandlers=['fetch']\n", []string{`1: name "X" must be`}},
		{"name: 64", "name = '" + strings.Repeat("a", 64) + "'\nmain='i.js'\nhandlers=['fetch']\n", []string{"1: name "}},
		{"name: newline at the end", "name = \"x\\n\"\nmain='i.js'\nhandlers=['fetch']\n", []string{"1: name "}},
		{"handlers", "name='x'\nmain='i.js'\nhandlers = [\n 'fetch',\n 'tail',\n 'fetch']\n", []string{`5: unknown handler "tail"`, `6: handler "fetch" stands twice`}},
		{"main without handlers", "name='x'\nmain='i.js'\n", []string{"2: main needs handlers"}},
		{"handlers without main", "name='x'\nhandlers=['fetch']\n[assets]\ndirectory='site'\n", []string{"2: handlers need main"}},
		{"main is absent", "name='x'\nmain='gone.js'\nhandlers=[]\n", []string{"2: main gone.js cannot be read: no such file"}},
		{"main is a directory", "name='x'\nmain='site'\nhandlers=[]\n", []string{"2: main site is not a file"}},
		{"domains", head + "domains = [\n'a.test',\n'A.test.',\n'localhost',\n'1.2.3.4',\n'*.a.test',\n'ä.test',\n'a..test']\n",
			[]string{"10: domain \"ä.test\" is not ASCII", "11: domain \"a..test\" has an empty label", "6: domain a.test stands twice",
				"7: domain \"localhost\" has a single label", "8: domain \"1.2.3.4\" is an IP", "9: domain \"*.a.test\" is a wildcard"}},
		{"nothing answers HTTP", "name='x'\nmain='i.js'\nhandlers=['scheduled']\nendpoint=true\ndomains=['a.test']\n",
			[]string{"4: an endpoint needs", "5: domains need"}},
		{"var names", head + "[vars]\n1a = 1\n'a b' = 1\n" + strings.Repeat("k", 65) + " = 1\n_x = 1\n",
			[]string{"5: /vars/1a: a var name must match", "6: /vars/a b: a var name", "7: /vars/kkk", "8: /vars/_x"}},
		{"65 vars", head + "[vars]\n" + many(65), []string{"4: /vars has 65 keys"}},
		{"64 vars", head + "[vars]\n" + many(64), nil},
		{"8 levels", head + "[vars]\na = [[[[[[[[1]]]]]]]]\n", nil},
		{"9 levels", head + "[vars]\na = [[[[[[[[[1]]]]]]]]]\n", []string{"5: /vars/a/0/0/0/0/0/0/0/0 is nested deeper than 8"}},
		{"deep", head + "[vars]\na = " + strings.Repeat("[", 1000) + strings.Repeat("]", 1000) + "\n", []string{`5: var "a" is nested too deep`}},
		{"string of 8192", head + "[vars]\na = '" + long + "'\n", nil},
		{"string of 8193", head + "[vars]\na = '" + long + "x'\n", []string{"5: /vars/a is longer than 8192"}},
		{"65 elements", head + "[vars]\na = [" + strings.Repeat("1,", 65) + "]\n", []string{"5: /vars/a has 65 elements"}},
		{"nested key, own line", head + "[vars]\na = [\n1,\n{ '9' = 1 }]\n", []string{"7: /vars/a/1/9: a key must match"}},
		{"no JSON", head + "[vars]\na = inf\nb = [1, nan]\nc = 2020-01-01\nd = { x = 10:00:00 }\n",
			[]string{`5: var "a" is not a finite`, `6: var "b" is not a finite`, `7: var "c" holds a date`, `8: var "d" holds a date`}},
		{"collisions", head + "[vars]\nA = 1\nB = 2\n[secrets]\nrequired = [\n'A',\n'C']\n[bindings]\nB = { kv = 'b' }\nC = { kv = 'c' }\n",
			[]string{`10: secret "C" collides with the binding of that name in line 13`, `12: binding "B" collides with the var of that name in line 6`,
				`9: secret "A" collides with the var of that name in line 5`}},
		{"static with vars", "name='x'\n[vars]\nA=1\n[assets]\ndirectory='site'\n", []string{"2: vars need main"}},
		{"worker first without fetch", "name='x'\n[assets]\ndirectory='site'\nrun_worker_first=true\n", []string{"4: run_worker_first needs"}},
		{"not_found", "name='x'\n[assets]\ndirectory='site'\nnot_found='404'\n", []string{"4: not_found must be"}},
		{"no directory", "name='x'\n[assets]\nnot_found='none'\n", []string{"2: directory is missing"}},
		{"empty directory name", "name='x'\n[assets]\ndirectory=''\n", []string{"3: directory is missing"}},
		{"directory absent", "name='x'\n[assets]\ndirectory='dist'\n", []string{"3: directory dist cannot be read: no such file or directory (is the site built?)"}},
		{"directory is a file", "name='x'\n[assets]\ndirectory='i.js'\n", []string{"3: i.js is not a directory"}},
		{"directory without files", "name='x'\n[assets]\ndirectory='empty'\n", []string{"3: directory empty has no files"}},
		{"spa without index", "name='x'\n[assets]\ndirectory='site'\nnot_found='single_page_application'\n", []string{"4: single_page_application needs index.html"}},
		{"paths", "name='x'\n[assets]\ndirectory='bad'\n",
			[]string{`3: asset "\xff": the path is not UTF-8`, `3: asset "a?b": the path holds ?`, `3: asset "c\\d": the path holds \`, "3: asset bad/link is no regular file"}},
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

func many(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "k%d = %d\n", i, i)
	}
	return b.String()
}

// worker-bundle §2: at most 512 files, 16 MiB each, 128 MiB together. Sparse files have no bytes on disk.
func TestAssetLimits(t *testing.T) {
	site := func(files int, size int64) string {
		dir := lay(t, map[string]string{"worker.toml": "name='x'\n[assets]\ndirectory='d'\n", "d/000": ""})
		for i := range files {
			f, err := os.Create(filepath.Join(dir, "d", fmt.Sprintf("%03d", i)))
			if err != nil {
				t.Fatal(err)
			}
			if err := f.Truncate(size); err != nil {
				t.Fatal(err)
			}
			if err := f.Close(); err != nil {
				t.Fatal(err)
			}
		}
		return dir
	}
	for _, c := range []struct {
		files int
		size  int64
		want  string
	}{
		{512, 0, ""}, {513, 0, "more than 512 files"},
		{8, 16 << 20, ""}, {1, 16<<20 + 1, "16777217 bytes, allowed are 16777216"}, {9, 15 << 20, "141557760 bytes, allowed are 134217728"},
	} {
		_, err := Load(site(c.files, c.size))
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%d files of %d bytes: %v, want %q", c.files, c.size, err, c.want)
		}
	}
}

// A manifest that cannot be read is told apart from one that is wrong.
func TestLoadUnreadable(t *testing.T) {
	dir := t.TempDir()
	if _, err := Load(filepath.Join(dir, "gone")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("absent: %v", err)
	}
	if err := os.WriteFile(filepath.Join(dir, FileName), make([]byte, maxManifestBytes+1), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Load(dir); err == nil || !strings.Contains(err.Error(), "is over") {
		t.Errorf("too large: %v", err)
	}
}

// No document panics the reader; every fault has a line of it; what passes has vars that the node takes.
func FuzzParse(f *testing.F) {
	f.Add(head + "[vars]\na = [1, { b = 'x' }]\n[assets]\ndirectory = 'd'\n")
	f.Add("name = 'x'\nvars.a.b = 1\n[[consumers]]\nqueue = 'q'\n[[consumers]]\nqueue = 'r'\n")
	f.Add("[vars]\na = inf\nb = 2020-01-01T00:00:00Z\n'' = {}\n\"~/\" = [[[]]]\n")
	f.Fuzz(func(t *testing.T, doc string) {
		r := parse("worker.toml", []byte(doc))
		for _, f := range r.faults {
			if f.Line < 0 || f.Line > strings.Count(doc, "\n")+1 || f.Text == "" {
				t.Errorf("fault %+v", f)
			}
		}
		if len(r.faults) > 0 || r.m.Vars == nil {
			return
		}
		if err := jsonraw.Check(r.m.Vars); err != nil {
			t.Errorf("vars %s: %v", r.m.Vars, err)
		}
		var vars map[string]any
		if err := json.Unmarshal(r.m.Vars, &vars); err != nil {
			t.Fatal(err)
		}
		if where, why := judge(vars); why != "" {
			t.Errorf("%s %s", where, why)
		}
	})
}
