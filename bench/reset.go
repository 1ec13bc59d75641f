package main

import (
	"context"
	"os"
	"path/filepath"
)

// benchReset takes what a pristine sandbox costs from the room's own benchmark: the same request with and without reset,
// in process, alternating.
func benchReset(ctx context.Context, cfg config, r *report) error {
	binary, err := benchBinary(ctx, "./sandbox")
	if err != nil {
		return err
	}
	defer os.RemoveAll(filepath.Dir(binary))
	all := results{}
	if err := all.run(ctx, binary, cfg.windows, "^BenchmarkHello$", "1s"); err != nil {
		return err
	}
	fresh, reused := spreadOf(all["Hello/isolation=request"]["ns/op"]), spreadOf(all["Hello/isolation=worker"]["ns/op"])
	r.line("  hello in process, medians of %d: pristine %.1f us (%.1f-%.1f), reused %.1f us (%.1f-%.1f)", cfg.windows,
		fresh.median/1000, fresh.low/1000, fresh.high/1000, reused.median/1000, reused.low/1000, reused.high/1000)
	r.target("reset", (fresh.median-reused.median)/1000, 10, true, "us")
	return nil
}
