package main

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"

	"edged/sandbox"
)

// test262Kinds are the reasons of the list.
var test262Kinds = kinds{
	skip: []string{"absent", "runner", "proposal"},
	fail: []string{"absent", "runner", "proposal", "engine", "choice", "overtaken"},
}

// test262 is a local copy of test262. Its cases are the files, once for each mode in which they are to run: sloppy and
// strict scripts, modules, and raw texts.
type test262 struct {
	dir   string
	box   *sandbox.Sandbox
	rules *list

	mu      sync.Mutex               // guards the field below; not held while a version is opened
	workers map[string]*sharedWorker // by the harness files that are evaluated in them
}

// sharedWorker is a worker for all cases that include the same harness files; they are part of its snapshot.
type sharedWorker struct {
	once    sync.Once // guards the next two
	version *sandbox.Version
	err     error
}

// Modes of a case.
const (
	modeSloppy = "sloppy"
	modeStrict = "strict"
	modeModule = "module"
	modeRaw    = "raw"
)

func openTest262(cfg *config, rules *list) (*test262, error) {
	for _, name := range []string{"harness/assert.js", "test"} {
		if _, err := os.Stat(filepath.Join(cfg.dir, filepath.FromSlash(name))); err != nil {
			return nil, fmt.Errorf("%s is no copy of test262 (make test262 TEST262_DIR=…): %w", cfg.dir, err)
		}
	}
	box, err := sandbox.New(sandbox.Options{CacheDir: cfg.cache, MaxCPU: cfg.long, MaxWall: 2 * cfg.long, MaxRunning: cfg.parallel})
	if err != nil {
		return nil, err
	}
	return &test262{dir: cfg.dir, box: box, rules: rules, workers: make(map[string]*sharedWorker)}, nil
}

func (s *test262) close() error { return s.box.Close() }

func (s *test262) cases() ([]testCase, error) {
	var all []testCase
	root := filepath.Join(s.dir, "test")
	err := filepath.WalkDir(root, func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(name, ".js") || strings.HasSuffix(name, "_FIXTURE.js") {
			return err
		}
		rel, err := filepath.Rel(root, name)
		if err != nil {
			return err
		}
		src, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		f := parseFront(string(src))
		file := filepath.ToSlash(rel)
		skip := s.rules.skip(file, f.needs())
		for _, mode := range f.modes() {
			all = append(all, testCase{name: file + " (" + mode + ")", file: file, mode: mode, skip: skip})
		}
		return nil
	})
	slices.SortFunc(all, func(a, b testCase) int { return strings.Compare(a.name, b.name) })
	return all, err
}

// front is what a file says about itself between /*--- and ---*/.
type front struct {
	includes, features, flags []string
	negative                  bool
	phase, errorType          string // of a negative test
}

var (
	frontText  = regexp.MustCompile(`(?s)/\*---(.*?)---\*/`)
	frontPhase = regexp.MustCompile(`(?m)^negative:\s*$(?:\s+(?:phase:\s*(\w+)|type:\s*(\w+))\s*$)(?:\s+(?:phase:\s*(\w+)|type:\s*(\w+))\s*$)`)
)

func parseFront(src string) (f front) {
	m := frontText.FindStringSubmatch(src)
	if m == nil {
		return f
	}
	yaml := strings.ReplaceAll(m[1], "\r", "\n") + "\n"
	f.includes, f.features, f.flags = yamlList(yaml, "includes"), yamlList(yaml, "features"), yamlList(yaml, "flags")
	if n := frontPhase.FindStringSubmatch(yaml); n != nil {
		f.negative, f.phase, f.errorType = true, n[1]+n[3], n[2]+n[4]
	}
	return f
}

// yamlList reads "name: [a, b]" or a block of "- a" lines, the two forms the suite uses.
func yamlList(yaml, name string) (out []string) {
	_, rest, ok := strings.Cut("\n"+yaml, "\n"+name+":")
	if !ok {
		return nil
	}
	if flow := strings.TrimLeft(rest, " \t"); strings.HasPrefix(flow, "[") {
		inside, _, _ := strings.Cut(flow[1:], "]")
		for item := range strings.SplitSeq(inside, ",") {
			if item = strings.TrimSpace(item); item != "" {
				out = append(out, item)
			}
		}
		return out
	}
	for line := range strings.Lines(rest) {
		line = strings.TrimSpace(line)
		item, ok := strings.CutPrefix(line, "- ")
		if !ok && line != "" {
			break
		}
		if ok {
			out = append(out, strings.TrimSpace(item))
		}
	}
	return out
}

// needs are the features of a file, and the flags that say as much.
func (f *front) needs() []string {
	needs := slices.Clone(f.features)
	if slices.Contains(f.flags, "CanBlockIsFalse") || slices.Contains(f.flags, "CanBlockIsTrue") {
		needs = append(needs, "Atomics")
	}
	return needs
}

func (f *front) modes() []string {
	has := func(flag string) bool { return slices.Contains(f.flags, flag) }
	switch {
	case has("module"):
		return []string{modeModule}
	case has("raw"):
		return []string{modeRaw}
	case has("onlyStrict"):
		return []string{modeStrict}
	case has("noStrict"):
		return []string{modeSloppy}
	}
	return []string{modeSloppy, modeStrict}
}

func (s *test262) run(ctx context.Context, c testCase) result {
	r := result{Name: c.name, Status: pass}
	src, err := os.ReadFile(filepath.Join(s.dir, "test", filepath.FromSlash(c.file)))
	if err != nil {
		return result{Name: c.name, Status: broken, Message: err.Error()}
	}
	f := parseFront(string(src))
	out, err := s.answer(ctx, c, &f, string(src))
	if err != nil {
		r.Status, r.Message = broken, err.Error()
	} else if why := f.judge(out); why != "" {
		r.Status, r.Message = fail, why
	}
	r.Parts = []part{{Status: r.Status, Message: r.Message}}
	r.Message = ""
	s.rules.explain(&r, f.needs())
	return r
}
