package main

import (
	"context"
	"errors"
	"syscall"
	"time"
)

const stoppedGrows = 64 // MiB; tables fill and caches warm meanwhile, as with all running

// stopped measures what a node that is stopped, with all its connections open, costs the others: memory, and time.
func (l *putLoad) stopped(ctx context.Context, r *report, away time.Duration) error {
	nodes := l.all()
	others, last := nodes[:len(nodes)-1], l.f.nodes[len(nodes)-1]
	before, err := l.resident(others)
	if err != nil {
		return err
	}
	if _, err := l.run(ctx, nodes, measured); err != nil {
		return err
	}
	flat, err := l.resident(others)
	if err != nil {
		return err
	}
	if err := syscall.Kill(last.pid, syscall.SIGSTOP); err != nil {
		return err
	}
	_, rerr := l.run(ctx, others, away)
	with, err := l.resident(others)
	began := time.Now()
	if err := errors.Join(rerr, err, syscall.Kill(last.pid, syscall.SIGCONT)); err != nil {
		return err
	}
	p50, p99 := quantile(l.took, 0.5), quantile(l.took, 0.99)
	if err := l.level(ctx, nodes); err != nil {
		return err
	}
	r.line("  one of %d stopped for %v, its connections open, %d puts/s to the others: they have each other's p50 %.1f ms, p99 %.1f ms; all level %.1f s after it went on",
		len(nodes), away, putsPerSecond, p50, p99, time.Since(began).Seconds())
	r.line("  RSS of the others together: %.0f MiB, after %v with all running %.0f MiB, after %v with one stopped %.0f MiB", mib(before), measured, mib(flat), away, mib(with))
	r.target("RSS grew beside a stopped node", mib(with-flat), stoppedGrows, true, "MiB")
	return nil
}

// resident is the resident memory of some nodes together.
func (l *putLoad) resident(nodes []int) (total int64, err error) {
	for _, i := range nodes {
		b, err := l.f.nodes[i].status("VmRSS:")
		if err != nil {
			return 0, err
		}
		total += b
	}
	return total, nil
}
