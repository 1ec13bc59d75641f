package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"time"
)

// soakSource costs about five milliseconds of CPU, so that what offers ten times more than fits costs little beside it.
const soakSource = `export default { fetch() {
	let sum = 0;
	for (let i = 0; i < 75000; i++) sum = (sum * 31 + i) | 0;
	return new Response("sum " + sum);
} }`

const (
	soakFactor      = 10
	soakConnections = 1024
	soakPeak        = 10 * time.Second // the closed loop that finds the capacity
	soakClients     = 32               // of it
	soakCalm        = 5 * time.Second  // before the overload, at half of the capacity
	soakWindow      = time.Second      // afterwards, until it is calm again
	soakPatience    = 30 * time.Second
)

// benchSoak offers a node ten times of what it can serve, and watches what it serves, how fast, and what else still answers.
func benchSoak(ctx context.Context, cfg config, r *report) error {
	return withNode(ctx, cfg, func(n *nodeProcess) error { return n.soak(ctx, cfg, r) })
}

func (n *nodeProcess) soak(ctx context.Context, cfg config, r *report) error {
	host, err := n.deployWorker(ctx, "soak", soakSource)
	if err != nil {
		return err
	}
	peak, err := n.capacity(ctx, host)
	if err != nil {
		return err
	}
	b, err := newBarrage(n.http, host, soakConnections)
	if err != nil {
		return err
	}
	defer b.close()
	calm, _ := b.measure(ctx, peak/2, soakCalm)
	if len(calm) == 0 {
		return errors.New("nothing was served at half of the capacity")
	}
	before := quantile(calm, 0.99)
	r.line("  capacity %.0f req/s (closed loop, %d connections, %v); at half of it p50 %.1f ms, p99 %.1f ms", peak, soakClients, soakPeak, quantile(calm, 0.5), before)

	probes, stop := n.probe(ctx)
	b.refused.Store(0)
	b.failed.Store(0)
	b.unsent = 0
	began := time.Now()
	b.send(ctx, soakFactor*peak, cfg.soak)
	ended := time.Now()
	b.settle(soakPatience)
	served := b.take(began)
	stop()
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if len(served) == 0 {
		return errors.New("nothing was served under overload")
	}
	goodput := float64(len(served)) / ended.Sub(began).Seconds()
	times := millisecondsOf(served)
	offered := soakFactor * peak * cfg.soak.Seconds()
	r.line("  %.0f req/s offered for %v on %d connections: %d served (%.0f req/s), %d refused, %d failed, %.1f %% not sent because no connection was free",
		soakFactor*peak, cfg.soak, soakConnections, len(served), goodput, b.refused.Load(), b.failed.Load(), 100*float64(b.unsent)/offered)
	r.line("  served: p50 %.0f ms, p90 %.0f ms, p99 %.0f ms, longest %.0f ms; least in 5 s %.0f req/s", quantile(times, 0.5), quantile(times, 0.9), quantile(times, 0.99),
		quantile(times, 1), leastRate(served, began, ended))
	recovered, err := b.recovery(ctx, peak/2, 2*before, ended)
	if err != nil {
		return err
	}
	time.Sleep(2 * time.Second) // what was freed goes back to the kernel with a delay
	end, err := n.memoryBytes()
	if err != nil {
		return err
	}
	probes.print(r, end)
	r.target("goodput / capacity", goodput/peak, 0.8, false, "")
	r.target("p99 of served requests", quantile(times, 0.99), 1000, true, "ms")
	r.target("failed requests", float64(b.failed.Load()), 0, true, "")
	r.target("p99 of /healthz", quantile(probes.health, 0.99), 100, true, "ms")
	r.target("p99 of a control read", quantile(probes.control, 0.99), 200, true, "ms")
	r.target("largest memory / before", float64(probes.most)/float64(probes.begin), 3, true, "")
	r.target("p99 back within twice that of before", recovered.Seconds(), 5, true, "s")
	return nil
}

