package main

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"edged/internal/testkit"
)

// cache keeps the compiled engine for all tests of this file.
var cache string

func TestMain(m *testing.M) {
	var err error
	if cache, err = os.MkdirTemp("", "conformance-"); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	testkit.Main(m, goleak.Cleanup(func(code int) {
		os.RemoveAll(cache)
		os.Exit(code)
	}))
}

// results runs a small suite of our own and returns what became of each case and part, as "status known".
func results(t *testing.T, suite, list string) (map[string]string, string, error) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "results.json")
	cfg := config{suite: suite, dir: "testdata/" + suite, list: []byte(list), json: file, every: 1, parallel: 4, usual: 2 * time.Second, long: 10 * time.Second, cache: cache}
	var out bytes.Buffer
	err := drive(t.Context(), &cfg, &out)
	all, readErr := readResults(file)
	if readErr != nil {
		t.Fatal(err, readErr)
	}
	got := map[string]string{}
	for i := range all {
		r := &all[i]
		if r.Status == skipped {
			got[r.Name] = "skipped " + r.Reason
		}
		for _, p := range r.Parts {
			got[strings.TrimSuffix(r.Name+" | "+p.Name, " | ")] = strings.TrimSpace(p.Status + " " + p.Known)
		}
	}
	return got, out.String(), err
}

func check(t *testing.T, got, want map[string]string) {
	t.Helper()
	for name, w := range want {
		if got[name] != w {
			t.Errorf("%s: %q, want %q", name, got[name], w)
		}
	}
	for name, g := range got {
		if _, ok := want[name]; !ok {
			t.Errorf("%s: %q, want nothing of that name", name, g)
		}
	}
}

// META scripts, variants, strictness, files and no programs of the suite's server, files that never end or throw: each
// ends in what the suite says, in a sandbox that no other file has touched; the lists explain, and nothing else does.
func TestWPT(t *testing.T) {
	got, out, err := results(t, "wpt", `
# a comment
skip document own/skipped : needs a document
fail absent own/fails.any.js | a known : it is not there
fail engine own/throws : it throws
fail engine own/hangs : it hangs
`)
	want := map[string]string{
		"own/skipped.any.js": "skipped document: needs a document",
		"own/window.any.js":  "skipped window: the file says that it runs in windows only",
		"own/fails.any.js | nothing is left of another file": "pass",
		"own/fails.any.js | a known failure":                 "fail absent: it is not there",
		"own/fails.any.js | an unknown failure":              "fail",
		"own/throws.any.js | (harness)":                      "error engine: it throws",
		"own/hangs.any.js | never settles":                   "not run engine: it hangs",
		"own/hangs.any.js | (harness)":                       "timeout engine: it hangs",
	}
	for _, variant := range []string{"?one", "?two"} {
		for _, part := range []string{"the file is strict", "a named script's declarations are there", "a variant is the search",
			"a file of the suite", "a program of the suite's server", "a relative URL", "memories, shared ones too"} {
			want["own/all.any.js"+variant+" | "+part] = "pass"
		}
	}
	check(t, got, want)
	if err == nil || err.Error() != "1 failures that the list does not explain" {
		t.Errorf("the run ended with %v", err)
	}
	for _, line := range []string{"fail: own/fails.any.js | an unknown failure | Error: 1 is not 3", "1 left out, document: needs a document", "1 fails, absent: it is not there"} {
		if !strings.Contains(out, line) {
			t.Errorf("the report lacks %q:\n%s", line, out)
		}
	}
}

// Modes, includes, negative tests with phase and type, async tests, modules with fixtures, features: judged as the suite
// says, also when a test breaks what answering needs.
func TestTest262(t *testing.T) {
	got, _, err := results(t, "test262", "skip absent feature:Lacking : it lacks\nfail engine own/missed.js : a known fault\nfail engine own/asyncfails.js : another\n")
	check(t, got, map[string]string{
		"own/async.js (sloppy)": "pass", "own/asyncfails.js (sloppy)": "fail engine: another",
		"own/both.js (sloppy)": "pass", "own/both.js (strict)": "pass",
		"own/early.js (sloppy)": "pass", "own/early.js (strict)": "pass",
		"own/imports.js (sloppy)": "pass",
		"own/lacking.js (sloppy)": "skipped absent: it lacks", "own/lacking.js (strict)": "skipped absent: it lacks",
		"own/late.js (sloppy)": "pass", "own/late.js (strict)": "pass",
		"own/missed.js (sloppy)": "fail engine: a known fault",
		"own/module.js (module)": "pass", "own/raw.js (raw)": "pass",
		"own/sloppy.js (sloppy)": "pass", "own/strict.js (strict)": "pass",
	})
	if err != nil {
		t.Errorf("the run ended with %v", err)
	}
}

