package main

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
)

// report is the outcome of a run.
type report struct {
	results []result
	rules   *list
	partial bool // a sample: rules may have met no failure
}

// count is a line of the table.
type count struct {
	files, left  int // cases that ran, and that were left out
	parts, good  int
	known, fresh int
}

func (c *count) add(r *result) {
	if r.Status == skipped {
		c.left++
		return
	}
	c.files++
	for _, p := range r.Parts {
		c.parts++
		switch {
		case p.Status == pass:
			c.good++
		case p.Known != "":
			c.known++
		default:
			c.fresh++
		}
	}
}

// tableDepth is how many folders deep a line of the table reaches.
const tableDepth = 2

// print writes what failed, the table, the reasons with their counts.
func (rep *report) print(out io.Writer, verbose bool) {
	table, reasons := map[string]*count{}, map[string]int{}
	var total count
	for i := range rep.results {
		r := &rep.results[i]
		dir := r.folder(tableDepth)
		if table[dir] == nil {
			table[dir] = new(count)
		}
		table[dir].add(r)
		total.add(r)
		if r.Reason != "" {
			reasons["left out, "+r.Reason]++
		}
		for _, p := range r.Parts {
			if p.Status == pass {
				continue
			}
			if p.Known != "" {
				reasons["fails, "+p.Known]++
				if !verbose {
					continue
				}
			}
			fmt.Fprintf(out, "%s: %s | %s | %s\n", p.Status, r.Name, oneLine(p.Name), oneLine(p.Message))
		}
	}
	fmt.Fprintf(out, "\n%-44s %6s %8s %8s %7s %8s %8s\n", "folder", "cases", "left out", "tests", "passed", "known", "unknown")
	for _, dir := range slices.Sorted(maps.Keys(table)) {
		table[dir].print(out, dir)
	}
	total.print(out, "all")
	fmt.Fprintln(out)
	for _, why := range slices.Sorted(maps.Keys(reasons)) {
		fmt.Fprintf(out, "%7d %s\n", reasons[why], why)
	}
}

func (c *count) print(out io.Writer, name string) {
	share := "-"
	if c.parts > 0 {
		share = fmt.Sprintf("%.2f%%", 100*float64(c.good)/float64(c.parts))
	}
	fmt.Fprintf(out, "%-44s %6d %8d %8d %7d %8d %8d  %s\n", name, c.files, c.left, c.parts, c.good, c.known, c.fresh, share)
}

// oneLine makes text of a test fit for a line of a terminal.
func oneLine(s string) string {
	s = strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f || r == 0xfffd {
			return ' '
		}
		return r
	}, s)
	if len(s) > 300 {
		s = strings.ToValidUTF8(s[:300], "") + "…"
	}
	return s
}

// verdict is nil if every failure is one that the list explains, and every line about failures is still true.
func (rep *report) verdict() error {
	var total count
	for i := range rep.results {
		total.add(&rep.results[i])
	}
	if total.files == 0 {
		return fmt.Errorf("no case was run: is this the suite's folder, and does a name start like that?")
	}
	if total.fresh > 0 {
		return fmt.Errorf("%d failures that the list does not explain", total.fresh)
	}
	if stale := rep.rules.stale(); len(stale) > 0 && !rep.partial {
		return fmt.Errorf("lines of the list that explain nothing any more:\n  %s", strings.Join(stale, "\n  "))
	}
	return nil
}
