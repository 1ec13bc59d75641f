package kv

import (
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"edged/kv/replica"
)

// Applying a peer's feed: units of 512 records of 256 B, to keys that are new and to keys that are there. Target: 100,000
// records a second.
func BenchmarkApply(b *testing.B) {
	for _, keys := range []uint64{1 << 40, 50_000} {
		name := "keys=new"
		if keys == 50_000 {
			name = "keys=old"
		}
		b.Run(name, func(b *testing.B) {
			n := benchStore(b, filepath.Join(b.TempDir(), "kv"))
			value := make([]byte, 256)
			var seq, pos uint64
			for b.Loop() {
				u := replica.Unit{Peer: 7}
				for range 512 {
					seq++
					rec := valueRecord(value)
					rec.Version = replica.Version{HLC: replica.At(1_700_000_000_000) + replica.HLC(seq), Origin: 7, Seq: seq}
					u.Changes = append(u.Changes, replica.Change{UID: "bench", Key: benchKey(seq % keys), Record: rec})
				}
				pos += 512
				u.Pos = pos
				if err := n.s.commits.do(0, func(t *tx) error { _, err := t.apply(u, 0); return err }); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(seq)/b.Elapsed().Seconds(), "rec/s")
		})
	}
}

// Convergence on loopback with mutual TLS: 2,000 durable puts a second over all stores, and for a sample of them the time from
// the acknowledgement until all other stores have it. Aim: p99 under 150 ms.
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
	begin := time.Now()
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
}
