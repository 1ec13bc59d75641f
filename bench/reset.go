package main

import (
	"context"
	"fmt"
	"os/exec"
	"regexp"
	"strconv"
)

var resetLine = regexp.MustCompile(`(?m)^BenchmarkHello/isolation=(request|worker)\S*\s+\d+\s+([0-9.]+) ns/op`)

// benchReset takes what a pristine sandbox costs from the room's own benchmark: the same request with and without reset,
// in process, alternating.
func benchReset(ctx context.Context, cfg config, r *report) error {
	micros := map[string][]float64{}
	for range cfg.windows {
		out, err := exec.CommandContext(ctx, "go", "test", "-run", "^$", "-bench", "^BenchmarkHello$", "-benchtime", "1s", "./sandbox").CombinedOutput()
		if err != nil {
			return fmt.Errorf("go test: %w\n%s", err, out)
		}
		for _, m := range resetLine.FindAllSubmatch(out, -1) {
			ns, err := strconv.ParseFloat(string(m[2]), 64)
			if err != nil {
				return err
			}
			micros[string(m[1])] = append(micros[string(m[1])], ns/1000)
		}
	}
	fresh, reused := spreadOf(micros["request"]), spreadOf(micros["worker"])
	r.line("  hello in process, medians of %d: pristine %.1f us (%.1f-%.1f), reused %.1f us (%.1f-%.1f)", cfg.windows,
		fresh.median, fresh.low, fresh.high, reused.median, reused.low, reused.high)
	r.target("reset", fresh.median-reused.median, 10, true, "us")
	return nil
}
