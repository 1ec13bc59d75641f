package engine

import (
	"errors"
	"testing"
	"time"

	"edged/internal/fault"
	"edged/sandbox/event"
)

// hostile scripts never end, or want more than there is. Those marked native loop inside the engine's own functions,
// which do not look at the interrupt: only the loop counters stop them.
var hostile = []struct {
	name, src string
	want      error // nil: it must end by itself
}{
	{"loop", "for(;;);", event.ErrCPU},
	{"finally", "for(;;) try { for(;;); } finally { for(;;); }", event.ErrCPU},
	{"catch", "for(;;) try { for(;;); } catch { }", event.ErrCPU},
	{"generator", "[...{[Symbol.iterator]: () => ({next: () => ({done: false})})}]", nil},
	{"regex", "/^(a+)+$/.test('a'.repeat(40) + 'b')", event.ErrCPU},
	{"regex linear", "/a*a*a*a*a*b/.test('a'.repeat(5000))", event.ErrCPU},
	{"native indexOf", "Array.prototype.indexOf.call({length: 2**53-1}, 1)", event.ErrCPU},
	{"native includes", "Array.prototype.includes.call({length: 2**53-1}, 1)", event.ErrCPU},
	{"native lastIndexOf", "Array.prototype.lastIndexOf.call({length: 2**53-1}, 1)", event.ErrCPU},
	{"native join", "Array.prototype.join.call({length: 2**31}, '')", event.ErrCPU},
	{"native reverse", "Array.prototype.reverse.call({length: 2**53-1})", event.ErrCPU},
	{"native copyWithin", "Array.prototype.copyWithin.call({length: 2**53-1}, 1, 0)", event.ErrCPU},
	{"native splice", "Array.prototype.splice.call({length: 2**53-1}, 0, 2**53-1)", nil},
	{"native shift", "Array.prototype.shift.call({length: 2**53-1})", event.ErrCPU},
	{"native fill", "Array.prototype.fill.call({length: 2**53-1}, 1)", nil},
	{"native concat", "[].concat(...Array(10).fill({length: 2**31, [Symbol.isConcatSpreadable]: true}))", nil},
	{"native indexOf string", "('a'.repeat(2e6) + 'b').indexOf('a'.repeat(1e6) + 'c')", event.ErrCPU},
	{"native bigint power", "(3n ** (2n ** 20n)).toString()", nil},
	{"native bigint text", "((1n << 1000000n) - 1n).toString()", nil},
	{"native typed sort", "new Float64Array(1e6).fill(1).map((_, i) => -i).sort(() => 0)", nil},
	{"comparator", "[3, 2, 1].sort(() => { for(;;); })", event.ErrCPU},
	{"getter", "JSON.stringify({get a() { for(;;); }})", event.ErrCPU},
	{"proxy", "new Proxy({}, {get() { for(;;); }}).x", event.ErrCPU},
	{"recursion", "(function f() { f(); })()", nil},
	{"caught recursion", "let n = 0; (function f() { n++; try { f() } catch { f() } })()", event.ErrCPU},
	{"json depth", "JSON.parse('['.repeat(2e5))", nil},
	{"json stringify depth", "let o = {}, c = o; for (let i = 0; i < 1e5; i++) { c.a = {}; c = c.a } JSON.stringify(o)", nil},
	{"proxy depth", "let p = {}; for (let i = 0; i < 1e5; i++) p = new Proxy(p, {}); p.x", nil},
	{"regex depth", "new RegExp('('.repeat(1e5) + ')'.repeat(1e5))", nil},
	{"source depth", "(0, eval)('['.repeat(1e5) + ']'.repeat(1e5))", nil},
	{"host recursion", "(function f() { host.call(f) })()", nil},
	{"arrays", "const a = []; for (;;) a.push(new Array(1000).fill(1))", event.ErrMemory},
	{"caught arrays", "for (;;) try { const a = []; for (;;) a.push(new Array(1000).fill(1)) } catch { }", event.ErrMemory},
	{"objects", "const a = []; for (;;) a.push({})", event.ErrMemory},
	{"map", "const m = new Map(); for (let i = 0;; i++) m.set(i, i)", event.ErrMemory},
	{"one buffer", "new Uint8Array(1e9)", event.ErrMemory},
	{"one string", "'x'.repeat(5e8)", event.ErrMemory},
	{"strings", "let s = 'ab'; for (;;) s += s", event.ErrMemory},
	{"closures", "let f = () => 0; for (;;) { const g = f; f = () => g }", event.ErrMemory},
	{"atoms", "const o = {}; for (let i = 0;; i++) o['k' + i] = i", event.ErrMemory},
}

