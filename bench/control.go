package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"sync/atomic"
	"time"

	"edged/control/client"
)

const (
	controlClients = 16
	fewResources   = 400 // what the cost of one change is compared with
	calm           = 15 * time.Second
)

// benchControl fills a node with Resources, a quarter of them workers that a host name leads to, and measures durable creates,
// one change, a page of a list and a restart, each among few and among many.
func benchControl(ctx context.Context, cfg config, r *report) error {
	dir, err := os.MkdirTemp("", "edged-bench-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	var host, addr string
	err = withNodeIn(ctx, cfg, dir, func(n *nodeProcess) error {
		addr = n.http
		host, err = (&filler{n: n}).tell(ctx, cfg, r)
		return err
	})
	if err != nil {
		return err
	}
	served, began := make(chan time.Duration, 1), time.Now()
	polling, stop := context.WithTimeout(ctx, time.Minute)
	defer stop()
	go func() { served <- firstAnswer(polling, addr, host, began) }() // ends with its context
	return withNodeIn(ctx, cfg, dir, func(n *nodeProcess) error {
		r.target("restart, exec to the first answer of a worker", (<-served).Seconds(), 3, true, "s")
		r.value("restart, exec to the control room's readiness", once(n.booted.Seconds()), "s")
		return nil
	}, "--http", addr)
}

// tell measures among few and among many, says so, and returns the host of the last worker.
func (f *filler) tell(ctx context.Context, cfg config, r *report) (host string, err error) {
	few, many, err := f.measure(ctx, cfg, r)
	if err != nil {
		return "", err
	}
	r.line("  one change is one of weights, until it is served; a page is 100 of a list")
	r.value(fmt.Sprintf("one change among %d Resources", fewResources), spreadOf(few.change), "ms")
	r.value(fmt.Sprintf("one change among %d Resources", cfg.resources), spreadOf(many.change), "ms")
	r.value("a page at the start", spreadOf(many.firstPages), "ms")
	r.value("a page at the end", spreadOf(many.lastPages), "ms")
	r.reach("one change among many / among few", pairs(many.change, few.change), 2, true, "")
	r.reach("last page / first page", pairs(many.lastPages, many.firstPages), 2, true, "")
	return f.n.hostOf(ctx, fmt.Sprintf("w%07d.endpoint", f.next.Load()))
}

// firstAnswer asks until the host answers and returns how long that took.
func firstAnswer(ctx context.Context, addr, host string, began time.Time) time.Duration {
	buf := make([]byte, 4096)
	for ctx.Err() == nil {
		if c, err := net.Dial("tcp", addr); err == nil {
			_, err = request(c, host, "/", buf)
			c.Close()
			if err == nil {
				return time.Since(began)
			}
		}
		select {
		case <-ctx.Done():
		case <-time.After(5 * time.Millisecond):
		}
	}
	return time.Since(began)
}

// controlTimes are medians of five blocks each, in milliseconds.
type controlTimes struct{ change, firstPages, lastPages []float64 }

// filler makes workers of four Resources each: the identity, a static version, its deployment and its endpoint.
type filler struct {
	n      *nodeProcess
	assets ref
	next   atomic.Int64

	first     ref // a worker with two versions to switch between
	versions  [2]ref
	deployed  ref
	generated int64
}

func (f *filler) measure(ctx context.Context, cfg config, r *report) (few, many controlTimes, err error) {
	if err := f.begin(ctx); err != nil {
		return few, many, err
	}
	if err := f.fill(ctx, fewResources/4); err != nil {
		return few, many, err
	}
	if few, err = f.times(ctx); err != nil {
		return few, many, err
	}
	began := time.Now()
	workers := max(0, cfg.resources-fewResources) / 4
	if err := f.fill(ctx, workers); err != nil {
		return few, many, err
	}
	if workers > 0 {
		r.target(fmt.Sprintf("durable creates, %d clients, up to %d", controlClients, cfg.resources), float64(4*workers)/time.Since(began).Seconds(), 500, false, "1/s")
	}
	select { // the control room writes a snapshot within ten seconds of so many creates: what one change costs beside that is another question
	case <-ctx.Done():
		return few, many, ctx.Err()
	case <-time.After(calm):
	}
	many, err = f.times(ctx)
	return few, many, err
}

func (f *filler) begin(ctx context.Context) (err error) {
	if f.assets, err = f.n.assetBundle(ctx, "shared.assets"); err != nil {
		return err
	}
	if f.first, err = f.n.create(ctx, "ModuleWorker/0.3.0/", "first", struct{}{}); err != nil {
		return err
	}
	for i := range f.versions {
		if f.versions[i], err = f.n.create(ctx, "WorkerVersion/0.7.0/", fmt.Sprint("first.version", i), f.version(f.first)); err != nil {
			return err
		}
	}
	f.deployed, err = f.n.create(ctx, "WorkerDeployment/0.6.0/", "first.deployment", weighing(f.first, f.versions[0]))
	f.generated = 1
	return err
}

func (f *filler) version(worker ref) any {
	return map[string]any{"worker": worker, "handlers": []string{},
		"assets": map[string]any{"bundle": f.assets, "runWorkerFirst": false, "notFoundHandling": "none"}}
}

func weighing(worker, version ref) any {
	return map[string]any{"worker": worker, "versions": []any{map[string]any{"workerVersion": version, "weight": 10000}}}
}

// fill makes so many workers, with as many clients at once as the bench has.
func (f *filler) fill(ctx context.Context, workers int) error {
	return together(ctx, controlClients, workers, func(ctx context.Context, _ int) error { return f.worker(ctx) })
}

func (f *filler) worker(ctx context.Context) error {
	name := fmt.Sprintf("w%07d", f.next.Add(1))
	worker, err := f.n.create(ctx, "ModuleWorker/0.3.0/", name, struct{}{})
	if err != nil {
		return err
	}
	version, err := f.n.create(ctx, "WorkerVersion/0.7.0/", name+".version", f.version(worker))
	if err != nil {
		return err
	}
	if _, err = f.n.create(ctx, "WorkerDeployment/0.6.0/", name+".deployment", weighing(worker, version)); err != nil {
		return err
	}
	_, err = f.n.create(ctx, "WorkerEndpoint/0.3.0/", name+".endpoint", map[string]any{"worker": worker})
	return err
}

// times measures what must not depend on how many Resources there are.
func (f *filler) times(ctx context.Context) (t controlTimes, err error) {
	var change []float64
	for i := range 31 {
		began := time.Now()
		op, err := f.n.client.Update(ctx, f.deployed.UID, f.generated, weighing(f.first, f.versions[(i+1)%2]), nil, client.NewKey())
		if err == nil {
			_, err = f.n.client.Wait(ctx, op)
		}
		if err != nil {
			return t, err
		}
		f.generated++
		change = append(change, milliseconds(time.Since(began)))
	}
	t.change = blocks(change, 5)
	t.firstPages, t.lastPages, err = f.pages(ctx)
	return t, err
}

// pages walks the whole list and returns the medians of the pages at its start and at its end.
func (f *filler) pages(ctx context.Context) (first, last []float64, err error) {
	var took []float64
	began, inPage := time.Now(), 0
	for res, err := range f.n.client.List(ctx, client.Filter{}) {
		if err != nil {
			return nil, nil, err
		}
		if res == nil {
			break
		}
		if inPage == 0 {
			took = append(took, milliseconds(time.Since(began)))
		}
		if inPage++; inPage == 100 {
			began, inPage = time.Now(), 0
		}
	}
	k := min(len(took), 31)
	return blocks(took[:k], 5), blocks(took[max(0, len(took)-k-1):max(0, len(took)-1)], 5), nil
}

func milliseconds(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

// assetBundle uploads one small page and returns the StaticAssetBundle of it.
func (n *nodeProcess) assetBundle(ctx context.Context, name string) (ref, error) {
	page, _, err := n.client.Upload(ctx, []byte("<p>hello</p>"))
	if err != nil {
		return ref{}, err
	}
	manifest, err := json.Marshal(map[string]any{"files": []any{map[string]string{
		"path": "index.html", "url": page.URL, "sha256": page.SHA256, "mediaType": "text/html"}}})
	if err != nil {
		return ref{}, err
	}
	artifact, _, err := n.client.Upload(ctx, manifest)
	if err != nil {
		return ref{}, err
	}
	return n.create(ctx, "StaticAssetBundle/0.2.0/", name, map[string]any{"artifact": artifact})
}
