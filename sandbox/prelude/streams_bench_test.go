package prelude

import (
	"testing"
	"time"

	"edged/sandbox/engine"
)

// BenchmarkStreams reads three chunks in different ways, each from a pristine sandbox as a request does; the reset is
// part of it. impl=promises is as many awaits without a stream.
func BenchmarkStreams(b *testing.B) {
	for _, impl := range []string{"promises", "create", "queued", "pulled", "host", "hostAll", "transform", "pipe"} {
		b.Run("impl="+impl, func(b *testing.B) {
			built, api := newGuest(b, "return benchmarks;", "bench.js")
			img, err := built.Snapshot(engine.SnapshotOptions{MemoryBytes: 8 << 20, Roots: []engine.Value{built.GetProp(api, impl)}})
			if err != nil {
				b.Fatal(err)
			}
			defer img.Close()
			in, err := shared.e.Clone(img)
			if err != nil {
				b.Fatal(err)
			}
			defer in.Close()
			for b.Loop() {
				in.Arm(time.Minute)
				v, err := in.Call(img.Roots()[0], engine.Undefined)
				if err != nil {
					b.Fatal(err)
				}
				if _, err := in.RunJobs(100_000); err != nil {
					b.Fatal(err)
				}
				if in.PromiseState(v) != engine.Fulfilled {
					b.Fatal("the promise is not fulfilled")
				}
				if err := in.Reset(); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
