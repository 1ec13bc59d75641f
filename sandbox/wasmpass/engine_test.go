package wasmpass_test

import (
	"context"
	"sync"
	"testing"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"

	"edged/sandbox/engine/abi"
	"edged/sandbox/engine/wasm"
)

// guest is the built engine under a host that does no more than these tests need.
type guest struct {
	t    testing.TB
	mod  api.Module
	x    api.Function
	poll func() bool // what host_interrupt does; true stops the script
	fast func(magic uint32, this uint64, args []byte) uint64
	ctx  uint64 // JSContext*
}

// compiled keeps the tests from compiling the engine once each, which takes seconds under the race detector. The cache
// forgets a module when its last user closes it, so one user stays.
var compiled = sync.OnceValue(func() wazero.CompilationCache {
	cache := wazero.NewCompilationCache()
	rt := wazero.NewRuntimeWithConfig(context.Background(), engineConfig().WithCompilationCache(cache))
	if code, _, err := wasm.Engine(); err == nil {
		rt.CompileModule(context.Background(), code) // a fault shows in newGuest
	}
	return cache
})

func engineConfig() wazero.RuntimeConfig {
	return wazero.NewRuntimeConfigCompiler().WithCoreFeatures(api.CoreFeaturesV2)
}

// newGuest starts the engine, or skips the test where it has not been built.
func newGuest(t testing.TB) *guest {
	code, man, err := wasm.Engine()
	if err != nil {
		t.Skipf("needs the built engine: %v", err)
	}
	g := &guest{t: t}
	ctx := t.Context()
	rt := wazero.NewRuntimeWithConfig(ctx, engineConfig().WithCompilationCache(compiled()))
	t.Cleanup(func() { rt.Close(context.WithoutCancel(ctx)) })
	g.hosts(rt)
	g.mod, err = rt.InstantiateWithConfig(ctx, code, wazero.NewModuleConfig().WithName("").WithStartFunctions())
	if err != nil {
		t.Fatal(err)
	}
	g.x = g.mod.ExportedFunction(abi.Dispatcher)
	g.call(abi.Initialize)
	if r := g.call(abi.QjsInit); r != 0 {
		t.Fatalf("qjs_init = %d", r)
	}
	g.call(abi.QjsSetInterruptHandler, 1)
	g.call(abi.QjsSetMaxStackSize, 512<<10)
	g.ctx = g.call(abi.QjsGetContextPtr)
	name := g.text("hostFn")
	fn := g.call(abi.NewCFunction2, g.ctx, uint64(man.HostEntry), name, 1, abi.CFuncMagic, 7)
	g.call(abi.SetPropertyStr, g.ctx, g.call(abi.GetGlobalObject, g.ctx), name, fn)
	return g
}

func (g *guest) hosts(rt wazero.Runtime) {
	builders := map[string]wazero.HostModuleBuilder{}
	add := func(module, name, typ string, fn api.GoModuleFunc) {
		b := builders[module]
		if b == nil {
			b = rt.NewHostModuleBuilder(module)
			builders[module] = b
		}
		params, results := valueTypes(g.t, typ)
		b.NewFunctionBuilder().WithGoModuleFunction(fn, params, results).Export(name)
	}
	for _, im := range abi.Imports() {
		fn := func(_ context.Context, _ api.Module, s []uint64) { s[0] = 0 }
		switch im.Name {
		case abi.InterruptFn:
			fn = func(_ context.Context, _ api.Module, s []uint64) {
				s[0] = 0
				if g.poll != nil && g.poll() {
					s[0] = 1
				}
			}
		case "host_promise_rejection":
			fn = func(context.Context, api.Module, []uint64) {}
		}
		add(im.Module, im.Name, im.Type, fn)
	}
	add(abi.HostModule, abi.HostFast, abi.FastType, func(_ context.Context, m api.Module, s []uint64) {
		args, ok := m.Memory().Read(uint32(s[3]), uint32(s[2])*8)
		if !ok {
			g.t.Error("arguments lie outside the memory")
		}
		s[0] = g.fast(uint32(s[4]), s[1], args)
	})
	for module, b := range builders {
		if _, err := b.Instantiate(g.t.Context()); err != nil {
			g.t.Fatalf("%s: %v", module, err)
		}
	}
}

func (g *guest) try(op abi.Op, args ...uint64) (uint64, error) {
	var s [7]uint64
	s[0] = uint64(op)
	copy(s[1:], args)
	err := g.x.CallWithStack(g.t.Context(), s[:])
	return s[0], err
}

