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
	fresh, reused := all.microseconds("Hello/isolation=request"), all.microseconds("Hello/isolation=worker")
	r.line("  hello in process, medians of %d", cfg.windows)
	r.value("pristine", spreadOf(fresh), "us")
	r.value("reused", spreadOf(reused), "us")
	r.reach("reset", difference(fresh, reused), 10, true, "us")
	r.ratio("pristine / reused", pairs(fresh, reused), true)
	return nil
}