// A list that says what is no longer so makes the run fail, and so does one that nobody can read.
func TestListsAreHeldToTheTruth(t *testing.T) {
	_, _, err := results(t, "test262", "fail engine own/ : something\nfail engine own/both.js : nothing\nskip absent feature:Lacking : it lacks\n")
	if err == nil || !strings.Contains(err.Error(), "fail engine own/both.js") || strings.Contains(err.Error(), "engine own/\n") {
		t.Errorf("the run ended with %v", err)
	}
	for _, line := range []string{"skip laziness x : words", "skip absent x : words", "fail engine x", "pass engine x : words", "skip document x | y : words"} {
		if _, err := parseList(strings.NewReader(line), wptKinds); err == nil {
			t.Errorf("%q was accepted", line)
		}
	}
	for name, kinds := range map[string]kinds{"wpt.list": wptKinds, "test262.list": test262Kinds} {
		f, err := os.Open(name)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := parseList(f, kinds); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		f.Close()
	}
}

// Whoever has no copy of a suite is told so.
func TestAbsentSuite(t *testing.T) {
	for suite, want := range map[string]string{"wpt": "is no copy of the web platform tests (make wpt WPT_DIR=…)", "test262": "is no copy of test262 (make test262 TEST262_DIR=…)"} {
		if err := start(t.Context(), []string{suite, t.TempDir()}, io.Discard); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", suite, err)
		}
	}
	if err := start(t.Context(), []string{"-cache", cache, "-only", "nowhere/", "test262", "testdata/test262"}, io.Discard); err == nil || !strings.Contains(err.Error(), "no case was run") {
		t.Errorf("nothing to run: %v", err)
	}
}

// compare names every difference in a status, and nothing else.
func TestCompare(t *testing.T) {
	dir := t.TempDir()
	before, after := filepath.Join(dir, "a"), filepath.Join(dir, "b")
	a := []result{{Name: "same", Status: pass, Parts: []part{{Status: pass}}}, {Name: "worse", Status: pass, Parts: []part{{Name: "x", Status: pass}, {Name: "x", Status: pass}}}, {Name: "gone", Status: pass}}
	b := []result{{Name: "same", Status: pass, Message: "other words", Parts: []part{{Status: pass}}}, {Name: "worse", Status: pass, Parts: []part{{Name: "x", Status: pass}, {Name: "x", Status: fail}}}, {Name: "new", Status: fail}}
	for name, r := range map[string][]result{before: a, after: b} {
		if err := writeResults(name, r); err != nil {
			t.Fatal(err)
		}
	}
	var out bytes.Buffer
	err := start(t.Context(), []string{"compare", before, after}, &out)
	if err == nil || err.Error() != "3 results differ" {
		t.Errorf("compare: %v", err)
	}
	for _, line := range []string{"worse | x #2: was pass, is fail\n", "new: was none, is fail\n", "gone: was pass, is none\n"} {
		if !strings.Contains(out.String(), line) {
			t.Errorf("lacks %q:\n%s", line, out.String())
		}
	}
	if err := start(t.Context(), []string{"compare", after, after}, &out); err != nil {
		t.Errorf("compared with itself: %v", err)
	}
}

func TestParseFront(t *testing.T) {
	got := parseFront("// words\n/*---\nincludes: [a.js, b.js]\nfeatures:\n  - One\n  - Two\nflags: [module,\n  async]\nnegative:\n  phase: resolution\n  type: SyntaxError\ninfo: |\n  - no feature\n---*/\n")
	want := front{includes: []string{"a.js", "b.js"}, features: []string{"One", "Two"}, flags: []string{"module", "async"}, negative: true, phase: "resolution", errorType: "SyntaxError"}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v, want %+v", got, want)
	}
}
