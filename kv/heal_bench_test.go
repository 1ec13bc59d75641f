package kv

import (
	"fmt"
	"net/http"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// Catching up after a partition: of three stores one is cut off while 120,000 durable puts of 256 B are made, a third at each store:
// what 2,000 a second make in 60 s. Here they are made as fast as they go. heal-ms is the time from the end of the cut until all
// three are level, with the pause between tries, which grows to 5 s in a long cut; catchup-ms is the part after the first session.
func BenchmarkHeal(b *testing.B) {
	const puts = 120_000
	c := &cutOff{}
	fl := newFleet(b, 3, func(i int, f *fleetNode) {
		f.opt.FS, f.opt.Dir, f.opt.MemSize = nil, filepath.Join(b.TempDir(), f.name), 8<<20
		f.wrap = func(h http.Handler) http.Handler { return c.guard(i == 2, h) }
	})
	away := fl.nodes[2].Epoch().String()
	c.away.Store(&away)
	fl.equalSoon(b)
	var heal, catchUp time.Duration
	for b.Loop() {
		c.set(fl, true)
		for _, f := range fl.nodes {
			putMany(b, f.kv(), puts/len(fl.nodes))
		}
		fl.levelled(b, fl.nodes[:2])
		c.first.Store(0)
		begin := time.Now()
		c.set(fl, false)
		fl.levelled(b, fl.nodes)
		heal += time.Since(begin)
		catchUp += time.Since(time.UnixMicro(c.first.Load()))
	}
	b.ReportMetric(float64(heal.Milliseconds())/float64(b.N), "heal-ms")
	b.ReportMetric(float64(catchUp.Milliseconds())/float64(b.N), "catchup-ms")
}

// cutOff keeps one store away from the others.
type cutOff struct {
	on    atomic.Bool
	away  atomic.Pointer[string] // its epoch
	first atomic.Int64           // Unix microseconds of the first request that passed again
}

func (c *cutOff) guard(isAway bool, h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if away := c.away.Load(); away != nil && (isAway || r.Header.Get(headerFrom) == *away) {
			if c.on.Load() {
				panic(http.ErrAbortHandler)
			}
			c.first.CompareAndSwap(0, time.Now().UnixMicro())
		}
		h.ServeHTTP(w, r)
	})
}

func (c *cutOff) set(fl *fleet, on bool) {
	c.on.Store(on)
	if on {
		for _, f := range fl.nodes {
			f.server.CloseClientConnections()
		}
	}
}

// putMany makes durable puts from 64 clients.
func putMany(b *testing.B, n *Namespace, puts int) {
	b.Helper()
	const clients = 64
	value := make([]byte, 256)
	var next atomic.Int64
	var all sync.WaitGroup
	for range clients {
		all.Go(func() {
			for i := next.Add(1); i <= int64(puts); i = next.Add(1) {
				if err := n.Put(b.Context(), fmt.Sprintf("%p-%d", n.s, i), value, PutOptions{}); err != nil {
					b.Error(err)
					return
				}
			}
		})
	}
	all.Wait()
}

// levelled waits until each of the nodes has all that the others wrote.
func (fl *fleet) levelled(b *testing.B, nodes []*fleetNode) {
	b.Helper()
	for _, from := range nodes {
		origin, seq := from.Position()
		for _, f := range nodes {
			if err := f.Wait(b.Context(), origin, seq); err != nil {
				b.Fatal(err)
			}
		}
	}
}
