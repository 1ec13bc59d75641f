package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
)

const cpuRuns = 3 // of each kernel, in workers/cpu.js

// benchCPU runs the same kernels in a sandbox and in node, with and without node's compilers.
func benchCPU(ctx context.Context, cfg config, r *report) error {
	measure := func(n *nodeProcess) error { return n.measureCPU(ctx, r) }
	return withNode(ctx, cfg, measure, "--max-cpu", "5m", "--max-wall", "5m")
}

func (n *nodeProcess) measureCPU(ctx context.Context, r *report) error {
	host, err := n.deployWorker(ctx, "cpu", cpuSource)
	if err != nil {
		return err
	}
	ours, err := cpuOverHTTP(ctx, n.http, host)
	if err != nil {
		return err
	}
	script := filepath.Join(n.dir, "cpu.mjs")
	if err := os.WriteFile(script, []byte(cpuSource+"\nconsole.log(JSON.stringify(measure()))\n"), 0o600); err != nil {
		return err
	}
	jit, err := cpuInNode(ctx, script)
	if err != nil {
		r.line("  node is not here to compare with: %v", err)
	}
	interpreted, err := cpuInNode(ctx, "--jitless", script)
	if err != nil {
		r.line("  node --jitless is not here to compare with: %v", err)
	}
	r.line("  %-28s %10s %10s %14s   ms, median of 3", "kernel", "edged", "node", "node --jitless")
	var total float64
	for _, k := range ours {
		ms := spreadOf(k.MS)
		total += ms.median
		r.note(k.Name, ms, "ms")
		r.line("  %-28s %10.1f %10.1f %14.1f", k.Name, ms.median, spreadOf(find(jit, k.Name)).median, spreadOf(find(interpreted, k.Name)).median)
	}
	r.line("  %-28s %10.1f", "total", total)
	if jit != nil {
		r.ratio("time, geometric mean / node", slower(ours, jit), true)
	}
	if interpreted != nil {
		r.ratio("time, geometric mean / node --jitless", slower(ours, interpreted), true)
	}
	return nil
}

type kernel struct {
	Name string
	MS   []float64 // of each run
}

// find returns the times of a kernel; none if it did not run.
func find(all []kernel, name string) []float64 {
	for _, k := range all {
		if k.Name == name {
			return k.MS
		}
	}
	return nil
}

// slower is the geometric mean of how much longer the kernels take here, run by run.
func slower(ours, theirs []kernel) spread {
	var each []float64
	for i := range cpuRuns {
		var sum, n float64
		for _, k := range ours {
			if other := find(theirs, k.Name); i < len(k.MS) && i < len(other) {
				sum, n = sum+math.Log(k.MS[i]/other[i]), n+1
			}
		}
		if n > 0 {
			each = append(each, math.Exp(sum/n))
		}
	}
	return spreadOf(each)
}

func cpuOverHTTP(ctx context.Context, addr, host string) ([]kernel, error) {
	req, err := http.NewRequestWithContext(ctx, "GET", "http://"+addr+"/", nil)
	if err != nil {
		return nil, err
	}
	req.Host = host
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return nil, err
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	if err != nil {
		return nil, err
	}
	if res.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("status %d: %s", res.StatusCode, body)
	}
	var out []kernel
	return out, json.Unmarshal(body, &out)
}

func cpuInNode(ctx context.Context, args ...string) ([]kernel, error) {
	body, err := exec.CommandContext(ctx, "node", args...).Output()
	if err != nil {
		return nil, err
	}
	var out []kernel
	return out, json.Unmarshal(body, &out)
}
