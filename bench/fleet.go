package main

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"slices"
	"sync"
	"time"

	"edged/control/client"
)

const (
	changes    = 60
	askServing = 2 * time.Millisecond // pause between two requests to a node whether it serves the change
	fleetMakes = 3000                 // Resources for each number of clients
)

// benchFleet measures the control plane of a fleet of real nodes: durable changes a second, and how soon all serve one. What 200 followers cost the
// one that feeds them is simulated in one process.
func benchFleet(ctx context.Context, cfg config, r *report) error {
	r.line("  durable creates by way of the leader's Host API, %d each", fleetMakes)
	for _, voters := range []int{1, 3} {
		err := withFleet(ctx, cfg, voters, 0, func(f *nodeFleet) error { return f.writes(ctx, r) })
		if err != nil {
			return fmt.Errorf("%d voters: %w", voters, err)
		}
	}
	for _, voters := range []int{1, 3} {
		err := withFleet(ctx, cfg, voters, 10-voters, func(f *nodeFleet) error { return f.propagates(ctx, r) })
		if err != nil {
			return fmt.Errorf("propagation: %w", err)
		}
	}
	all, err := room(ctx, "./control/feed", func(binary string, all results) error {
		if err := all.run(ctx, binary, 1, "^BenchmarkPropagation$", "2s"); err != nil {
			return err
		}
		if err := all.run(ctx, binary, 1, "^BenchmarkReconnectStorm$", "3x"); err != nil {
			return err
		}
		return all.run(ctx, binary, 1, "^BenchmarkBeat200$", "10x")
	})
	if err != nil {
		return err
	}
	r.line("  in one process, plan of 1,000 workers, from the publishing until a follower has it: 10 that keep it p50 %.1f ms, p99 %.1f ms; 200 that read it p50 %.1f ms, p99 %.1f ms",
		all.of("Propagation/followers=10", "p50-ms"), all.of("Propagation/followers=10", "p99-ms"), all.of("Propagation/readers=200", "p50-ms"), all.of("Propagation/readers=200", "p99-ms"))
	r.line("  200 followers come at once, plan of 5,000 workers, until the last is up to date: %.2f s one change behind, %.2f s with nothing",
		all.of("ReconnectStorm/behind", "ns/op")/1e9, all.of("ReconnectStorm/empty", "ns/op")/1e9)
	r.line("  saying every second to 200 followers that there is nothing new: %.2f %% of a core, %.0f µs for each", all.of("Beat200", "%core"), all.of("Beat200", "µs/beat"))
	return nil
}

// writes measures creates, each of which one entry of the control log makes durable on most voters.
func (f *nodeFleet) writes(ctx context.Context, r *report) error {
	for _, clients := range []int{1, controlClients, 4 * controlClients} {
		count := fleetMakes
		if clients == 1 {
			count /= 10
		}
		began := time.Now()
		err := together(ctx, clients, count, func(ctx context.Context, i int) error {
			_, err := f.nodes[0].create(ctx, "ModuleWorker/0.3.0/", fmt.Sprintf("w%d-%d", clients, i), struct{}{})
			return err
		})
		if err != nil {
			return err
		}
		r.line("  %d voters, %2d clients %29s %8.0f /s", f.voters, clients, "", float64(count)/time.Since(began).Seconds())
	}
	return nil
}

// propagates changes which of two versions a worker's requests go to, and asks all nodes until they answer with the other.
func (f *nodeFleet) propagates(ctx context.Context, r *report) error {
	first := f.nodes[0]
	worker, err := first.create(ctx, "ModuleWorker/0.3.0/", "says", struct{}{})
	if err != nil {
		return err
	}
	words := [2]string{"even", "odd"}
	var versions [2]ref
	for i, word := range words {
		bundle, err := first.bundle(ctx, word, `export default { async fetch() { return new Response("`+word+`") } }`)
		if err != nil {
			return err
		}
		if versions[i], err = first.create(ctx, "WorkerVersion/0.7.0/", word, map[string]any{"worker": worker, "bundle": bundle, "handlers": []string{"fetch"}}); err != nil {
			return err
		}
	}
	deployed, err := first.create(ctx, "WorkerDeployment/0.6.0/", "deployment", weighing(worker, versions[0]))
	if err != nil {
		return err
	}
	if _, err := first.create(ctx, "WorkerEndpoint/0.3.0/", "endpoint", map[string]any{"worker": worker}); err != nil {
		return err
	}
	host, err := first.hostOf(ctx, "endpoint")
	if err != nil {
		return err
	}
	if err := f.everywhere(ctx, host, "/"); err != nil {
		return err
	}
	var accepted, each, last []float64
	for i := range changes {
		want := (i + 1) % 2
		began := time.Now()
		came, err := f.serving(ctx, host, words[want], func() error {
			op, err := first.client.Update(ctx, deployed.UID, int64(i+1), weighing(worker, versions[want]), nil, client.NewKey())
			if err == nil {
				_, err = first.client.Wait(ctx, op)
			}
			accepted = append(accepted, milliseconds(time.Since(began)))
			return err
		})
		if err != nil {
			return err
		}
		slowest := 0.0
		for _, at := range came {
			ms := milliseconds(at.Sub(began))
			each, slowest = append(each, ms), max(slowest, ms)
		}
		last = append(last, slowest)
	}
	r.line("  a change of weights, %d voters and %d edges, %d times, from the request to the leader's Host API, asked every %v", f.voters, len(f.nodes)-f.voters, changes, askServing)
	for _, m := range []struct {
		what   string
		values []float64
	}{{"acknowledged", accepted}, {"a node serves it", each}, {"all 10 nodes serve it", last}} {
		r.line("    %-42s %8.1f ms p50, %.1f ms p99", m.what, quantile(m.values, 0.5), quantile(m.values, 0.99))
	}
	return nil
}

// serving makes a change and returns when each node answered with the word for the first time.
func (f *nodeFleet) serving(ctx context.Context, host, word string, change func() error) ([]time.Time, error) {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	came := make([]time.Time, len(f.nodes))
	var asks sync.WaitGroup
	errs := make([]error, len(f.nodes))
	for i, n := range f.nodes {
		asks.Go(func() { came[i], errs[i] = n.saysBy(ctx, host, word) }) // ends with ctx
	}
	err := change()
	if err != nil {
		cancel()
	}
	asks.Wait()
	if i := slices.IndexFunc(errs, func(err error) bool { return err != nil }); err == nil && i >= 0 {
		err = fmt.Errorf("node %d: %w", i, errs[i])
	}
	return came, err
}

// saysBy asks until the answer is the word, and returns the instant.
func (n *nodeProcess) saysBy(ctx context.Context, host, word string) (time.Time, error) {
	c, err := net.Dial("tcp", n.http)
	if err != nil {
		return time.Time{}, err
	}
	defer c.Close()
	buf, pause := make([]byte, 4096), time.NewTimer(0)
	defer pause.Stop()
	for {
		select {
		case <-ctx.Done():
			return time.Time{}, ctx.Err()
		case <-pause.C:
		}
		k, err := request(c, host, "/", buf)
		if err != nil {
			return time.Time{}, err
		}
		if bytes.HasSuffix(buf[:k], []byte("\n"+word)) {
			return time.Now(), nil
		}
		pause.Reset(askServing)
	}
}
