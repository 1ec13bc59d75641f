package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
)

const engineRounds = 3

// buildUnedited builds the program anew, from the sources that the bench runs in, around an engine without the edits that make it faster
// (mkengine -slow). It returns its path.
func buildUnedited(ctx context.Context, dir string) (program string, err error) {
	built := filepath.Join(dir, "engine")
	if err := command(ctx, "go", "run", "./cmd/mkengine", "-slow", "-out", built); err != nil {
		return "", err
	}
	embedded, err := filepath.Abs("sandbox/engine/wasm/dist")
	if err != nil {
		return "", err
	}
	files, err := os.ReadDir(built)
	if err != nil {
		return "", err
	}
	instead := map[string]string{}
	for _, f := range files {
		instead[filepath.Join(embedded, f.Name())] = filepath.Join(built, f.Name())
	}
	overlay, err := json.Marshal(map[string]any{"Replace": instead})
	if err != nil {
		return "", err
	}
	list := filepath.Join(dir, "overlay.json")
	if err := os.WriteFile(list, overlay, 0o600); err != nil {
		return "", err
	}
	program = filepath.Join(dir, "edged")
	return program, command(ctx, "go", "build", "-trimpath", "-overlay", list, "-o", program, "./cmd/edged")
}

func command(ctx context.Context, name string, args ...string) error {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%s %s: %w\n%s", name, args[0], err, out)
	}
	return nil
}

// benchEngine runs the kernels of the cpu part on the engine as it is and without our edits, in alternating rounds.
func benchEngine(ctx context.Context, cfg config, r *report) error {
	dir, err := os.MkdirTemp("", "edged-bench-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	plain := cfg
	if plain.binary, err = buildUnedited(ctx, dir); err != nil {
		return err
	}
	patient := []string{"--max-cpu", "5m", "--max-wall", "5m"}
	return withNode(ctx, cfg, func(edited *nodeProcess) error {
		return withNode(ctx, plain, func(unedited *nodeProcess) error { return compareEngines(ctx, edited, unedited, r) }, patient...)
	}, patient...)
}

func compareEngines(ctx context.Context, edited, unedited *nodeProcess, r *report) error {
	var ratios []float64
	sums := map[string][2]float64{}
	var names []string
	nodes := [...]*nodeProcess{edited, unedited}
	var hosts [len(nodes)]string
	for i, n := range nodes {
		var err error
		if hosts[i], err = n.deployWorker(ctx, "cpu", cpuSource); err != nil {
			return err
		}
	}
	for range engineRounds {
		var took [len(nodes)]float64
		for i, n := range nodes {
			all, err := cpuOverHTTP(ctx, n.http, hosts[i])
			if err != nil {
				return err
			}
			for _, k := range all {
				if _, known := sums[k.Name]; !known {
					names = append(names, k.Name)
				}
				s, ms := sums[k.Name], spreadOf(k.MS).median
				s[i] += ms
				sums[k.Name] = s
				took[i] += ms
			}
		}
		ratios = append(ratios, took[1]/took[0])
	}
	r.line("  %-28s %10s %10s   ms, of %d alternating rounds together", "kernel", "edited", "unedited", engineRounds)
	for _, name := range names {
		r.line("  %-28s %10.1f %10.1f", name, sums[name][0], sums[name][1])
	}
	r.reach("speed of the suite, edited / unedited", spreadOf(ratios), 1.15, false, "")
	return nil
}
