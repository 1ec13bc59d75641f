package main

import (
	"fmt"
	"io"
	"math"
	"os"
	"slices"
	"strings"
)

// report collects the lines of the run, and what it measured for the table, the document and the check.
type report struct {
	missed  []string
	part    string // the one that runs now
	results []result
	out     io.Writer // nil is the standard output
}

// result is one measured value. It is written into documents: names of fields stay.
type result struct {
	Part  string    `json:"part"`
	Name  string    `json:"name"`
	Value float64   `json:"value"` // the median
	Unit  string    `json:"unit,omitempty"`
	Low   float64   `json:"low"` // equal to Value and High if it was measured once
	High  float64   `json:"high"`
	Each  []float64 `json:"each,omitempty"` // what the median is of, lowest first: of a ratio one for each pair of windows

	Ratio      bool     `json:"ratio,omitempty"`         // of two things measured side by side; nothing else is compared between runs
	Lower      bool     `json:"lowerIsBetter,omitempty"` // otherwise higher is
	Percentile float64  `json:"percentile,omitempty"`    // of a latency
	Target     *float64 `json:"target,omitempty"`        // what Value has to reach; nil is none
	Met        *bool    `json:"met,omitempty"`
	Missing    bool     `json:"missing,omitempty"` // it could not be measured, Value says nothing
}

func (r *report) line(format string, args ...any) {
	out := r.out
	if out == nil {
		out = os.Stdout
	}
	fmt.Fprintf(out, format+"\n", args...)
}

// note takes a value into the document and the table without a line of its own.
func (r *report) note(name string, s spread, unit string) *result {
	res := result{Part: r.part, Name: name, Value: s.median, Unit: unit, Low: s.low, High: s.high, Each: s.each}
	if !finite(s.median) || !finite(s.low) || !finite(s.high) {
		res = result{Part: r.part, Name: name, Unit: unit, Missing: true}
	}
	r.results = append(r.results, res)
	return &r.results[len(r.results)-1]
}

// value says a value that has no target.
func (r *report) value(name string, s spread, unit string) {
	r.note(name, s, unit)
	r.line("%s", strings.TrimRight(fmt.Sprintf("  %-44s %8.2f %-4s%s", name, s.median, unit, s.bounds()), " "))
}

// target says a value that was measured once with what it has to reach. It is a ratio if it has no unit and its name is a division, "a / b".
func (r *report) target(name string, value, want float64, atMost bool, unit string) {
	r.reach(name, once(value), want, atMost, unit)
}

// reach says a value with its spread and what it has to reach. What is a ratio is told as target tells it.
func (r *report) reach(name string, s spread, want float64, atMost bool, unit string) {
	met, sign, verdict := s.median >= want, ">=", "met"
	if atMost {
		met, sign = s.median <= want, "<="
	}
	if !met { // also what was not measured
		verdict = "MISSED"
		r.missed = append(r.missed, name)
	}
	res := r.note(name, s, unit)
	res.Ratio, res.Lower, res.Target, res.Met = unit == "" && strings.Contains(name, " / "), atMost, &want, &met
	r.line("  %-44s %8.2f %-4s (target %s %g: %s)%s", name, s.median, unit, sign, want, verdict, s.bounds())
}

// ratio says a ratio that has no target.
func (r *report) ratio(name string, s spread, lowerIsBetter bool) {
	res := r.note(name, s, "")
	res.Ratio, res.Lower = true, lowerIsBetter
	r.line("  %-44s %8.2f%s", name, s.median, s.bounds())
}

// table says all ratios of the run once more, one below the other.
func (r *report) table() {
	if !slices.ContainsFunc(r.results, func(res result) bool { return res.Ratio }) {
		return
	}
	r.line("\nall ratios: the median of the pairs (lowest-highest)")
	for _, res := range r.results {
		if !res.Ratio {
			continue
		}
		if res.Missing {
			r.line("  %-12s %-46s %8s", res.Part, res.Name, "not measured")
			continue
		}
		r.line("%s", strings.TrimRight(fmt.Sprintf("  %-12s %-46s %8.3g  %-17s%s", res.Part, res.Name, res.Value, res.spread().bounds(), res.verdict()), " "))
	}
}

// verdict says a target and whether it was reached; "" is no target.
func (res result) verdict() string {
	if res.Target == nil {
		return ""
	}
	sign, verdict := ">=", "MISSED"
	if res.Lower {
		sign = "<="
	}
	if *res.Met {
		verdict = "met"
	}
	return fmt.Sprintf(" %s %g: %s", sign, *res.Target, verdict)
}

func (res result) spread() spread { return spread{res.Value, res.Low, res.High, res.Each} }

// spread is the median of some measurements, with the lowest and the highest.
type spread struct {
	median, low, high float64
	each              []float64 // sorted; nil if it was measured once
}

// bounds are the lowest and the highest as they stand behind a value.
func (s spread) bounds() string {
	if len(s.each) < 2 {
		return ""
	}
	return fmt.Sprintf(" (%.3g-%.3g)", s.low, s.high)
}

func once(value float64) spread { return spread{median: value, low: value, high: value} }

// spreadOf is not a number, which reaches no target, if nothing was measured.
func spreadOf(values []float64) spread {
	if len(values) == 0 {
		return once(math.NaN())
	}
	s := slices.Sorted(slices.Values(values))
	return spread{(s[(len(s)-1)/2] + s[len(s)/2]) / 2, s[0], s[len(s)-1], s}
}

// pairs is the spread of a/b, of what was measured in the same turn each: what slows a machine for a while slows both.
func pairs(a, b []float64) spread {
	each := make([]float64, min(len(a), len(b)))
	for i := range each {
		each[i] = a[i] / b[i]
	}
	return spreadOf(each)
}

// difference is the spread of a-b, turn by turn.
func difference(a, b []float64) spread {
	each := make([]float64, min(len(a), len(b)))
	for i := range each {
		each[i] = a[i] - b[i]
	}
	return spreadOf(each)
}

// blocks are the medians of n parts of the values in order: of samples that are too different one by one to say how a median spreads.
func blocks(values []float64, n int) []float64 {
	var medians []float64
	for i := range n {
		if part := values[i*len(values)/n : (i+1)*len(values)/n]; len(part) > 0 {
			medians = append(medians, spreadOf(part).median)
		}
	}
	return medians
}

// quantile returns the q-quantile of values.
func quantile(values []float64, q float64) float64 {
	s := slices.Sorted(slices.Values(values))
	return s[min(len(s)-1, int(q*float64(len(s))))]
}

func finite(v float64) bool { return !math.IsNaN(v) && !math.IsInf(v, 0) }

// percentiles takes latencies in milliseconds, one per window, into the document.
func (r *report) percentiles(name string, p50, p99 []float64) {
	for _, p := range []struct {
		percent float64
		values  []float64
	}{{50, p50}, {99, p99}} {
		res := r.note(fmt.Sprintf("%s, p%g", name, p.percent), spreadOf(p.values), "ms")
		res.Lower, res.Percentile = true, p.percent
	}
}

// latency says percentiles of single requests, in milliseconds.
func (r *report) latency(name string, took []float64) {
	r.line("  %-44s p50 %.2f ms   p99 %.2f ms", name, quantile(took, 0.5), quantile(took, 0.99))
	r.percentiles(name, []float64{quantile(took, 0.5)}, []float64{quantile(took, 0.99)})
}
