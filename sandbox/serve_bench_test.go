package sandbox

import (
	"context"
	"testing"
	"time"

	"edged/sandbox/event"
)

// BenchmarkHello is one request through Serve, the complete prelude included: isolation request pays for a reset,
// isolation worker for freeing values.
func BenchmarkHello(b *testing.B) {
	for _, c := range []struct {
		name string
		opt  Options
	}{
		{"isolation=request", Options{}},
		{"isolation=worker", Options{Isolation: IsolateWorker}},
	} {
		b.Run(c.name, func(b *testing.B) {
			s := newBox(b, c.opt)
			v := openWorker(b, s, fetcher(`return new Response('Hello World')`))
			var res event.Response
			req := request()
			ctx, cancel := context.WithCancel(context.Background())
			defer cancel()
			b.ReportAllocs()
			for b.Loop() {
				res.Reset()
				if err := v.Serve(ctx, req, &res); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(v.ready[0].in.Stats().LastPages), "pages/op")
		})
	}
}

// BenchmarkHelloParallel is the same from all cores at once.
func BenchmarkHelloParallel(b *testing.B) {
	s := newBox(b, Options{})
	v := openWorker(b, s, fetcher(`return new Response('Hello World')`))
	b.ReportAllocs()
	b.ResetTimer()
	b.RunParallel(func(pb *testing.PB) {
		var res event.Response
		req := request()
		for pb.Next() {
			res.Reset()
			if err := v.Serve(context.Background(), req, &res); err != nil {
				b.Error(err)
				return
			}
		}
	})
}

// BenchmarkMiss is a request of a version that has no ready sandbox: another version's is mapped over.
func BenchmarkMiss(b *testing.B) {
	s := newBox(b, Options{MaxInstances: 1})
	versions := []*Version{
		openWorker(b, s, fetcher(`return new Response('one')`)),
		openWorker(b, s, fetcher(`return new Response('two')`)),
	}
	var res event.Response
	req := request()
	i := 0
	for b.Loop() {
		res.Reset()
		if err := versions[i&1].Serve(context.Background(), req, &res); err != nil {
			b.Fatal(err)
		}
		i++
	}
}

// BenchmarkOpen is a deploy: from modules to a servable image, without and with the image store.
func BenchmarkOpen(b *testing.B) {
	for _, c := range []struct {
		name string
		dir  string
	}{{"source", ""}, {"stored", b.TempDir() + "/images"}} {
		b.Run(c.name, func(b *testing.B) {
			s := newBox(b, Options{ImageDir: c.dir})
			spec := Spec{UID: "bench", Handlers: []string{"fetch"}, Graph: graphOf(fetcher(`return new Response('Hello World')`))}
			openVersion(b, s, spec).Retire(context.Background())
			for b.Loop() {
				openVersion(b, s, spec).Retire(context.Background())
			}
		})
	}
}

// BenchmarkPagedOut is the first request of a sandbox that was idle and gave its memory back.
func BenchmarkPagedOut(b *testing.B) {
	s := newBox(b, Options{})
	v := openWorker(b, s, fetcher(`return new Response('Hello World')`))
	var res event.Response
	req := request()
	var took time.Duration
	for b.Loop() {
		s.pageOut(time.Now().Add(time.Hour))
		res.Reset()
		start := time.Now()
		if err := v.Serve(context.Background(), req, &res); err != nil {
			b.Fatal(err)
		}
		took += time.Since(start)
	}
	b.ReportMetric(float64(took.Nanoseconds())/float64(b.N), "ns/request")
}