// capacity is what a closed loop gets out of the worker.
func (n *nodeProcess) capacity(ctx context.Context, host string) (perSecond float64, err error) {
	b, err := newBarrage(n.http, host, soakClients)
	if err != nil {
		return 0, err
	}
	defer b.close()
	b.saturate(ctx, time.Second) // warms up
	began := time.Now()
	b.saturate(ctx, soakPeak)
	took := time.Since(began)
	served := len(b.take(began))
	b.settle(soakPatience)
	if failed := b.failed.Load() + b.refused.Load(); served == 0 || failed > 0 {
		return 0, fmt.Errorf("%d served and %d not: there is no capacity to measure", served, failed)
	}
	return float64(served) / took.Seconds(), nil
}

// measure offers a rate for a while and returns the times of what was served, in milliseconds, and when it began.
func (b *barrage) measure(ctx context.Context, perSecond float64, window time.Duration) (times []float64, began time.Time) {
	began = time.Now()
	b.send(ctx, perSecond, window)
	b.settle(soakPatience)
	return millisecondsOf(b.take(began)), began
}

// recovery offers a rate that fits until its p99 is good again, and returns how long after the end that was.
func (b *barrage) recovery(ctx context.Context, perSecond, good float64, ended time.Time) (time.Duration, error) {
	for time.Since(ended) < soakPatience && ctx.Err() == nil {
		if times, began := b.measure(ctx, perSecond, soakWindow); len(times) > 0 && quantile(times, 0.99) <= good {
			return began.Sub(ended), nil
		}
	}
	return 0, fmt.Errorf("p99 is not back within %v of the overload's end", soakPatience)
}

// leastRate is the lowest rate of served requests in five seconds.
func leastRate(served []answer, began, ended time.Time) float64 {
	const window = 5 * time.Second
	counts := make([]int, max(1, int(ended.Sub(began)/window)))
	for _, a := range served {
		if i := int(a.due.Add(a.took).Sub(began) / window); i < len(counts) {
			counts[i]++
		}
	}
	least := counts[0]
	for _, c := range counts {
		least = min(least, c)
	}
	return float64(least) / window.Seconds()
}

// probes is what was seen of the node's other listeners and of its memory under load.
type probes struct {
	mu              sync.Mutex
	health, control []float64 // milliseconds
	failed          int
	begin, most     int64 // bytes
}

// probe asks for health, a Resource and the memory until stop.
func (n *nodeProcess) probe(ctx context.Context) (p *probes, stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	p = &probes{}
	var all sync.WaitGroup
	every := func(d time.Duration, do func() error, times *[]float64) {
		all.Go(func() {
			tick := time.NewTicker(d)
			defer tick.Stop()
			for {
				began := time.Now()
				err := do()
				p.mu.Lock()
				if *times = append(*times, milliseconds(time.Since(began))); err != nil && ctx.Err() == nil {
					p.failed++
				}
				p.mu.Unlock()
				select {
				case <-tick.C:
				case <-ctx.Done():
					return
				}
			}
		})
	}
	every(50*time.Millisecond, func() error {
		res, err := http.Get("http://" + n.admin + "/healthz")
		if err != nil {
			return err
		}
		defer res.Body.Close()
		if res.StatusCode != http.StatusOK {
			return errors.New(res.Status)
		}
		return nil
	}, &p.health)
	every(100*time.Millisecond, func() error { _, err := n.hostOf(ctx, "soak.endpoint"); return err }, &p.control)
	var memory []float64
	p.begin, _ = n.memoryBytes()
	every(500*time.Millisecond, func() error {
		m, err := n.memoryBytes()
		p.most = max(p.most, m)
		return err
	}, &memory)
	return p, func() { cancel(); all.Wait() }
}

func (p *probes) print(r *report, end int64) {
	r.line("  meanwhile: /healthz p50 %.1f ms, p99 %.1f ms; a control read p50 %.1f ms, p99 %.1f ms; %d probes failed; memory %.0f MiB before, %.0f most, %.0f after",
		quantile(p.health, 0.5), quantile(p.health, 0.99), quantile(p.control, 0.5), quantile(p.control, 0.99), p.failed, mib(p.begin), mib(p.most), mib(end))
}
