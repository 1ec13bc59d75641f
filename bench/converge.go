package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

const (
	putsPerSecond = 2000
	putsAtOnce    = 5  // in one request to a worker
	putSample     = 10 // one request in so many is followed to all nodes: 40 a second
	putClients    = 16 // connections for each node
	warmed        = 3 * time.Second
	measured      = 10 * time.Second
)

// convergeSource makes some puts at once: what JavaScript and HTTP cost is not what is measured, and two cores have to do for all nodes.
var convergeSource = fmt.Sprintf(`export default { async fetch(request, env) {
	const key = () => "key-" + Math.floor(Math.random() * 20000).toString().padStart(32, "0");
	await Promise.all(Array.from({ length: %d }, () => env.CACHE.put(key(), "0123456789abcdef".repeat(16))));
	return new Response("put");
} }`, putsAtOnce)

// benchConverge measures fleets of real nodes that all take puts and all read each other's: the time until all have one.
func benchConverge(ctx context.Context, cfg config, r *report) error {
	r.line("  real nodes on loopback, each a process; %d puts/s of 256 B spread over them by way of a worker, %d a request; from the answer to 1 request", putsPerSecond, putsAtOnce)
	r.line("  in %d until the others have what it put on their disks, as each says by itself, asked every %v (8 nodes: %v)", putSample, 3*lookAt, 8*lookAt)
	sizes := []int{3, 5, 8}
	if cfg.nodes > 0 {
		sizes = []int{max(2, cfg.nodes)}
	}
	for _, nodes := range sizes {
		err := withFleet(ctx, cfg, 1, nodes-1, func(f *nodeFleet) error {
			l, err := newPutLoad(ctx, f)
			if err != nil {
				return err
			}
			ctx, stop := context.WithCancelCause(ctx)
			var looks sync.WaitGroup
			defer looks.Wait()
			defer stop(nil)
			for _, o := range l.seen {
				looks.Go(func() { stop(o.run(ctx)) }) // ends with ctx
			}
			if err := l.converges(ctx, r); err != nil || nodes > 3 {
				return err
			}
			return l.stopped(ctx, r, cfg.away)
		})
		if err != nil {
			return fmt.Errorf("%d nodes: %w", nodes, err)
		}
	}
	return nil
}

// putLoad puts to all nodes of a fleet and sees when the puts have come to all.
type putLoad struct {
	f     *nodeFleet
	host  string
	conns []sync.Pool // of net.Conn, for each node
	seen  []*observer // of each node

	mu   sync.Mutex // guards the fields below
	acks []float64  // milliseconds
	took []float64  // milliseconds from the answer to a put until the last node has it
	each []float64  // the same for every other node
}

func newPutLoad(ctx context.Context, f *nodeFleet) (*putLoad, error) {
	l := &putLoad{f: f, conns: make([]sync.Pool, len(f.nodes))}
	first := f.nodes[0]
	cache, err := first.boundTo(ctx, "EdgeKVNamespace/0.2.0/", "CACHE", struct{}{})
	if err != nil {
		return nil, err
	}
	if l.host, err = first.deployBound(ctx, convergeSource, map[string]any{"kvBindings": []bound{cache}}); err != nil {
		return nil, err
	}
	if err := f.everywhere(ctx, l.host, "/"); err != nil {
		return nil, err
	}
	l.seen, err = f.observe(ctx)
	return l, err
}

// run puts at the rate to the nodes for so long, and returns how many a second it made, once all that are followed have come to all of them.
func (l *putLoad) run(ctx context.Context, nodes []int, lasts time.Duration) (rate float64, err error) {
	const perSecond = putsPerSecond / putsAtOnce
	count := int(lasts.Seconds() * perSecond) // requests
	l.acks, l.took, l.each = nil, nil, nil
	var done atomic.Int64
	var waits sync.WaitGroup
	defer waits.Wait()
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	began, pace := time.Now(), time.Second/perSecond
	var puts sync.WaitGroup
	for at, i := range nodes {
		puts.Go(func() {
			mine := (count - at + len(nodes) - 1) / len(nodes)
			err := together(ctx, putClients, mine, func(ctx context.Context, k int) error {
				n := k*len(nodes) + at
				time.Sleep(time.Until(began.Add(time.Duration(n) * pace)))
				asked := time.Now()
				if err := l.put(i); err != nil {
					return err
				}
				acked := time.Now()
				done.Store(max(done.Load(), int64(acked.Sub(began))))
				if n%putSample == 0 {
					waits.Go(func() {
						if err := l.follow(ctx, i, nodes, milliseconds(acked.Sub(asked)), acked); err != nil && ctx.Err() == nil {
							cancel(err)
						}
					})
				}
				return nil
			})
			if err != nil {
				cancel(err)
			}
		})
	}
	puts.Wait()
	waits.Wait()
	return float64(putsAtOnce*count) / time.Duration(done.Load()).Seconds(), context.Cause(ctx)
}

