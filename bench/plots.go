package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
)

// draw has plot/, a module of its own, make pictures of a run and of the kept ones.
func (d document) draw(ctx context.Context, cfg config, r *report) error {
	dir, err := os.MkdirTemp("", "edged-bench-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	run := filepath.Join(dir, "run.json")
	if err := d.write(run); err != nil {
		return err
	}
	out, err := filepath.Abs(cfg.plots)
	if err != nil {
		return err
	}
	kept, err := filepath.Abs("bench/results")
	if err != nil {
		return err
	}
	said, err := exec.CommandContext(ctx, "go", "run", "-C", "bench/plot", ".", "-out", out, "-kept", kept, run).CombinedOutput()
	if err != nil {
		return fmt.Errorf("plots: %w\n%s", err, said)
	}
	r.line("%s", said)
	return nil
}