// The time between polls is told apart: the bytecode interpreter's and that of the engine's own functions. What a host
// function takes is neither.
func TestSamples(t *testing.T) {
	for _, c := range []struct {
		name, src   string
		least, most float64 // of the interpreter
	}{
		{"interpreter", "for (let i = 0; i < 1e6; i++);", 0.8, 1},
		{"native", "('a'.repeat(1e5) + 'b').indexOf('a'.repeat(100) + 'c')", 0, 0.1},
		{"half", "for (let i = 0; i < 1e6; i++); for (let i = 0; i < 4; i++) ('a'.repeat(5e4) + 'b').indexOf('a'.repeat(100) + 'c')", 0.02, 0.95},
	} {
		in := fresh(t)
		in.Resume()
		if _, err := in.Eval([]byte(c.src), "t.js"); err != nil {
			t.Fatal(err)
		}
		in.Pause()
		stats := in.Stats()
		if share := stats.Interpreter.Seconds() / stats.Sampled.Seconds(); !(share >= c.least && share <= c.most) {
			t.Errorf("%s: %v of %v, want %v to %v of it", c.name, stats.Interpreter, stats.Sampled, c.least, c.most)
		}
	}
	in := fresh(t)
	in.User = func(*Instance, []Value) Value {
		for end := clock() + 5*time.Millisecond; clock() < end; {
		}
		return Undefined
	}
	in.Resume()
	if _, err := in.Eval([]byte("for (let i = 0; i < 20; i++) { host.user(0); for (let k = 0; k < 10; k++); }"), "t.js"); err != nil {
		t.Fatal(err)
	}
	in.Pause()
	if stats := in.Stats(); stats.Polls < 20 || stats.Sampled > in.CPU()/2 {
		t.Errorf("%d polls, %v of %v is sampled: the host's time is in it", stats.Polls, stats.Sampled, in.CPU())
	}
}

// What a caller did between his own reading of the clock and the pause is not the guest's.
func TestPauseAt(t *testing.T) {
	in := fresh(t)
	in.Arm(time.Second)
	at := in.Resume().Add(3 * time.Millisecond)
	if d := time.Until(at); d <= 0 || d > 3*time.Millisecond {
		t.Errorf("Resume is %v from now", d-3*time.Millisecond)
	}
	in.PauseAt(at)
	in.PauseAt(at.Add(time.Hour)) // it is paused
	if got := in.CPU(); got != 3*time.Millisecond {
		t.Errorf("%v, want 3ms", got)
	}
	if left := in.limits.budget; left != time.Second-3*time.Millisecond {
		t.Errorf("%v are left", left)
	}
}

const heapLimit = 24 << 20

// module-worker §6: nothing that a guest does stops the node. Each case ends within its budget and 100
// ms more, with the named error, and the same instance then is byte for byte its image again and works. The bound is the
// engine's and not that of a scheduler which other tests keep busy: the best of a few attempts counts.
func TestHostile(t *testing.T) {
	const budget = 60 * time.Millisecond
	img := image(t, testEngine(t), "globalThis.seen = 0; 0", SnapshotOptions{MemoryBytes: 32 << 20, HeapLimit: heapLimit})
	in := clone(t, img)
	for _, tt := range hostile {
		t.Run(tt.name, func(t *testing.T) {
			allowed := budget
			if tt.want == event.ErrMemory {
				allowed = 5 * time.Second // filling memory takes its time; it must not be cut short
			}
			limit := (allowed + in.engine.opt.Grace + 100*time.Millisecond) * slowness
			best := time.Duration(1 << 62)
			for range 6 {
				if best = min(best, attack(t, in, tt.src, tt.want, allowed)); best <= limit {
					return
				}
			}
			t.Errorf("took %v at best, want at most %v", best, limit)
		})
	}
}

