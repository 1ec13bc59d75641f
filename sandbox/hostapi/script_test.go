package hostapi

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"edged/internal/testkit"
	"edged/sandbox/engine"
	"edged/sandbox/engine/wasm"
	"edged/sandbox/prelude"
)

func TestMain(m *testing.M) { testkit.Main(m) }

// world is an engine with the whole prelude, and what the sandbox would be to it: timers that are due at once, a
// request body, a log.
type world struct {
	tb      testing.TB
	in      *engine.Instance
	enter   []engine.Value // the prelude's entries
	timers  []int32
	body    [][]byte
	log     []string
	codecs  Codecs
	reports []string // what reached host.report
	works   []func() // begun and not done

	lastWork int32
}

// Work puts work off until the script has come to rest, as if it took long.
func (w *world) Work(do func(stop func() bool) Outcome) (int32, bool) {
	w.lastWork++
	id := w.lastWork
	w.works = append(w.works, func() {
		v, ok := do(func() bool { return false })(w.in)
		if _, err := w.in.Call(w.enter[enterSettle], engine.Undefined, engine.Int(id), engine.Bool(ok), v); err != nil {
			w.tb.Errorf("settle: %v", err)
		}
	})
	return id, true
}

// Codecs keeps the codecs, as the sandbox's invocation does.
func (w *world) Codecs() *Codecs { return &w.codecs }

// Console takes the log, as the sandbox's invocation does.
func (w *world) Console(level int, text string) { w.log = append(w.log, fmt.Sprint(level, " ", text)) }

var sharedEngine = sync.OnceValues(func() (*engine.Engine, error) {
	code, manifest, err := wasm.Engine()
	if err != nil {
		return nil, err
	}
	none := func(*engine.Instance, []engine.Value) engine.Value { return engine.Undefined }
	return engine.New(context.Background(), engine.Options{
		Wasm: code, HostEntry: manifest.HostEntry,
		Hosts: append(Table(),
			engine.Host{Name: "timerSet", Argc: 2, Fn: func(in *engine.Instance, args []engine.Value) engine.Value {
				id, _ := args[0].Int()
				w := in.User.(*world)
				w.timers = append(w.timers, id)
				return engine.Undefined
			}},
			engine.Host{Name: "timerClear", Argc: 1, Fn: none},
			engine.Host{Name: "bodyPull", Fn: func(in *engine.Instance, _ []engine.Value) engine.Value {
				w := in.User.(*world)
				if len(w.body) == 0 {
					return engine.Null
				}
				chunk := w.body[0]
				w.body = w.body[1:]
				return in.NewBytes(chunk)
			}},
			engine.Host{Name: "bodyCancel", Fn: none},
			engine.Host{Name: "signalUsed", Fn: none},
			engine.Host{Name: "report", Argc: 2, Fn: func(in *engine.Instance, args []engine.Value) engine.Value {
				what, _ := in.String(args[0])
				text, _ := in.String(args[1])
				w := in.User.(*world)
				w.reports = append(w.reports, what+": "+text)
				return engine.Undefined
			}},
		),
	})
})

// The entries of the prelude that these tests use, by their position.
const (
	enterSettle = 10
	enterTimer  = 12
)

func newWorld(tb testing.TB) *world {
	tb.Helper()
	e, err := sharedEngine()
	if err != nil {
		tb.Skipf("the JavaScript engine is not built (make engine): %v", err)
	}
	in, err := e.NewInstance()
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(in.Close)
	w := &world{tb: tb, in: in}
	in.User = w
	in.Arm(time.Minute)
	// The functions that the scripts need of the prelude's scope are put where scripts can see them.
	const inner = `
globalThis.inner = {
  newIncomingRequest: (method, url, headers, kind) => {
    const made = dispatchPrepare(method, url, headers, true);
    if (kind !== 0) { made[3][bodyKind] = bodyIncoming; made[3][bodySource] = made[5]; }
    return made[0];
  },
  responseParts: dispatchFinish,
  host,
};
invocation = [0, null, false, null];
return [dispatchAdopt`
	src := []byte(prelude.Source())
	src = replaceOnce(tb, src, "\nreturn [dispatchAdopt", inner)
	fn, err := in.Eval(src, "prelude.js")
	if err != nil {
		tb.Fatal(err)
	}
	entries, err := in.Call(fn, engine.Undefined, in.Host())
	if err != nil {
		tb.Fatalf("the prelude does not load: %v\n%s", err, stackOf(err))
	}
	for i := range uint32(enterTimer + 1) {
		w.enter = append(w.enter, in.GetIndex(entries, i))
	}
	return w
}

func replaceOnce(tb testing.TB, src []byte, from, to string) []byte {
	tb.Helper()
	for i := len(src) - len(from); i >= 0; i-- {
		if string(src[i:i+len(from)]) == from {
			return append(append(append([]byte(nil), src[:i]...), to...), src[i+len(from):]...)
		}
	}
	tb.Fatalf("the prelude has no %q", from)
	return nil
}

func stackOf(err error) string {
	if e, ok := err.(*engine.ScriptError); ok {
		return e.Stack
	}
	return ""
}

// drain runs jobs and timers until nothing is left.
func (w *world) drain() {
	w.tb.Helper()
	for range 100_000 {
		n, err := w.in.RunJobs(1000)
		if err != nil {
			w.tb.Fatalf("job: %v", err)
		}
		if n > 0 {
			continue
		}
		if len(w.works) > 0 {
			do := w.works[0]
			w.works = w.works[1:]
			do()
			continue
		}
		if len(w.timers) == 0 {
			return
		}
		id := w.timers[0]
		w.timers = w.timers[1:]
		if _, err := w.in.Call(w.enter[enterTimer], engine.Undefined, engine.Int(id)); err != nil {
			w.tb.Logf("timer: %v", err)
		}
	}
	w.tb.Fatal("the script does not come to rest")
}

// eval runs an async function's body and returns what it returned as text, or how it failed.
func (w *world) eval(body string) string {
	w.tb.Helper()
	p, err := w.in.Eval([]byte("(async () => {"+body+"\n})()"), "test.js")
	if err != nil {
		return "syntax: " + err.Error()
	}
	w.drain()
	v := w.in.PromiseResult(p)
	switch w.in.PromiseState(p) {
	case engine.Fulfilled:
		return w.in.Text(v)
	case engine.Rejected:
		return "throws " + w.in.Text(v)
	}
	return "pending"
}
