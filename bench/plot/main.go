// Command plot draws runs of the bench as PNG: the ratios of a run with their spread and their targets, its latencies, and how the ratios
// of each part went from one kept run to the next. It is a module of its own, so that what drawing needs stays out of the program's.
//
//	main.go    files and flags
//	charts.go  the pictures
//
// Not here: what the numbers mean (../README.md), and whether one got worse (../check.go): a picture has no verdict.
package main

import (
	"cmp"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// document is what the pictures need of ../document.go's.
type document struct {
	Format  int
	Suite   string
	Date    time.Time
	Commit  string
	Machine string
	Results []result
}

// result is what the pictures need of ../report.go's.
type result struct {
	Part, Name, Unit string
	Value, Low, High float64
	Ratio            bool
	Lower            bool `json:"lowerIsBetter"`
	Missing          bool
	Percentile       float64
	Target           *float64
	Met              *bool
}

// drawable is a positive value: the scales are logarithmic.
func (r result) drawable() bool {
	return !r.Missing && r.Value > 0 && r.High >= r.Value && r.Low <= r.Value
}

// bottom is the lowest that can be drawn.
func (r result) bottom() float64 {
	if r.Low > 0 {
		return r.Low
	}
	return r.Value
}

func main() {
	out := flag.String("out", "", "the folder for the pictures; it is made")
	kept := flag.String("kept", "", "the folder of kept runs; without it there are no pictures of how the ratios went")
	flag.Parse()
	if *out == "" || flag.NArg() == 0 {
		fmt.Fprintln(os.Stderr, "plot: name a folder with -out and at least one document of a run")
		os.Exit(2)
	}
	if err := run(*out, *kept, flag.Args()); err != nil {
		fmt.Fprintln(os.Stderr, "plot:", err)
		os.Exit(1)
	}
}

func run(out, kept string, files []string) error {
	if err := os.MkdirAll(out, 0o755); err != nil {
		return err
	}
	var history []document
	if kept != "" {
		names, err := filepath.Glob(filepath.Join(kept, "*.json"))
		if err != nil {
			return err
		}
		if history, err = read(names); err != nil {
			return err
		}
	}
	runs, err := read(files)
	if err != nil {
		return err
	}
	for _, d := range runs {
		if err := d.draw(out, history); err != nil {
			return err
		}
	}
	return nil
}

// draw makes the pictures of one run.
func (d document) draw(out string, history []document) error {
	title := d.Suite + ", commit " + d.Commit + ", " + d.Date.Format("2 January 2006") + ", " + d.Machine
	ratios, latencies := d.pick(func(r result) bool { return r.Ratio }), d.pick(func(r result) bool { return r.Percentile > 0 })
	if err := rows(out, d.Suite+"-ratios.png", "Ratios: median and range of the pairs; | is the target\n"+title, "ratio", ratios); err != nil {
		return err
	}
	if err := rows(out, d.Suite+"-latency.png", "Latencies: medians and ranges of the windows\n"+title, "milliseconds", latencies); err != nil {
		return err
	}
	if !slices.ContainsFunc(history, func(h document) bool { return h.same(d) }) {
		history = append(slices.Clone(history), d)
	}
	history = slices.DeleteFunc(history, func(h document) bool { return h.Suite != d.Suite })
	slices.SortStableFunc(history, func(a, b document) int { return a.Date.Compare(b.Date) })
	var parts []string
	for _, r := range ratios {
		if !slices.Contains(parts, r.Part) {
			parts = append(parts, r.Part)
		}
	}
	for _, part := range parts {
		if err := courses(out, d.Suite+"-history-"+part+".png", part+" ("+d.Suite+"): ratios from run to run", part, history); err != nil {
			return err
		}
	}
	return nil
}

func (d document) same(other document) bool {
	return d.Suite == other.Suite && d.Date.Equal(other.Date) && d.Commit == other.Commit
}

func (d document) pick(want func(result) bool) []result {
	return slices.DeleteFunc(slices.Clone(d.Results), func(r result) bool { return !r.drawable() || !want(r) })
}

// read reads documents, oldest first. Names of parts become names of files: one that could leave the folder is refused.
func read(names []string) ([]document, error) {
	var all []document
	for _, name := range names {
		b, err := os.ReadFile(name)
		if err != nil {
			return nil, err
		}
		var d document
		if err := json.Unmarshal(b, &d); err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		if d.Format != 1 {
			return nil, fmt.Errorf("%s: format %d, this program reads 1", name, d.Format)
		}
		for _, word := range append([]string{d.Suite}, parts(d)...) {
			if strings.ContainsAny(word, "/\\") || word == "" {
				return nil, fmt.Errorf("%s: %q is no name of a suite or part", name, word)
			}
		}
		all = append(all, d)
	}
	slices.SortStableFunc(all, func(a, b document) int { return cmp.Or(a.Date.Compare(b.Date), cmp.Compare(a.Suite, b.Suite)) })
	return all, nil
}

func parts(d document) (names []string) {
	for _, r := range d.Results {
		names = append(names, r.Part)
	}
	return names
}
