package state

import (
	"fmt"
	"testing"

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
