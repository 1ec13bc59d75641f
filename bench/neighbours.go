package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"sync/atomic"
	"time"
)

const (
	hostileClients  = 16
	goodConnections = 32
	goodShare       = 0.3 // of its capacity
	neighbourRounds = 3
	neighbourWindow = 3 * time.Second
	patience        = 2 * time.Second // a request that waited so long is counted as not answered
)

// goodSource costs about a millisecond of CPU, so that what asks for it costs little beside it.
const goodSource = `export default { fetch() {
	let sum = 0;
	for (let i = 0; i < 15000; i++) sum = (sum * 31 + i) | 0;
	return new Response("sum " + sum);
} }`

// hostileSource is a tenant that means harm, one way per path.
const hostileSource = `export default { async fetch(request) {
	switch (new URL(request.url).pathname) {
	case "/loop": for (;;) {}
	case "/memory": { const held = []; for (;;) held.push(new Uint8Array(1 << 20).fill(1)); }
	}
	return new Response("harmless");
} }`

// benchNeighbours measures the latency of a good tenant at 30 % of its capacity, alone and while another one does its worst,
// with the limits a node has by default. Requests start on a schedule whatever the answers take, and count from then.
func benchNeighbours(ctx context.Context, cfg config, r *report) error {
	return withNode(ctx, cfg, func(n *nodeProcess) error { return n.measureNeighbours(ctx, r) })
}

func (n *nodeProcess) measureNeighbours(ctx context.Context, r *report) error {
	good, err := n.deployWorker(ctx, "good", goodSource)
	if err != nil {
		return err
	}
	hostile, err := n.deployWorker(ctx, "hostile", hostileSource)
	if err != nil {
		return err
	}
	capacity := n.contender("good", good, "/")
	for range 2 { // the first one warms up
		if err := capacity.load(ctx, 2*time.Second, goodConnections); err != nil {
			return err
		}
	}
	perSecond := goodShare * capacity.rate[1]
	r.line("  a good tenant at %.0f req/s, %.0f %% of its capacity, beside %d clients of a hostile one, default limits; medians of %d alternating windows of %v",
		perSecond, 100*goodShare, hostileClients, neighbourRounds, neighbourWindow)
	cases := []*neighbour{{name: "alone"}, {name: "endless loops", path: "/loop"}, {name: "memory floods", path: "/memory"}}
	for range neighbourRounds {
		for _, c := range cases {
			if err := n.besideHarm(ctx, good, hostile, c, perSecond); err != nil {
				return fmt.Errorf("%s: %w", c.name, err)
			}
		}
	}
	for _, c := range cases {
		tail := spreadOf(c.p99)
		r.line("  %-26s p50 %8.2f ms   p99 %8.2f ms (%.2f-%.2f)   %d of %d requests not answered within %v", c.name, spreadOf(c.p50).median, tail.median, tail.low, tail.high,
			c.failed, c.asked, patience)
		r.percentiles("a good tenant, "+c.name, c.p50, c.p99)
	}
	if alone := cases[0]; 100*alone.failed > alone.asked {
		return fmt.Errorf("%d of %d requests of the good tenant alone were not answered: nothing was measured", alone.failed, alone.asked)
	}
	for _, c := range cases[1:] {
		if 100*c.failed > c.asked {
			return fmt.Errorf("%d of %d requests of the good tenant were not answered beside %s", c.failed, c.asked, c.name)
		}
		r.reach("p99 beside "+c.name+" / alone", pairs(c.p99, cases[0].p99), 2, true, "")
	}
	return nil
}

// neighbour is what a good tenant saw while another one did this.
type neighbour struct {
	name, path    string // path "" is nobody
	p50, p99      []float64
	asked, failed int
}

// besideHarm paces the good tenant for a window while the hostile one works.
func (n *nodeProcess) besideHarm(ctx context.Context, good, hostile string, c *neighbour, perSecond float64) error {
	harm, stop := context.WithCancel(ctx)
	defer stop()
	var clients sync.WaitGroup
	if c.path != "" {
		for range hostileClients {
			clients.Go(func() { n.harm(harm, hostile, c.path) })
		}
		time.Sleep(500 * time.Millisecond) // the hostile one has what it can get by then
	}
	took, failed := paced(ctx, n.http, good, perSecond, neighbourWindow)
	stop()
	clients.Wait()
	c.p50, c.p99 = append(c.p50, quantile(took, 0.5)), append(c.p99, quantile(took, 0.99))
	c.asked, c.failed = c.asked+len(took), c.failed+failed
	for end := time.Now().Add(2 * time.Minute); n.metric("edged_sandbox_running")+n.metric("edged_sandbox_waiting") > 0; {
		if time.Now().After(end) {
			return errors.New("guests of the hostile tenant still run after it has left")
		}
		time.Sleep(100 * time.Millisecond) // the next window begins calm
	}
	return ctx.Err()
}

// harm sends one hostile request after another until ctx ends. What they answer does not matter.
func (n *nodeProcess) harm(ctx context.Context, host, path string) {
	for ctx.Err() == nil {
		c, err := net.Dial("tcp", n.http)
		if err != nil {
			return
		}
		stop := context.AfterFunc(ctx, func() { c.Close() })
		buf := make([]byte, 4096)
		if _, err := fmt.Fprintf(c, "GET %s HTTP/1.1\r\nHost: %s\r\nConnection: close\r\n\r\n", path, host); err == nil {
			for err == nil {
				_, err = c.Read(buf)
			}
		}
		stop()
		c.Close()
	}
}

// paced asks host at a fixed rate over some connections and returns the milliseconds from when each request was due to its answer,
// and how many got none in time; those count with the time that was waited for them.
func paced(ctx context.Context, addr, host string, perSecond float64, window time.Duration) (took []float64, failed int) {
	took = make([]float64, int(perSecond*window.Seconds()))
	began := time.Now()
	var next, bad atomic.Int64
	var clients sync.WaitGroup
	for range goodConnections {
		clients.Go(func() {
			var c net.Conn
			buf := make([]byte, 4096)
			for i := int(next.Add(1)) - 1; i < len(took); i = int(next.Add(1)) - 1 {
				due := began.Add(time.Duration(float64(i) / perSecond * float64(time.Second)))
				time.Sleep(time.Until(due))
				if c = ask(ctx, c, addr, host, due.Add(patience), buf); c == nil {
					bad.Add(1)
				}
				took[i] = milliseconds(time.Since(due))
			}
			if c != nil {
				c.Close()
			}
		})
	}
	clients.Wait()
	return took, int(bad.Load())
}

// ask sends one request on c, or on a new connection if that is nil, and returns the connection if it was answered by the deadline.
func ask(ctx context.Context, c net.Conn, addr, host string, deadline time.Time, buf []byte) net.Conn {
	if time.Now().After(deadline) || ctx.Err() != nil {
		if c != nil {
			c.Close()
		}
		return nil
	}
	if c == nil {
		var err error
		if c, err = net.DialTimeout("tcp", addr, patience); err != nil {
			return nil
		}
	}
	c.SetDeadline(deadline)
	if _, err := request(c, host, "/", buf); err != nil {
		c.Close()
		return nil
	}
	return c
}
