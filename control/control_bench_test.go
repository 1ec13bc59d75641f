package control

import (
	"fmt"
	"sync/atomic"
	"testing"

	"edged/control/form"
)

// A durable create through the whole room: checks, log with sync, plan, answer.
func BenchmarkCreate(b *testing.B) {
	n := startNode(b, b.TempDir(), nil)
	for _, clients := range []int{1, 16} {
		b.Run(fmt.Sprintf("clients=%d", clients), func(b *testing.B) {
			b.ReportAllocs()
			b.SetParallelism(clients)
			var names atomic.Int64
			b.RunParallel(func(pb *testing.PB) {
				for pb.Next() {
					name := fmt.Sprintf("w%d-%d-%d", clients, b.N, names.Add(1))
					if a := n.create(form.ModuleWorkerURL, name, spec{}); a.status != 200 {
						b.Errorf("%d %s", a.status, a.body)
						return
					}
				}
			})
		})
	}
}
