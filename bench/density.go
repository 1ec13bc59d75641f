package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

const (
	densityClients = 16
	densityGiB     = 2
	densityRest    = 8 * time.Second // an idle sandbox has given its memory back by then (sandbox.Options.MaxResident)
)

// benchDensity deploys many workers, which share a bundle and nothing else: each has its own version, image and host name. A
// tenth of them then serves, and the node's memory is read.
func benchDensity(ctx context.Context, cfg config, r *report) error {
	return withNode(ctx, cfg, func(n *nodeProcess) error { return n.measureDensity(ctx, cfg.density, r) }, "--control-rate", "1000000")
}

func (n *nodeProcess) measureDensity(ctx context.Context, workers int, r *report) error {
	bundle, err := n.bundle(ctx, "shared", helloSource)
	if err != nil {
		return err
	}
	began := time.Now()
	hosts := make([]string, workers)
	err = together(ctx, densityClients, workers, func(ctx context.Context, i int) (err error) {
		_, hosts[i], err = n.deployVersion(ctx, "d"+strconv.Itoa(i), map[string]any{"bundle": bundle, "handlers": []string{"fetch"}})
		return err
	})
	if err != nil {
		return err
	}
	r.line("  %d workers deployed in %v by %d clients, each with an image of its own (%.0f MiB on disk)", workers,
		time.Since(began).Round(time.Second), densityClients, mib(diskBytes(filepath.Join(n.dir, "sandbox"))))
	idle, err := n.settledMemory()
	if err != nil {
		return err
	}
	if _, _, err := firstRequests(n.http, hosts[:workers/10]); err != nil {
		return err
	}
	served, err := n.memoryBytes()
	if err != nil {
		return err
	}
	time.Sleep(densityRest)
	warm, err := n.settledMemory()
	if err != nil {
		return err
	}
	if live := n.metric("edged_sandbox_instances"); live < float64(workers/10) {
		r.line("  only %.0f sandboxes stayed warm: what follows is of those", live)
	}
	anon, file, err := n.residentParts()
	if err != nil {
		return err
	}
	r.line("  RSS and memory files: %.0f MiB with all idle, %.0f MiB just after %d have served, %.0f MiB with those warm (%.0f MiB of it private memory, %.0f MiB pages of files)",
		mib(idle), mib(served), workers/10, mib(warm), mib(anon), mib(file))
	paged, hot, err := firstRequests(n.http, hosts[:workers/10])
	if err != nil {
		return err
	}
	r.line("  the next request of each   p50 %.2f ms   p99 %.2f ms, the one after it   p50 %.2f ms   p99 %.2f ms",
		quantile(paged, 0.5), quantile(paged, 0.99), quantile(hot, 0.5), quantile(hot, 0.99))
	r.target(fmt.Sprintf("%d workers, %d warm", workers, workers/10), mib(warm)/1024, densityGiB, true, "GiB")
	return nil
}

// together runs f for 0 to n-1, so many at once, until the first error.
func together(ctx context.Context, clients, n int, f func(context.Context, int) error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var next atomic.Int64
	var all sync.WaitGroup
	for range clients {
		all.Go(func() {
			for i := int(next.Add(1)) - 1; i < n && ctx.Err() == nil; i = int(next.Add(1)) - 1 {
				if err := f(ctx, i); err != nil {
					cancel(err)
				}
			}
		})
	}
	all.Wait()
	return context.Cause(ctx)
}

// diskBytes is what the files below dir take on the disk.
func diskBytes(dir string) (total int64) {
	filepath.WalkDir(dir, func(path string, _ os.DirEntry, _ error) error { //nolint:errcheck // files may go meanwhile
		var st syscall.Stat_t
		if syscall.Lstat(path, &st) == nil {
			total += st.Blocks * 512
		}
		return nil
	})
	return total
}
