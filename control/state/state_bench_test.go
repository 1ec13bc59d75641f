package state

import (
	"fmt"
	"runtime"
	"testing"
	"time"

	"edged/control/form"
)

// One re-weighting of a worker with many custom domains: the pass over what it can affect must stay linear in them.
func BenchmarkReweight(b *testing.B) {
	for _, domains := range []int{1, 100, 1000} {
		b.Run(fmt.Sprintf("domains=%d", domains), func(b *testing.B) {
			l := newLab(b)
			w := l.worker("w")
			v1, v2 := l.version(w, "v1", "fetch"), l.version(w, "v2", "fetch")
			l.deploy(w, "d", v1, 10000)
			for i := range domains {
				l.ok(l.create(form.CustomDomainURL, fmt.Sprint("dom", i), domain(w, fmt.Sprintf("d%d.test", i))))
			}
			b.ReportAllocs()
			i := 1
			for b.Loop() {
				i++
				l.ok(l.update("d", weights(w, v1, 1+i%9999, v2, 9999-i%9999)))
			}
		})
	}
}

// Creating one more Resource among many costs no more than among few.
func BenchmarkCreateAmong(b *testing.B) {
	for _, n := range []int{100, 20_000} {
		b.Run(fmt.Sprintf("resources=%d", n), func(b *testing.B) {
			l := newLab(b)
			for i := range n {
				l.worker(fmt.Sprint("w", i))
			}
			b.ReportAllocs()
			i := n
			for b.Loop() {
				i++
				l.worker(fmt.Sprint("w", i))
			}
		})
	}
}

// A page of a list among many Resources, also where a filter lets little through.
func BenchmarkListAmong(b *testing.B) {
	l := newLab(b)
	for i := range 20_000 {
		l.worker(fmt.Sprintf("w%05d", i))
	}
	l.ok(l.create(form.WorkerBundleURL, "b", artifactSpec()))
	for _, row := range []struct {
		name  string
		f     Filter
		after string
		want  int
	}{
		{"first", Filter{}, "", 100}, {"last", Filter{}, "w19899", 100}, {"form", Filter{Form: form.WorkerBundleURL}, "", 1},
		{"space", Filter{Space: "none"}, "", 0}, {"name", Filter{Space: "default", Name: "w01000"}, "", 1},
	} {
		b.Run("page="+row.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if page, _ := l.s.List(&l.actor, row.f, row.after, 100); len(page) != row.want {
					b.Fatal(len(page))
				}
			}
		})
	}
}

// heapInUse returns the bytes of what can be reached.
func heapInUse() float64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return float64(m.HeapAlloc)
}

// The memory of the state for each Resource, of workers that are deployed with a bundle, a version and a deployment each: with the records
// of the Operations that made them, and when these have been swept.
func BenchmarkHeap(b *testing.B) {
	const workers = 5000
	for b.Loop() {
		before := heapInUse()
		l := newLab(b)
		for i := range workers {
			w := l.worker(fmt.Sprint("w", i))
			l.deploy(w, fmt.Sprint("d", i), l.version(w, fmt.Sprint("v", i), "fetch"), 10000)
		}
		b.ReportMetric((heapInUse()-before)/float64(l.n), "B/new-resource")
		at := l.now + (400 * 24 * time.Hour).Milliseconds()
		for l.s.Due(at) && l.s.Apply(&Command{Kind: Sweep, At: at}).More {
		}
		b.ReportMetric((heapInUse()-before)/float64(l.n), "B/resource")
		runtime.KeepAlive(l)
	}
}
