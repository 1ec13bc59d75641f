//go:build linux

package nettest

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"edged/kv"
)

// Convergence between processes on loopback with mutual TLS: 2,000 durable puts a second over all stores, and for a sample of them the
// time from the acknowledgement until all other processes have it. Aim: p99 under 150 ms. EDGED_BENCH_LARGE=1 measures for ten
// seconds instead of one.
func BenchmarkConvergeProcesses(b *testing.B) {
	for _, n := range []int{3, 5, 8} {
		b.Run(fmt.Sprintf("processes=%d", n), func(b *testing.B) {
			procs := onLoopback(b, n)
			for b.Loop() {
				convergeOnce(b, procs)
			}
		})
	}
}

// onLoopback starts n processes, each on an address of its own, that know each other.
func onLoopback(b *testing.B, n int) (procs []*proc) {
	root := b.TempDir()
	key := filepath.Join(root, "key")
	if err := os.WriteFile(key, []byte(base64.StdEncoding.EncodeToString(bytes.Repeat([]byte{3}, 32))), 0o600); err != nil {
		b.Fatal(err)
	}
	ca, pid := newAuthority(b), os.Getpid()
	for i := range n {
		name, ip := "node"+string(rune('a'+i)), fmt.Sprintf("127.%d.%d.%d", 64+pid>>8&127, pid&255, i+1)
		p := &proc{i: i, setup: setup{Name: name, IP: ip, Dir: filepath.Join(root, name), KeyFile: key, ID: ca.issue(b, name, ip), Loopback: true}}
		b.Cleanup(p.kill)
		p.start(b, func(int) error { return nil })
		procs = append(procs, p)
	}
	members := membersOf(procs)
	for _, p := range procs {
		p.do(b, order{Op: "members", Members: members})
	}
	for i, p := range procs { // all sessions are up before anything is measured
		p.put(b, "warm", 10, 100, byte(i))
	}
	for _, p := range procs {
		at := p.do(b, order{Op: "state"})
		for _, q := range procs {
			q.do(b, order{Op: "wait", Origin: p.epoch, Seq: at.Seq, Within: time.Minute})
		}
		p.do(b, order{Op: "follow", Members: members})
	}
	return procs
}

func membersOf(procs []*proc) (all []kv.Member) {
	for _, p := range procs {
		all = append(all, p.member())
	}
	return all
}

func convergeOnce(b *testing.B, procs []*proc) {
	const perSecond = 2000
	window := time.Second
	if os.Getenv("EDGED_BENCH_LARGE") != "" {
		window = 10 * time.Second
	}
	acked := make([][]moment, len(procs))
	var loads sync.WaitGroup
	began := time.Now()
	for i, p := range procs {
		loads.Go(func() {
			a, err := p.try(b, order{Op: "load", Rate: perSecond / len(procs), Within: window})
			if err != nil {
				b.Error(err)
			}
			acked[i] = a.Acked
		})
	}
	loads.Wait()
	rate := float64(perSecond/len(procs)*len(procs)) * window.Seconds() / time.Since(began).Seconds()
	for _, p := range procs { // what was put has reached all
		at := p.do(b, order{Op: "state"})
		for _, q := range procs {
			q.do(b, order{Op: "wait", Origin: p.epoch, Seq: at.Seq, Within: time.Minute})
		}
	}
	last := map[string][]int64{} // of a put, by where and when it was acknowledged
	for _, p := range procs {
		for _, a := range p.do(b, order{Op: "arrivals"}).Arrivals {
			for i, q := range procs {
				if q.epoch != a.Origin {
					continue
				}
				for _, m := range acked[i] {
					if at := int(m.Seq - a.First); at < len(a.At) {
						id := fmt.Sprint(i, " ", m.Seq, " ", m.At)
						last[id] = append(last[id], a.At[at]-m.At)
					}
				}
			}
		}
		p.do(b, order{Op: "follow", Members: membersOf(procs)})
	}
	var took []time.Duration
	for _, each := range last {
		if len(each) == len(procs)-1 {
			took = append(took, max(0, time.Duration(slices.Max(each))))
		}
	}
	slices.Sort(took)
	if len(took) == 0 {
		b.Fatal("nothing was followed")
	}
	b.ReportMetric(took[len(took)/2].Seconds()*1000, "p50-ms")
	b.ReportMetric(took[len(took)*99/100].Seconds()*1000, "p99-ms")
	b.ReportMetric(rate, "puts/s")
}
