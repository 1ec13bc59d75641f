package main

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
)

const (
	leastTolerance = 0.05 // two runs of the same program on a quiet machine differ by that much
	onceTolerance  = 0.15 // of a ratio that was measured once: nobody knows how it spreads
	wideTolerance  = 0.5  // more tells little, and is said
)

// change is one ratio in two runs.
type change struct {
	part, name string
	then, now  result
	by         float64 // 0.1: now is a tenth more than then
	tolerance  float64 // so much worse is still the same
	verdict    string
}

const (
	same      = "the same"
	better    = "better"
	regressed = "REGRESSED"
	unclear   = "the same, but the spread is wide"
)

// comparison is what a check found.
type comparison struct {
	changes []change
	notes   []string // what could not be compared, and why
	bad     []string // what regressed
}

// compare holds the ratios of a run to the last documents of its suite, oldest first, in which each part was measured. Absolute values
// are the machine's and never compared.
func compare(history []document, now document) comparison {
	var c comparison
	seen := map[string]bool{}
	for _, p := range now.Parts {
		seen[p.Name] = true
		last := lastWith(history, now, p.Name)
		switch {
		case last == nil && p.Failed != "":
			c.notes = append(c.notes, p.Name+": failed, and no kept run has measured it: "+p.Failed)
		case last == nil:
			c.notes = append(c.notes, p.Name+": no kept run has measured it")
		case p.Failed != "":
			c.notes = append(c.notes, p.Name+": failed: "+p.Failed)
			c.bad = append(c.bad, p.Name+" failed")
		default:
			c.part(p.Name, *last, now)
		}
	}
	for _, d := range history {
		for _, p := range d.Parts {
			if d.Suite == now.Suite && !seen[p.Name] {
				seen[p.Name] = true
				c.notes = append(c.notes, p.Name+": not in this run")
			}
		}
	}
	return c
}

// lastWith is the newest document that has measured a part and is not the run itself.
func lastWith(history []document, now document, part string) *document {
	for i := len(history) - 1; i >= 0; i-- {
		d := &history[i]
		sameRun := d.Date.Equal(now.Date) && d.Commit == now.Commit
		measured := slices.ContainsFunc(d.Parts, func(p partRun) bool { return p.Name == part && p.Failed == "" })
		if d.Suite == now.Suite && measured && !sameRun {
			return d
		}
	}
	return nil
}

// part compares the ratios of one part.
func (c *comparison) part(name string, then, now document) {
	before, after := then.ratios(name), now.ratios(name)
	for _, a := range after {
		i := slices.IndexFunc(before, func(b result) bool { return b.Name == a.Name })
		if i < 0 {
			c.notes = append(c.notes, fmt.Sprintf("%s: %s: not in the last run (%s)", name, a.Name, then.Commit))
			continue
		}
		c.ratio(before[i], a)
	}
	for _, b := range before {
		if !slices.ContainsFunc(after, func(a result) bool { return a.Name == b.Name }) {
			c.notes = append(c.notes, fmt.Sprintf("%s: %s: not measured in this run", name, b.Name))
		}
	}
}

// ratios are those of a part that can be compared.
func (d document) ratios(part string) []result {
	return slices.DeleteFunc(slices.Clone(d.Results), func(res result) bool {
		return res.Part != part || !res.Ratio || res.Missing || res.Value <= 0
	})
}

// ratio is regressed if it is worse by a factor over one plus the tolerance.
func (c *comparison) ratio(then, now result) {
	ch := change{part: now.Part, name: now.Name, then: then, now: now, by: now.Value/then.Value - 1, verdict: same,
		tolerance: max(leastTolerance, then.width()+now.width())}
	worse := then.Value / now.Value
	if now.Lower {
		worse = 1 / worse
	}
	switch {
	case worse > 1+ch.tolerance:
		ch.verdict = regressed
		c.bad = append(c.bad, fmt.Sprintf("%s: %s: %+.0f %%", ch.part, ch.name, 100*ch.by))
	case worse < 1/(1+ch.tolerance):
		ch.verdict = better
	case ch.tolerance > wideTolerance:
		ch.verdict = unclear
	}
	c.changes = append(c.changes, ch)
}

// width is half the range of a ratio's pairs as a share of their median. Of five or more the one farthest from the median does not
// count: a single pair that something else on the machine has hit says nothing about the others.
func (res result) width() float64 {
	low, high := res.Low, res.High
	if n := len(res.Each); n >= 5 {
		if each := res.Each; each[n-1]/res.Value > res.Value/each[0] {
			high = each[n-2]
		} else {
			low = each[1]
		}
	}
	if high <= low {
		return onceTolerance
	}
	return math.Abs((high - low) / 2 / res.Value)
}

// print says what was compared, and returns an error if something regressed or nothing was compared.
func (c comparison) print(r *report, now document) error {
	from := now.file
	if from == "" {
		from = "this run"
	}
	r.line("\ncheck of %s (%s, %s) by ratio; a change within the spread of both is none", from, now.Suite, now.Commit)
	for _, ch := range c.changes {
		r.line("  %-12s %-46s %7.3g%-17s -> %7.3g%-17s %+5.0f %% (%.0f %% tolerated): %s", ch.part, ch.name, ch.then.Value, ch.then.spread().bounds(),
			ch.now.Value, ch.now.spread().bounds(), 100*ch.by, 100*ch.tolerance, ch.verdict)
	}
	for _, note := range c.notes {
		r.line("  not compared: %s", note)
	}
	if len(c.bad) > 0 {
		return fmt.Errorf("regressed: %s", strings.Join(c.bad, "; "))
	}
	if len(c.changes) == 0 {
		return fmt.Errorf("nothing was compared: no kept results of suite %s have a ratio of this run (README.md in bench says how to keep some)", now.Suite)
	}
	r.line("  nothing regressed in %d ratios", len(c.changes))
	return nil
}

// check compares documents with the history that the command line names. It says everything before it returns an error.
func check(ctx context.Context, cfg config, r *report, runs ...document) error {
	history, err := readHistory(ctx, cfg.against)
	if err != nil {
		return fmt.Errorf("kept results: %w", err)
	}
	var bad []error
	for _, now := range runs {
		bad = append(bad, compare(history, now).print(r, now))
	}
	return errors.Join(bad...)
}

// checkFiles compares runs that were kept in files.
func checkFiles(ctx context.Context, cfg config, files []string) error {
	var runs []document
	for _, name := range files {
		d, err := readDocument(name)
		if err != nil {
			return err
		}
		runs = append(runs, d)
	}
	return check(ctx, cfg, new(report), runs...)
}
