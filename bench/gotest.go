package main

import (
	"context"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
)

// results are values by benchmark and unit, as `go test -bench` names both; one value a run.
type results map[string]map[string][]float64

// benchBinary builds the tests of a package of this module. The caller removes its folder.
func benchBinary(ctx context.Context, pkg string) (binary string, err error) {
	dir, err := os.MkdirTemp("", "edged-bench-")
	if err != nil {
		return "", err
	}
	binary = filepath.Join(dir, "bench.test")
	if out, err := exec.CommandContext(ctx, "go", "test", "-c", "-o", binary, pkg).CombinedOutput(); err != nil {
		return "", fmt.Errorf("go test: %w\n%s", err, out)
	}
	return binary, nil
}

// run runs the benchmarks that match, all of them once per turn, and adds what they said to into.
func (into results) run(ctx context.Context, binary string, turns int, pattern, benchtime string) error {
	for range turns {
		cmd := exec.CommandContext(ctx, binary, "-test.run", "^$", "-test.bench", pattern, "-test.benchtime", benchtime)
		cmd.Dir = filepath.Dir(binary)
		cmd.Env = append(os.Environ(), "EDGED_BENCH_LARGE=1") // sizes that a run of all benchmarks leaves out
		out, err := cmd.CombinedOutput()
		if err != nil {
			return fmt.Errorf("benchmarks %s: %w\n%s", pattern, err, out)
		}
		into.parse(string(out))
	}
	return nil
}

var cores = regexp.MustCompile(`-\d+$`)

func (into results) parse(out string) {
	for line := range strings.Lines(out) {
		fields := strings.Fields(line)
		if len(fields) < 4 || !strings.HasPrefix(fields[0], "Benchmark") {
			continue
		}
		name := cores.ReplaceAllString(strings.TrimPrefix(fields[0], "Benchmark"), "")
		if into[name] == nil {
			into[name] = map[string][]float64{}
		}
		for i := 2; i+1 < len(fields); i += 2 {
			if v, err := strconv.ParseFloat(fields[i], 64); err == nil {
				into[name][fields[i+1]] = append(into[name][fields[i+1]], v)
			}
		}
	}
}

// of returns the median of one value; NaN, which reaches no target, if it was not measured.
func (into results) of(name, unit string) float64 {
	if values := into[name][unit]; len(values) > 0 {
		return spreadOf(values).median
	}
	return math.NaN()
}

// microseconds are what an operation took in each turn.
func (into results) microseconds(name string) []float64 {
	var all []float64
	for _, ns := range into[name]["ns/op"] {
		all = append(all, ns/1000)
	}
	return all
}

// each is how often the operation of a benchmark ran, turn by turn, or what it says of itself in a unit of its own.
func (into results) each(name, unit string) []float64 {
	if unit != "/s" {
		return into[name][unit]
	}
	var all []float64
	for _, ns := range into[name]["ns/op"] {
		all = append(all, 1e9/ns)
	}
	return all
}

// perSecond is how often the operation of a benchmark ran.
func (into results) perSecond(name string) float64 { return 1e9 / into.of(name, "ns/op") }

// beside prints how often an operation ran in this program and in its raw form, and their ratio; want 0 is no target.
func (r *report) beside(what string, ours, raw, want float64, unit string) {
	r.line("  %-44s %8.0f %s, raw %.0f %s", what, ours, unit, raw, unit)
	if want > 0 {
		r.target(what+" / raw", ours/raw, want, false, "")
	} else {
		r.ratio(what+" / raw", once(ours/raw), false)
	}
}

// compared prints two benchmarks and their ratio turn by turn; want 0 is no target. The unit "/s" is how often the operations ran.
func (r *report) compared(what string, all results, ours, raw, beside, unit string, want float64) {
	a, b := all.each(ours, unit), all.each(raw, unit)
	r.line("  %-44s %8.0f %s, %s %.0f %s", what, spreadOf(a).median, unit, beside, spreadOf(b).median, unit)
	r.note(what, spreadOf(a), unit)
	r.note(what+", "+beside, spreadOf(b), unit)
	if want > 0 {
		r.reach(what+" / "+beside, pairs(a, b), want, false, "")
	} else {
		r.ratio(what+" / "+beside, pairs(a, b), false)
	}
}