// attack runs one hostile source, checks how it ends and what it leaves, and returns how long it took.
func attack(t *testing.T, in *Instance, src string, want error, allowed time.Duration) time.Duration {
	t.Helper()
	in.Arm(allowed)
	in.stats.MaxPollGap = 0
	start := time.Now()
	v, err := in.Eval([]byte("seen++;"+src), "hostile.js")
	took := time.Since(start)
	t.Logf("%v after %v, largest poll gap %v", err, took, in.Stats().MaxPollGap)
	if want != nil && !errors.Is(err, want) {
		t.Errorf("got %v (%s), want %v", err, in.Text(v), want)
	}
	if err != nil && fault.CodeOf(err) == fault.Internal && !errors.Is(err, event.ErrWorker) {
		t.Errorf("an internal error: %v", err)
	}
	if err := in.Reset(); err != nil {
		t.Fatalf("the instance is lost: %v", err)
	}
	if diff := differences(in); diff != "" {
		t.Errorf("not the image: %s", diff)
	}
	if got := eval(t, in, "[seen, 1 + 2, JSON.stringify([...'ab'])].join()"); got != `0,3,["a","b"]` {
		t.Errorf("the next invocation computes %s", got)
	}
	if err := in.Reset(); err != nil {
		t.Fatal(err)
	}
	return took
}

// After a stop nothing runs any more, whatever the caller tries, and Reset makes all of it work again.
func TestFailureIsSticky(t *testing.T) {
	img := image(t, testEngine(t), "() => { for (;;); }", SnapshotOptions{})
	in := clone(t, img)
	loop := img.Roots()[0]
	in.Arm(time.Millisecond)
	if _, err := in.Call(loop, Undefined); !errors.Is(err, event.ErrCPU) {
		t.Fatalf("got %v", err)
	}
	if _, err := in.Eval([]byte("1"), "x"); !errors.Is(err, event.ErrCPU) {
		t.Errorf("Eval after a stop: %v", err)
	}
	if _, err := in.RunJobs(10); !errors.Is(err, event.ErrCPU) {
		t.Errorf("RunJobs after a stop: %v", err)
	}
	if v := in.NewString([]byte("x")); !v.IsException() {
		t.Errorf("NewString after a stop: %v", v)
	}
	if _, ok := in.Bytes(Undefined); ok {
		t.Error("Bytes after a stop")
	}
	in.Interrupt(event.ErrWall) // too late for this invocation, and no matter of the next
	if err := in.Reset(); err != nil {
		t.Fatal(err)
	}
	if err := in.Err(); err != nil {
		t.Errorf("after Reset: %v", err)
	}
	if got := eval(t, in, "let n = 0; for (let i = 0; i < 1e5; i++) n++; n"); got != "100000" {
		t.Errorf("got %s", got)
	}
	// A getter is a way into the guest too.
	o, err := in.Eval([]byte("({get x() { for (;;); }})"), "x")
	if err != nil {
		t.Fatal(err)
	}
	in.Arm(time.Millisecond)
	if v := in.GetProp(o, "x"); !v.IsException() || !errors.Is(in.Err(), event.ErrCPU) {
		t.Errorf("a getter that loops: %v, %v", v, in.Err())
	}
}

// Interrupt stops a running guest from outside (a wall limit, a client that left), with the caller's own cause.
func TestInterrupt(t *testing.T) {
	in := fresh(t)
	cause := event.ErrWall.New("test", "")
	started := make(chan struct{})
	in.User = func(*Instance, []Value) Value { close(started); return Undefined }
	done := make(chan struct{})
	go func() {
		defer close(done)
		<-started
		in.Interrupt(cause)
		in.Interrupt(event.ErrCPU) // the first one counts
	}()
	_, err := in.Eval([]byte("host.user(); for (;;);"), "x")
	<-done
	if err != cause {
		t.Errorf("got %v, want the cause", err)
	}
}

