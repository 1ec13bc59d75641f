package main

import (
	"context"
	"errors"
	"syscall"
	"time"
)

// stopped measures what a node that is stopped, with all its connections open, costs the others: memory, and time.
func (l *putLoad) stopped(ctx context.Context, r *report) error {
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
	_, rerr := l.run(ctx, others, measured)
	with, err := l.resident(others)
	began := time.Now()
	if err := errors.Join(rerr, err, syscall.Kill(last.pid, syscall.SIGCONT)); err != nil {
		return err
	}
	if err := l.level(ctx, nodes); err != nil {
		return err
	}
	r.line("  one of %d stopped for %v, %d puts/s to the others: they have each other's p50 %.1f ms, p99 %.1f ms; all level %.1f s after it went on",
		len(nodes), measured, putsPerSecond, quantile(l.took, 0.5), quantile(l.took, 0.99), time.Since(began).Seconds())
	r.line("  RSS of those two together: %.0f MiB, after %v with all running %.0f MiB, after %v with one stopped %.0f MiB", mib(before), measured, mib(flat), measured, mib(with))
	r.target("RSS with one stopped / before", float64(with)/float64(flat), 1.1, true, "")
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
