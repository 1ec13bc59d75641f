package main

import (
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"edged/sandbox"
)

//go:embed wpt.js
var wptMain []byte

// wptKinds are the reasons of the list. A file is left out only for one of the first five.
var wptKinds = kinds{
	skip: []string{"document", "window", "worker", "server", "overtaken"},
	fail: []string{"document", "window", "worker", "server", "overtaken", "absent", "choice", "engine", "runner"},
}

// wpt is a local copy of the web platform tests. Its cases are the .any.js files, once for each of their variants.
type wpt struct {
	dir     string
	box     *sandbox.Sandbox
	harness []byte
	worker  *sandbox.Version
	rules   *list
	usual   time.Duration
	long    time.Duration
}

func openWPT(cfg *config, rules *list) (*wpt, error) {
	harness, err := os.ReadFile(filepath.Join(cfg.dir, "resources", "testharness.js"))
	if err != nil {
		return nil, fmt.Errorf("%s is no copy of the web platform tests (make wpt WPT_DIR=…): %w", cfg.dir, err)
	}
	w := &wpt{dir: cfg.dir, harness: harness, rules: rules, usual: cfg.usual, long: cfg.long}
	w.box, err = sandbox.New(sandbox.Options{
		CacheDir: cfg.cache, MaxCPU: cfg.long + time.Minute, MaxWall: cfg.long + 2*time.Minute, MaxMemoryBytes: 512 << 20,
		MaxRunning: cfg.parallel, MaxSubrequests: 10_000, Fetch: wptHost{dir: cfg.dir},
	})
	if err != nil {
		return nil, err
	}
	w.worker, err = w.box.Open(context.Background(), sandbox.Spec{
		UID: "wpt", Worker: "wpt", Handlers: []string{"fetch"},
		Graph: sandbox.Graph{Entrypoint: mainPath, Modules: []sandbox.Module{
			{Path: mainPath, MediaType: script, Bytes: wptMain},
			{Path: "testharness.txt", MediaType: plain, Bytes: harness},
		}},
	})
	if err != nil {
		return nil, errors.Join(err, w.box.Close())
	}
	return w, nil
}

func (w *wpt) close() error { return w.box.Close() }

func (w *wpt) cases() ([]testCase, error) {
	var all []testCase
	err := filepath.WalkDir(w.dir, func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(name, ".any.js") {
			return err
		}
		rel, err := filepath.Rel(w.dir, name)
		if err != nil {
			return err
		}
		src, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		file := filepath.ToSlash(rel)
		m := parseMeta(src)
		variants := m.variants
		if len(variants) == 0 {
			variants = []string{""}
		}
		for _, v := range variants {
			c := testCase{name: file + v, file: file, mode: v}
			if c.skip = w.rules.skip(c.name, nil); c.skip == "" {
				c.skip = m.elsewhere()
			}
			all = append(all, c)
		}
		return nil
	})
	slices.SortFunc(all, func(a, b testCase) int { return strings.Compare(a.name, b.name) })
	return all, err
}

// meta is what the META lines of a file say.
type meta struct {
	scripts, variants, globals []string
	long                       bool
}

var metaLine = regexp.MustCompile(`(?m)^//\s*META:\s*(\w+)=(.*?)\s*$`)

func parseMeta(src []byte) (m meta) {
	for _, f := range metaLine.FindAllSubmatch(src, -1) {
		value := string(f[2])
		switch string(f[1]) {
		case "script":
			m.scripts = append(m.scripts, value)
		case "variant":
			m.variants = append(m.variants, value)
		case "global":
			m.globals = strings.Split(value, ",")
		case "timeout":
			m.long = value == "long"
		}
	}
	return m
}

// elsewhere says why a file cannot be meant for a worker of ours, from the globals it names.
func (m *meta) elsewhere() string {
	if len(m.globals) == 0 {
		return ""
	}
	windows := 0
	for _, g := range m.globals {
		g = strings.TrimSpace(g)
		switch {
		case g == "worker" || g == "jsshell" || strings.HasPrefix(g, "dedicatedworker"):
			return ""
		case strings.HasPrefix(g, "window"):
			windows++
		}
	}
	if windows == len(m.globals) {
		return "window: the file says that it runs in windows only"
	}
	return "worker: the file says that it runs in other kinds of global objects only"
}