func (g *guest) call(op abi.Op, args ...uint64) uint64 {
	g.t.Helper()
	r, err := g.try(op, args...)
	if err != nil {
		g.t.Fatalf("%s: %v", op.Name(), err)
	}
	return r
}

// text puts a C string into the guest.
func (g *guest) text(s string) uint64 {
	p := g.call(abi.Malloc, uint64(len(s)+1))
	g.mod.Memory().WriteString(uint32(p), s+"\x00")
	return p
}

func (g *guest) eval(src string) (uint64, error) {
	return g.try(abi.Eval, g.ctx, g.text(src), uint64(len(src)), g.text("test.js"), 0)
}

const tagException = 6

// The host's function is reached through the table, with its number, this and arguments, and its result arrives.
func TestHostEntryReceivesCallAndReturns(t *testing.T) {
	g := newGuest(t)
	g.fast = func(magic uint32, this uint64, args []byte) uint64 {
		if magic != 7 || len(args) != 16 || args[0] != 20 || args[8] != 22 {
			t.Errorf("magic %d, arguments %v", magic, args)
		}
		return uint64(args[0]) + uint64(args[8])
	}
	if v, err := g.eval("hostFn(20, 22) + 100"); err != nil || v != 142 {
		t.Fatalf("eval = %#x, %v", v, err)
	}
}

// Every loop asks: also those in native code that the engine itself never interrupts.
func TestNativeLoopsPoll(t *testing.T) {
	for _, src := range []string{
		"for (;;);",
		"Array.prototype.join.call({length: 2**53-1})",
		"Array.prototype.reverse.call({length: 2**53-1})",
		"[].concat.call({length: 2**53-1, [Symbol.isConcatSpreadable]: true})",
		"(10n ** 200000n).toString()",
		"'a'.repeat(2**20).indexOf('a'.repeat(2**19) + 'b')",
	} {
		t.Run(src, func(t *testing.T) {
			g := newGuest(t)
			polls := 0
			g.poll = func() bool {
				if polls++; polls > 1000 {
					panic("hard stop")
				}
				return false
			}
			if _, err := g.eval(src); err == nil {
				t.Fatalf("ended by itself after %d polls", polls)
			}
		})
	}
}

// A stopped guest answers again: the pass keeps the engine's own interrupt, which stops scripts without a trap.
func TestSoftStopLeavesEngineUsable(t *testing.T) {
	g := newGuest(t)
	stop := true
	g.poll = func() bool { return stop }
	v, err := g.eval("try { for (;;); } finally { hostFn() }")
	if err != nil || int32(v>>32) != tagException {
		t.Fatalf("eval = %#x, %v; want an exception", v, err)
	}
	g.call(abi.FreeValue, g.ctx, g.call(abi.GetException, g.ctx))
	stop = false
	if v, err := g.eval("6 * 7"); err != nil || v != 42 {
		t.Fatalf("eval = %#x, %v", v, err)
	}
}

// A number that no export has must not reach one.
func TestDispatcherTrapsOnUnknownOperation(t *testing.T) {
	g := newGuest(t)
	if _, err := g.try(abi.Op(len(abi.Exports()))); err == nil {
		t.Fatal("no trap")
	}
}

func BenchmarkCalls(b *testing.B) {
	g := newGuest(b)
	g.fast = func(uint32, uint64, []byte) uint64 { return 1 }
	run := func(name, loop string) {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if v, err := g.eval(loop); err != nil || int32(v>>32) == tagException {
					b.Fatal(v, err)
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/1e4, "ns/inner")
		})
	}
	run("loop=empty", "for (let i = 0; i < 10000; i++);")
	run("loop=js", "(()=>{const f = () => 1; for (let i = 0; i < 10000; i++) f(i);})()")
	run("loop=host", "for (let i = 0; i < 10000; i++) hostFn(i);")
}

// What the dispatcher costs beside a handle of the export's own.
func BenchmarkDispatch(b *testing.B) {
	g := newGuest(b)
	var s [7]uint64
	b.Run("impl=dispatcher", func(b *testing.B) {
		for b.Loop() {
			s = [7]uint64{uint64(abi.QjsGetContextPtr)}
			if err := g.x.CallWithStack(b.Context(), s[:]); err != nil {
				b.Fatal(err)
			}
		}
	})
	own := g.mod.ExportedFunction(abi.QjsGetContextPtr.Name())
	b.Run("impl=export", func(b *testing.B) {
		for b.Loop() {
			if err := own.CallWithStack(b.Context(), s[:]); err != nil {
				b.Fatal(err)
			}
		}
	})
}

func valueTypes(t testing.TB, typ string) (params, results []api.ValueType) {
	ft := funcType(t, typ)
	return []byte(ft.Params), []byte(ft.Results)
}
