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
	r.line("  %d versions, never run in this process, one open connection; process start to all listeners: %v", coldWorkers, n.booted.Round(time.Millisecond))
	r.line("  first request    p50 %.2f ms   p99 %.2f ms", quantile(first, 0.5), quantile(first, 0.99))
	r.line("  second request   p50 %.2f ms   p99 %.2f ms", quantile(second, 0.5), quantile(second, 0.99))
	r.target("first request on a stored image, p50", quantile(first, 0.5), 1, true, "ms")
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
	c, u := spreadOf(changed[1:]), spreadOf(unchanged)
	r.line("  edged deploy, new version   %6.0f ms (%.0f-%.0f), median of %d, from source to traffic moved", c.median, c.low, c.high, deployRuns-1)
	r.line("  edged deploy, no change     %6.0f ms (%.0f-%.0f)", u.median, u.low, u.high)
	return nil
}