// The CPU clock counts while the guest runs and stands still between Pause and Resume.
func TestCPUClock(t *testing.T) {
	in := fresh(t)
	in.User = func(in *Instance, _ []Value) Value {
		in.Pause()
		defer in.Resume()
		for start := time.Now(); time.Since(start) < 400*time.Millisecond; { // the world outside goes on
		}
		return Undefined
	}
	in.Arm(350 * time.Millisecond)
	in.Resume()
	if _, err := in.Eval([]byte("host.user(); let n = 0; for (let i = 0; i < 2e4; i++) n += i; n"), "x"); err != nil {
		t.Fatalf("waiting was counted: %v", err)
	}
	in.Pause()
	used := in.CPU()
	if used <= 0 || used > 350*time.Millisecond {
		t.Errorf("used %v", used)
	}
	if again := in.CPU(); again != used {
		t.Errorf("the clock runs while paused: %v, then %v", used, again)
	}
	// The budget is what is left, not what was given: three runs of 10 ms do not fit into it.
	in.Arm(20 * time.Millisecond)
	var err error
	for range 3 {
		if _, err = in.Eval([]byte("for (const t = Date.now(); Date.now() - t < 12;);"), "x"); err != nil {
			break
		}
	}
	if !errors.Is(err, event.ErrCPU) {
		t.Errorf("got %v, want cpu_exceeded", err)
	}
}

// Memory that runs out inside of promise jobs is reported just the same.
func TestMemoryInJobs(t *testing.T) {
	in := fresh(t)
	in.SetMemoryLimit(heapLimit)
	_, err := in.Eval([]byte("(async () => { await 1; const a = []; for (;;) a.push(new Array(1000).fill(1)) })().catch(() => {})"), "x")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := in.RunJobs(100); !errors.Is(err, event.ErrMemory) {
		t.Errorf("got %v, want memory_exceeded", err)
	}
}

// A bug in a host function costs one instance, never the node.
func TestHostPanic(t *testing.T) {
	img := image(t, testEngine(t), "0", SnapshotOptions{})
	for name, bug := range map[string]func(){
		"panic":     func() { panic("oops") },
		"nil":       func() { var p *int; *p = 1 },
		"bounds":    func() { var s []int; _ = s[len(s)] },
		"wrong nil": func() { panic(error(nil)) },
	} {
		in := clone(t, img)
		in.User = func(*Instance, []Value) Value { bug(); return Undefined }
		_, err := in.Eval([]byte("try { host.user() } catch { } 1"), "x")
		if fault.CodeOf(err) != fault.Internal || errors.Is(err, event.ErrWorker) {
			t.Errorf("%s: got %v, want internal", name, err)
		}
		if err := in.Reset(); err == nil {
			t.Errorf("%s: the instance may be used again", name)
		}
	}
}

// Work done elsewhere counts as the guest's own: what is over the budget ends it, also while its clock stands still.
func TestCharge(t *testing.T) {
	for _, running := range []bool{false, true} {
		in := fresh(t)
		in.Arm(time.Second)
		if running {
			in.Resume()
		}
		in.Charge(400 * time.Millisecond)
		if in.Err() != nil || in.CPU() < 400*time.Millisecond {
			t.Fatalf("after 400 ms: %v, %v", in.Err(), in.CPU())
		}
		if _, err := in.Eval([]byte("1"), "x.js"); err != nil {
			t.Fatal(err)
		}
		in.Charge(700 * time.Millisecond)
		_, err := in.Eval([]byte("1"), "x.js")
		if !errors.Is(in.Err(), event.ErrCPU) || !errors.Is(err, event.ErrCPU) {
			t.Errorf("running %v: over the budget: %v, %v", running, in.Err(), err)
		}
	}
}
