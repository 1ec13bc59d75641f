package sandbox

import (
	"context"
	"errors"
	"runtime"
	"testing"
	"time"

	"edged/internal/fault"
	"edged/sandbox/binding"
	"edged/sandbox/engine"
	"edged/sandbox/event"
)

// Whatever a guest whose engine has a fault passes to the host functions, two of them after each other (pointers that lead
// nowhere, values that are something else, numbers of operations, bindings, sources and sinks that were never given), they
// answer or throw, leave nothing behind, and the sandbox is clean afterwards (module-worker §7).
func FuzzHostFunctions(f *testing.F) {
	s := newBox(f, Options{MaxCPU: 200 * time.Millisecond, MaxMemoryBytes: 16 << 20, MaxCallBytes: 1 << 20, MaxInstances: 2,
		Fetch: funcFetcher(func(ctx context.Context, o *binding.Outbound, res *event.Response) error {
			return endless(ctx, o.Request, res)
		})})
	v := openVersion(f, s, Spec{Bindings: hostileWorld(), Graph: graphOf(fetcher(`return new Response(String(globalThis.mark))`))})
	hosts := hostTable()
	for i := range hosts {
		for _, order := range []uint64{0o12345671, 0o71726354, 0o33333333, 0o44556677, 0o00000001} {
			f.Add(uint8(i), uint8(i+1), uint64(i), 0xffffffff00000000|uint64(i)<<20, order, []byte(`{"Key":"k","Limit":1}`))
		}
	}
	f.Fuzz(func(t *testing.T, first, second uint8, a, b, order uint64, text []byte) {
		ctx := context.Background()
		start, limit := time.Now(), 2*time.Second
		deadline := start.Add(limit)
		g, err := v.acquire(ctx, start, limit)
		if err != nil {
			t.Fatal(err)
		}
		g.begin(ctx, deadline)
		if err := g.start(); err != nil {
			t.Fatal(err)
		}
		in := g.in
		values := [...]engine.Value{engine.Int(int32(a)), engine.Value(a), engine.Value(b), in.NewString(text), in.NewBytes(text), engine.Null,
			in.NewArray(engine.Int(1), in.NewString(text)), engine.Bool(order&1 != 0)}
		for _, which := range [...]uint8{first, second} {
			h := hosts[int(which)%len(hosts)]
			args := make([]engine.Value, 16) // the engine gives at least Argc
			for i := range args {
				args[i] = engine.Undefined
				if i < h.Argc {
					args[i] = values[order>>(3*uint(i))&7]
				}
			}
			callHost(t, in, h, args)
		}
		if fault.CodeOf(in.Err()) == fault.Internal && !errors.Is(in.Err(), event.ErrWorker) {
			t.Errorf("%v", in.Err())
		}
		g.finish(time.Time{})
		nothingHeld(t, s)
		if got := serve(t, v, request()).body; got != "undefined" {
			t.Errorf("the next invocation: %q", got)
		}
	})
}

// callHost calls a host function as the engine would. What it panics with to unwind a guest that has failed is no error.
func callHost(t *testing.T, in *engine.Instance, h engine.Host, args []engine.Value) {
	defer func() {
		if r := recover(); r != nil {
			if bug, ok := r.(runtime.Error); ok {
				t.Errorf("%s: %v", h.Name, bug)
			}
		}
	}()
	h.Fn(in, args[:h.Argc])
}
