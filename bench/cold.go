package main

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"strconv"
	"time"
)

const (
	coldWorkers = 100
	deployRuns  = 9
)

// benchCold measures the first request of versions that never ran in this process: their images come from disk.
func benchCold(ctx context.Context, cfg config, r *report) error {
	dir, err := os.MkdirTemp("", "edged-bench-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	hosts := make([]string, coldWorkers)
	err = withNodeIn(ctx, cfg, dir, func(n *nodeProcess) (err error) {
		for i := range hosts {
			if hosts[i], err = n.deployWorker(ctx, "w"+strconv.Itoa(i), numbered(i)); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	return withNodeIn(ctx, cfg, dir, func(n *nodeProcess) error { return n.measureCold(hosts, r) })
}

func (n *nodeProcess) measureCold(hosts []string, r *report) error {
	first, second, err := firstRequests(n.http, hosts)
	if err != nil {
		return err
	}
	r.line("  %d versions, never run in this process, one open connection", coldWorkers)
	r.value("process start to all listeners", once(milliseconds(n.booted)), "ms")
	r.latency("first request", first)
	r.latency("second request", second)
	r.reach("first request on a stored image, p50", spreadOf(blocks(first, 5)), 1, true, "ms")
	r.ratio("first request / second, p50", pairs(blocks(first, 5), blocks(second, 5)), true)
	return nil
}

// firstRequests asks every host twice and returns the milliseconds of both.
func firstRequests(addr string, hosts []string) (first, second []float64, err error) {
	c, err := net.Dial("tcp", addr)
	if err != nil {
		return nil, nil, err
	}
	defer c.Close()
	buf := make([]byte, 4096)
	for _, host := range hosts {
		for _, into := range []*[]float64{&first, &second} {
			began := time.Now()
			if _, err := request(c, host, "/", buf); err != nil {
				return nil, nil, err
			}
			*into = append(*into, milliseconds(time.Since(began)))
		}
	}
	return first, second, nil
}

// benchDeploy measures the command that a user runs.
func benchDeploy(ctx context.Context, cfg config, r *report) error {
	return withNode(ctx, cfg, func(n *nodeProcess) error { return n.measureDeploys(ctx, r) })
}

func (n *nodeProcess) measureDeploys(ctx context.Context, r *report) error {
	var changed, unchanged []float64
	for i := range deployRuns {
		project, err := projectDir(numbered(i) + fmt.Sprintf("\nexport const build = %d", i))
		if err != nil {
			return err
		}
		defer os.RemoveAll(project)
		for _, into := range []*[]float64{&changed, &unchanged} {
			began := time.Now()
			out, err := exec.CommandContext(ctx, n.cfg.binary, "deploy", project, "--data-dir", n.dir).CombinedOutput()
			if err != nil {
				return fmt.Errorf("edged deploy: %w\n%s", err, out)
			}
			*into = append(*into, milliseconds(time.Since(began)))
		}
	}
	r.line("  from source to traffic moved, medians of %d", deployRuns-1)
	r.value("edged deploy, new version", spreadOf(changed[1:]), "ms")
	r.value("edged deploy, no change", spreadOf(unchanged[1:]), "ms")
	r.ratio("new version / no change", pairs(changed[1:], unchanged[1:]), true)
	return nil
}