func (l *putLoad) put(node int) (err error) {
	c, _ := l.conns[node].Get().(net.Conn)
	if c == nil {
		if c, err = net.Dial("tcp", l.f.nodes[node].http); err != nil {
			return err
		}
	}
	if _, err = request(c, l.host, "/", make([]byte, 1024)); err != nil {
		c.Close()
		return err
	}
	l.conns[node].Put(c)
	return nil
}

// follow waits until the nodes have what one of them has by now.
func (l *putLoad) follow(ctx context.Context, from int, nodes []int, ack float64, acked time.Time) error {
	at, err := l.seen[from].vector(ctx)
	if err != nil {
		return err
	}
	origin := l.seen[from].origin
	came, each := make(chan time.Time, len(nodes)), []float64(nil)
	for _, i := range nodes {
		if i != from {
			l.seen[i].await(origin, at[origin], came)
		}
	}
	for range len(nodes) - 1 {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case t := <-came:
			each = append(each, milliseconds(t.Sub(acked)))
		}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.acks, l.each, l.took = append(l.acks, ack), append(l.each, each...), append(l.took, slices.Max(each))
	return nil
}

// level waits until the nodes have all that any of them has by now.
func (l *putLoad) level(ctx context.Context, nodes []int) error {
	for _, from := range nodes {
		if err := l.follow(ctx, from, nodes, 0, time.Now()); err != nil {
			return err
		}
	}
	return nil
}

func (l *putLoad) all() (nodes []int) {
	for i := range l.f.nodes {
		nodes = append(nodes, i)
	}
	return nodes
}

func (l *putLoad) converges(ctx context.Context, r *report) error {
	if _, err := l.run(ctx, l.all(), warmed); err != nil {
		return err
	}
	before, err := l.f.cpu()
	if err != nil {
		return err
	}
	rate, err := l.run(ctx, l.all(), measured)
	if err != nil {
		return err
	}
	after, err := l.f.cpu()
	if err != nil {
		return err
	}
	nodes := len(l.f.nodes)
	r.line("  %d nodes, %4.0f puts/s   all have it: p50 %6.1f ms   p99 %6.1f ms   one other has it: p50 %6.1f ms   p99 %6.1f ms   (the request itself: %.1f, %.1f)   %3.0f us CPU a put",
		nodes, rate, quantile(l.took, 0.5), quantile(l.took, 0.99), quantile(l.each, 0.5), quantile(l.each, 0.99), quantile(l.acks, 0.5), quantile(l.acks, 0.99),
		(after-before).Seconds()*1e6/(putsPerSecond*measured.Seconds()))
	r.target(fmt.Sprintf("%d nodes, puts", nodes), rate, 0.95*putsPerSecond, false, "1/s")
	r.target(fmt.Sprintf("%d nodes, p99 until all have a put", nodes), quantile(l.took, 0.99), 150, true, "ms")
	return nil
}

// cpu is the processor time that all nodes of the fleet have used.
func (f *nodeFleet) cpu() (total time.Duration, err error) {
	const tick = 10 * time.Millisecond // of /proc, on all Linux that Go runs on
	for _, n := range f.nodes {
		b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", n.pid))
		if err != nil {
			return 0, err
		}
		fields := strings.Fields(string(b[strings.LastIndexByte(string(b), ')')+1:]))
		if len(fields) < 13 {
			return 0, errors.New("the kernel does not say what processor time a process used")
		}
		for _, f := range fields[11:13] {
			ticks, err := strconv.Atoi(f)
			if err != nil {
				return 0, err
			}
			total += time.Duration(ticks) * tick
		}
	}
	return total, nil
}
