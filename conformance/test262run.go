package main

import (
	"context"
	_ "embed"
	"encoding/json"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"edged/sandbox"
)

//go:embed test262.js
var test262Main []byte

// test262Input is what the worker is sent: a program to evaluate, or the specifier of a module to import.
type test262Input struct {
	Program string `json:"program,omitempty"`
	Module  string `json:"module,omitempty"`
	Async   bool   `json:"async"`
}

// test262Output is what it answers: what was thrown, if anything.
type test262Output struct {
	threw         bool
	name, message string // name is that of the constructor
}

// judge says what is wrong with an outcome, "" if nothing is.
func (f *front) judge(out *test262Output) string {
	text := out.name + ": " + out.message
	switch {
	case !f.negative && out.threw:
		return text
	case f.negative && !out.threw:
		return "no " + f.errorType + " in phase " + f.phase
	case f.negative && out.name != f.errorType:
		return "want " + f.errorType + " in phase " + f.phase + ", got " + text
	}
	return ""
}

func (s *test262) answer(ctx context.Context, c testCase, f *front, src string) (*test262Output, error) {
	in := test262Input{Async: slices.Contains(f.flags, "async")}
	names := s.harnessOf(c, f)
	own := c.mode == modeModule || importCall.MatchString(src)
	switch c.mode {
	case modeModule:
		in.Module = "./" + path.Base(c.file)
	case modeStrict:
		in.Program = "\"use strict\";\n" + src
	default:
		in.Program = src
	}
	var v *sandbox.Version
	var err error
	if own {
		if v, err = s.open(ctx, c.name, names, &c); err == nil {
			defer func() { _ = v.Retire(ctx) }() // never an error
		}
	} else {
		v, err = s.shared(ctx, names)
	}
	if err != nil {
		return nil, err
	}
	body, err := json.Marshal(&in)
	if err != nil {
		return nil, err
	}
	answer, err := invoke(ctx, v, body)
	if err != nil {
		return nil, err
	}
	name, message, threw := strings.Cut(string(answer), "\n")
	return &test262Output{threw: threw, name: name, message: message}, nil
}

// importCall finds files that import others at run time.
var importCall = regexp.MustCompile(`\bimport\s*(\.\w+\s*)?\(`)

// harnessOf names the harness files that a case needs, in order.
func (s *test262) harnessOf(c testCase, f *front) []string {
	if c.mode == modeRaw {
		return nil
	}
	names := []string{"assert.js", "sta.js"}
	if slices.Contains(f.flags, "async") {
		names = append(names, "doneprintHandle.js")
	}
	for _, n := range f.includes {
		if !slices.Contains(names, n) {
			names = append(names, n)
		}
	}
	return names
}

// shared returns the worker for cases without modules of their own.
func (s *test262) shared(ctx context.Context, names []string) (*sandbox.Version, error) {
	key := strings.Join(names, " ")
	s.mu.Lock()
	w := s.workers[key]
	if w == nil {
		w = new(sharedWorker)
		s.workers[key] = w
	}
	s.mu.Unlock()
	w.once.Do(func() { w.version, w.err = s.open(ctx, key, names, nil) })
	return w.version, w.err
}

// open makes a worker whose snapshot has the harness files evaluated. For a case of its own, the modules that its file
// names are in the bundle. A module case has the main module beside it; a script, which is evaluated, has the bundle's
// root as its folder.
func (s *test262) open(ctx context.Context, uid string, names []string, c *testCase) (*sandbox.Version, error) {
	harness, err := s.harness(names)
	if err != nil {
		return nil, err
	}
	main := mainPath
	var modules []sandbox.Module
	if c != nil {
		root := path.Dir(path.Join("test", c.file))
		if c.mode == modeModule {
			main, root = path.Join(root, mainPath), "."
		}
		modules = s.closure(root, path.Join("test", c.file), nil)
	}
	modules = append(modules,
		sandbox.Module{Path: main, MediaType: script, Bytes: test262Main},
		sandbox.Module{Path: path.Join(path.Dir(main), "harness.txt"), MediaType: plain, Bytes: harness})
	return s.box.Open(ctx, sandbox.Spec{UID: "test262 " + uid, Worker: "test262", Handlers: []string{"fetch"},
		Graph: sandbox.Graph{Entrypoint: main, Modules: modules}})
}

func (s *test262) harness(names []string) ([]byte, error) {
	texts := []string{}
	for _, name := range names {
		b, err := os.ReadFile(filepath.Join(s.dir, "harness", filepath.FromSlash(name)))
		if err != nil {
			return nil, err
		}
		texts = append(texts, globalise(string(b)))
	}
	return json.Marshal(texts)
}

// specifier finds what may be one of a module in the suite: a string that starts with ./ or ../.
var specifier = regexp.MustCompile(`['"](\.\.?/[\w./ -]+)['"]`)

// closure returns the module file and those that its text names, and so on, as far as there are any, by their paths
// below root. What is above it is left out.
func (s *test262) closure(root, file string, have []sandbox.Module) []sandbox.Module {
	name, err := filepath.Rel(root, file)
	if err != nil || strings.HasPrefix(name, "..") || slices.ContainsFunc(have, func(m sandbox.Module) bool { return m.Path == name }) {
		return have
	}
	src, err := os.ReadFile(filepath.Join(s.dir, filepath.FromSlash(file)))
	if err != nil {
		return have // what is named and not there is part of some tests
	}
	kind := script
	if !strings.HasSuffix(file, ".js") {
		kind = plain
	}
	have = append(have, sandbox.Module{Path: filepath.ToSlash(name), MediaType: kind, Bytes: src})
	for _, m := range specifier.FindAllSubmatch(src, -1) {
		have = s.closure(root, path.Join(path.Dir(file), string(m[1])), have)
	}
	return have
}
