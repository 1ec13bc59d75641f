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
