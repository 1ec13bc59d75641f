package kv

import (
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"
)

// Convergence on loopback with mutual TLS: 2,000 durable puts a second over all stores, and for a sample of them the time from
// the acknowledgement until all other stores have it. Aim: p99 under 150 ms.
// All stores share this process and this machine; cpu-us/put is what all of them together used.
func BenchmarkConverge(b *testing.B) {
	for _, stores := range []int{3, 5, 8} {
		b.Run(fmt.Sprintf("stores=%d", stores), func(b *testing.B) { converge(b, stores) })
	}
}

func converge(b *testing.B, stores int) {
	const perSecond, sampled = 2000, 20
	fl := newFleet(b, stores, func(i int, f *fleetNode) {
		f.opt.FS, f.opt.Dir, f.opt.MemSize = nil, filepath.Join(b.TempDir(), f.name), 4<<20
	})
	var mu sync.Mutex
	var took []time.Duration
	var puts, waits sync.WaitGroup
	value := make([]byte, 256)
	for i, f := range fl.nodes { // sessions are up before anything is measured
		mustPut(b, f.kv(), fmt.Sprint("warm", i), "", PutOptions{})
	}
	fl.equalSoon(b)
	begin, cpu := time.Now(), cpuTime(b)
	n := 0
	for b.Loop() {
		if early := time.Until(begin.Add(time.Duration(n) * time.Second / perSecond)); early > 0 {
			<-time.After(early)
		}
		n++
		f, i := fl.nodes[n%stores], n
		puts.Go(func() {
			if err := f.kv().Put(b.Context(), benchKey(rand.Uint64N(20_000)), value, PutOptions{}); err != nil {
				b.Error(err)
				return
			}
			if i%sampled != 0 {
				return
			}
			acked := time.Now()
			origin, seq := f.Position()
			waits.Go(func() {
				for _, g := range fl.nodes {
					if err := g.Wait(b.Context(), origin, seq); err != nil {
						return
					}
				}
				mu.Lock()
				took = append(took, time.Since(acked))
				mu.Unlock()
			})
		})
	}
	puts.Wait()
	rate := float64(n) / time.Since(begin).Seconds()
	waits.Wait()
	slices.Sort(took)
	if len(took) > 0 {
		b.ReportMetric(took[len(took)/2].Seconds()*1000, "p50-ms")
		b.ReportMetric(took[len(took)*99/100].Seconds()*1000, "p99-ms")
	}
	b.ReportMetric(rate, "puts/s")
	b.ReportMetric(float64((cpuTime(b)-cpu).Microseconds())/float64(n), "cpu-us/put")
}