// wptInput is what the worker is sent.
type wptInput struct {
	URL     string   `json:"url"`
	Millis  int64    `json:"millis"`
	Scripts []string `json:"scripts"` // in order; the last is the file
}

// wptOutput is what it answers.
type wptOutput struct {
	Status  int    `json:"status"` // of the harness
	Message string `json:"message"`
	Tests   []struct {
		Name    string `json:"name"`
		Status  int    `json:"status"`
		Message string `json:"message"`
	} `json:"tests"`
}

var (
	wptStatus     = [...]string{pass, fail, timeout, "not run", "precondition"} // of a subtest
	harnessStatus = [...]string{pass, broken, timeout, "precondition"}
)

// harnessPart is the part that stands for the end of a file, if that was not as it should be.
const harnessPart = "(harness)"

func nameOf(names []string, n int) string {
	if n < 0 || n >= len(names) {
		return broken
	}
	return names[n]
}

func (w *wpt) run(ctx context.Context, c testCase) result {
	r := result{Name: c.name, Status: pass}
	out, err := w.answer(ctx, c)
	if err != nil {
		r.Status, r.Message = broken, err.Error()
		r.Parts = []part{{Name: harnessPart, Status: broken, Message: err.Error()}}
		w.rules.explain(&r, nil)
		return r
	}
	for _, t := range out.Tests {
		r.Parts = append(r.Parts, part{Name: t.Name, Status: nameOf(wptStatus[:], t.Status), Message: t.Message})
	}
	if out.Status != 0 || len(out.Tests) == 0 {
		r.Status, r.Message = nameOf(harnessStatus[:], out.Status), out.Message
		if r.Status == pass {
			r.Status, r.Message = broken, "no test in it"
		}
		r.Parts = append(r.Parts, part{Name: harnessPart, Status: r.Status, Message: r.Message})
	}
	w.rules.explain(&r, nil)
	return r
}

func (w *wpt) answer(ctx context.Context, c testCase) (*wptOutput, error) {
	in, err := w.input(c)
	if err != nil {
		return nil, err
	}
	body, err := json.Marshal(in)
	if err != nil {
		return nil, err
	}
	answer, err := invoke(ctx, w.worker, body)
	if err != nil {
		return nil, err
	}
	var out wptOutput
	if err := json.Unmarshal(answer, &out); err != nil {
		return nil, fmt.Errorf("the worker's answer: %w", err)
	}
	return &out, nil
}

// The suite's server has one file under another name.
const (
	webIDLAlias = "/resources/WebIDLParser.js"
	webIDLFile  = "/resources/webidl2/lib/webidl2.js"
)

// input collects the scripts that a file names and the file. Each is evaluated by itself, as strict or sloppy as it is.
// Declarations at the top of the named ones would end with them: they are made variables, which are global.
func (w *wpt) input(c testCase) (*wptInput, error) {
	src, err := os.ReadFile(filepath.Join(w.dir, filepath.FromSlash(c.file)))
	if err != nil {
		return nil, err
	}
	m := parseMeta(src)
	var scripts []string
	for _, s := range m.scripts {
		if !strings.HasPrefix(s, "/") {
			s = path.Join(path.Dir(c.file), s)
		}
		text, err := os.ReadFile(filepath.Join(w.dir, filepath.FromSlash(strings.Replace(s, webIDLAlias, webIDLFile, 1))))
		if err != nil {
			return nil, err
		}
		scripts = append(scripts, globalise(substitute(s, string(text))))
	}
	scripts = append(scripts, substitute(c.file, string(src)))
	limit := w.usual
	if m.long {
		limit = max(limit, w.long)
	}
	page := strings.TrimSuffix(c.file, ".js") + ".worker.html" + c.mode
	return &wptInput{URL: wptOrigin + "/" + page, Millis: limit.Milliseconds(), Scripts: scripts}, nil
}
