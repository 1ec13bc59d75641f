package main

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"
)

const (
	documentFormat = 1
	documentBytes  = 8 << 20 // of one that is read
	historyMost    = 10_000  // documents of a folder
)

// document is a run for machines. README.md in this folder describes it.
type document struct {
	Format  int       `json:"format"`
	Suite   string    `json:"suite"` // rooms or peers
	Date    time.Time `json:"date"`  // when the run began
	Commit  string    `json:"commit"`
	Binary  string    `json:"binary"` // what the measured program says of itself
	Machine string    `json:"machine"`
	Go      string    `json:"go"`
	Command string    `json:"command"`
	Seconds float64   `json:"seconds"`
	Parts   []partRun `json:"parts"`
	Results []result  `json:"results,omitempty"`

	file string // where it was read from; "" is a run of this process
}

// partRun is one part of a run.
type partRun struct {
	Name    string  `json:"name"`
	Seconds float64 `json:"seconds"`
	Failed  string  `json:"failed,omitempty"` // why its results are missing or incomplete
}

// newDocument describes a run that begins now.
func newDocument(ctx context.Context, cfg config) document {
	d := document{Format: documentFormat, Suite: cfg.suite(), Date: time.Now().UTC().Truncate(time.Second), Commit: commit(ctx), Machine: machine(),
		Go: runtime.Version(), Command: "bench " + strings.Join(os.Args[1:], " ")}
	if out, err := exec.CommandContext(ctx, cfg.binary, "version").Output(); err == nil {
		d.Binary = strings.Join(strings.Fields(string(out)), " ")
	}
	return d
}

// commit is the working tree's; a plus behind it says that files were changed since.
func commit(ctx context.Context) string {
	out, err := exec.CommandContext(ctx, "git", "rev-parse", "--short=12", "HEAD").Output()
	if err != nil {
		return "unknown"
	}
	name := strings.TrimSpace(string(out))
	if changed, err := exec.CommandContext(ctx, "git", "status", "--porcelain", "--untracked-files=no").Output(); err != nil || len(changed) > 0 {
		name += "+"
	}
	return name
}

// write replaces the file at path, whole or not at all; its folder is there (prepare). Each result has a line of its own, so that documents can be compared by eye.
func (d document) write(path string) error {
	head := d
	head.Results = nil
	b, err := json.MarshalIndent(head, "", "  ")
	if err != nil {
		return err
	}
	var out bytes.Buffer
	out.Write(bytes.TrimSuffix(b, []byte("\n}")))
	out.WriteString(",\n  \"results\": [")
	for i, res := range d.Results {
		b, err := json.Marshal(res)
		if err != nil {
			return err
		}
		if i > 0 {
			out.WriteByte(',')
		}
		out.WriteString("\n    ")
		out.Write(b)
	}
	out.WriteString("\n  ]\n}\n")
	temp := path + ".new"
	if err := os.WriteFile(temp, out.Bytes(), 0o644); err != nil {
		return err
	}
	return os.Rename(temp, path)
}

// prepare finds out whether write will be able to write a file; "" is none.
func prepare(path string) error {
	if path == "" {
		return nil
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	return os.WriteFile(path+".new", nil, 0o644)
}

// readDocument reads what write has written. The error names the file.
func readDocument(path string) (document, error) {
	f, err := os.Open(path)
	if err != nil {
		return document{}, err
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, documentBytes+1))
	if err == nil && len(b) > documentBytes {
		err = fmt.Errorf("over %d bytes", documentBytes)
	}
	d := document{file: path}
	if err == nil {
		err = json.Unmarshal(b, &d)
	}
	if err == nil && d.Format != documentFormat {
		err = fmt.Errorf("format %d, this program reads %d", d.Format, documentFormat)
	}
	if err != nil {
		return document{}, fmt.Errorf("%s: %w", path, err)
	}
	return d, nil
}

// readHistory reads a document, or those of a folder, oldest first. Of a folder in a git working tree it takes the committed ones: what
// lies there uncommitted may be the very run that is to be compared.
func readHistory(ctx context.Context, path string) ([]document, error) {
	files := []string{path}
	if st, err := os.Stat(path); err != nil {
		return nil, err
	} else if st.IsDir() {
		if files, err = filepath.Glob(filepath.Join(path, "*.json")); err != nil {
			return nil, err
		}
		if known, ok := committed(ctx, path); ok {
			files = slices.DeleteFunc(files, func(name string) bool { return !slices.Contains(known, filepath.Base(name)) })
		}
		if len(files) > historyMost {
			return nil, fmt.Errorf("%s: %d documents, at most %d are read", path, len(files), historyMost)
		}
	}
	var all []document
	var bad []error
	for _, name := range files {
		d, err := readDocument(name)
		if err != nil {
			bad = append(bad, err)
			continue
		}
		all = append(all, d)
	}
	slices.SortStableFunc(all, func(a, b document) int { return cmp.Or(a.Date.Compare(b.Date), cmp.Compare(a.file, b.file)) })
	return all, errors.Join(bad...)
}

// committed are the names of a folder's files in the last commit; not ok is no working tree of git.
func committed(ctx context.Context, dir string) (names []string, ok bool) {
	out, err := exec.CommandContext(ctx, "git", "-C", dir, "ls-tree", "--name-only", "-z", "HEAD", "./").Output()
	return strings.Split(string(out), "\x00"), err == nil
}

// machine says what the numbers were measured on.
func machine() string {
	model, release := "unknown processor", "unknown kernel"
	if b, err := os.ReadFile("/proc/cpuinfo"); err == nil {
		for line := range strings.Lines(string(b)) {
			if name, ok := strings.CutPrefix(line, "model name"); ok {
				model = strings.Trim(name, "\t :\n")
				break
			}
		}
	}
	if b, err := os.ReadFile("/proc/sys/kernel/osrelease"); err == nil {
		release, _, _ = strings.Cut(strings.TrimSpace(string(b)), "-") // without what a builder has called his
	}
	return fmt.Sprintf("%s, %d cores, Linux %s", model, runtime.NumCPU(), release)
}
