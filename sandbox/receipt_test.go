package sandbox

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"

	"edged/sandbox/binding"
	"edged/sandbox/event"
)

// seen hands over what a watcher is told. Waits are copied, for they are not the watcher's.
type seen chan event.Invocation

func newSeen() seen { return make(seen, 64) }

func (s seen) watch(string) func(*event.Invocation) {
	return func(i *event.Invocation) {
		told := *i
		told.Receipt.Waits = append([]event.Wait(nil), i.Receipt.Waits...)
		s <- told
	}
}

func (s seen) next(t *testing.T) event.Invocation {
	t.Helper()
	select {
	case i := <-s:
		return i
	case <-time.After(20 * time.Second):
		t.Fatal("nobody was told of an invocation")
	}
	panic("unreachable")
}

// said is a body that is there.
func said(text string) *testBody {
	b := newBody()
	b.push(text)
	b.end(nil)
	return b
}

// callsOf renders the waits of a receipt without their times, and fails for one that took none.
func callsOf(t *testing.T, r *event.Receipt) string {
	t.Helper()
	var b strings.Builder
	for _, w := range r.Waits {
		if w.Time <= 0 {
			t.Errorf("%d calls of %s took %v", w.Calls, w.Name, w.Time)
		}
		fmt.Fprintf(&b, "%s:%d ", w.Name, w.Calls)
	}
	return strings.TrimSpace(b.String())
}

// The receipt of an answer that is whole is final when Serve returns: what came in and went out, the calls of each binding, memory
// that was written, and what is left of every limit.
func TestReceiptOfAWholeAnswer(t *testing.T) {
	s := newBox(t, Options{MaxSubrequests: 7, Fetch: funcFetcher(func(_ context.Context, _ *binding.Outbound, res *event.Response) error {
		res.Status, res.Body = 200, append(res.Body, "out"...)
		return nil
	})})
	kv := &memoryKV{entries: map[string]binding.KVEntry{}, ttl: map[string]time.Duration{}}
	v := openVersion(t, s, Spec{Bindings: []binding.Binding{{Name: "IDLE", KV: kv}, {Name: "CACHE", KV: kv}},
		Graph: graphOf(fetcher(`const text = await request.text(); await env.CACHE.put('k', text); await env.CACHE.get('k');
			await (await fetch('https://out.test/')).text(); new Uint8Array(8 << 20).fill(1); return new Response(text + text)`))})
	for round := range 2 { // the second in the sandbox that the first has used
		var r event.Receipt
		res := event.Response{Receipt: &r}
		req := post(said("0123456789"), 10)
		req.Arrived = time.Now().Add(-time.Minute)
		if err := v.Serve(t.Context(), req, &res); err != nil {
			t.Fatal(err)
		}
		if got := callsOf(t, &r); got != "CACHE:2 fetch:1" {
			t.Errorf("calls: %s", got)
		}
		if got, want := fmt.Sprint(r.Final, r.BodyIn, r.BodyOut, r.Subrequests, r.Left.Subrequests), "true 10 20 1 6"; got != want {
			t.Errorf("final, in, out, subrequests and what is left of them: %s, want %s", got, want)
		}
		if r.Memory < 8<<20 || r.Memory > 16<<20 || r.Left.Memory <= 0 || r.Left.Memory > 128<<20-r.Memory {
			t.Errorf("%d bytes written, %d left", r.Memory, r.Left.Memory)
		}
		if r.CPU <= 0 || r.CPU+r.Left.CPU != 10*time.Second || r.Wall < r.CPU || r.Left.Wall <= 0 || r.Wall+r.Left.Wall > 31*time.Second || r.Admission < time.Minute {
			t.Errorf("round %d: %+v", round, r)
		}
	}
}

// What an invocation of one tenant wrote is not charged to the next.
func TestReceiptsAreApart(t *testing.T) {
	s := newBox(t, Options{MaxInstances: 1, Fetch: funcFetcher(func(_ context.Context, _ *binding.Outbound, res *event.Response) error {
		res.Status = 204
		return nil
	})})
	busy := openWorker(t, s, fetcher(`await fetch('https://out.test/'); new Uint8Array(8 << 20).fill(1); return new Response(await request.text())`))
	plain := openWorker(t, s, fetcher(`return new Response('x')`))
	var r event.Receipt
	for range 2 {
		res := event.Response{Receipt: &r}
		if err := busy.Serve(t.Context(), post(said("abc"), 3), &res); err != nil {
			t.Fatal(err)
		}
		res = event.Response{Receipt: &r}
		if err := plain.Serve(t.Context(), request(), &res); err != nil {
			t.Fatal(err)
		}
		if len(r.Waits) > 0 || r.Subrequests > 0 || r.BodyIn > 0 || r.BodyOut != 1 || r.Memory > 4<<20 || r.Origin != event.Warm {
			t.Errorf("%+v", r)
		}
	}
}

// A streamed answer's receipt is that of its head, and says so; who watches is told of the end, with all that went out and what
// waitUntil did after it.
func TestReceiptOfAStream(t *testing.T) {
	w := newSeen()
	s := newBox(t, Options{Watch: w.watch, Fetch: funcFetcher(func(_ context.Context, _ *binding.Outbound, res *event.Response) error {
		res.Status = 204
		return nil
	})})
	v := openVersion(t, s, Spec{UID: "v1", Worker: "w1", Graph: graphOf(fetcher(`ctx.waitUntil((async () => { await fetch('https://out.test/') })());
		return new Response(new ReadableStream({ start(c) { c.enqueue(new Uint8Array(100)); c.enqueue(new Uint8Array(200)); c.close() } }), {status: 203})`))})
	var r event.Receipt
	res := event.Response{Receipt: &r}
	req := request()
	if err := v.Serve(t.Context(), req, &res); err != nil {
		t.Fatal(err)
	}
	if r.Final || r.BodyOut != 0 || r.CPU <= 0 || r.Memory <= 0 || r.Wall <= 0 {
		t.Errorf("at the head: %+v", r)
	}
	clear(req.URL) // Serve has returned: it is its owner's again
	if b, err := io.ReadAll(res.Stream); err != nil || len(b) != 300 {
		t.Fatal(len(b), err)
	}
	res.Stream.Close()
	i := w.next(t)
	if got, want := fmt.Sprintf("%s %s %s %s %s %d %s %v %d", i.Kind, i.Worker, i.Version, i.Method, i.URL, i.Status, i.Outcome, i.Receipt.Final, i.Receipt.BodyOut),
		"fetch w1 v1 GET http://worker.test/path 203 ok true 300"; got != want {
		t.Errorf("told\n%s, want\n%s", got, want)
	}
	if got := callsOf(t, &i.Receipt); got != "fetch:1" {
		t.Errorf("calls: %s", got)
	}
}

// Every kind of invocation and every way to end is told once, with the words of the metrics.
func TestEveryInvocationIsTold(t *testing.T) {
	w := newSeen()
	s := newBox(t, Options{Watch: w.watch, MaxCPU: 200 * time.Millisecond, MaxRunning: 1})
	v := openVersion(t, s, Spec{Worker: "w1", Handlers: []string{"fetch", "scheduled", "queue"}, Graph: graphOf(`export default {
		fetch(request) { const u = new URL(request.url).pathname; if (u == '/throw') throw new Error('x'); if (u == '/spin') for (;;);
			if (u == '/cut') return new Response(new ReadableStream({ pull() { throw new Error('x') } })); return new Response('x') },
		scheduled() { }, queue() { throw new Error('x') } }`)})
	call := openVersion(t, s, Spec{Worker: "w2", Bindings: []binding.Binding{{Name: "OTHER", Service: v}}, Graph: graphOf(fetcher(`return env.OTHER.fetch('http://in.test/s?secret#f')`))})
	expect := func(want string) {
		t.Helper()
		i := w.next(t)
		if got := fmt.Sprintf("%s %s %s %s %d %s %s %d", i.Kind, i.Worker, i.Method, i.URL, i.Status, i.Outcome, i.Event, i.Batch); got != want {
			t.Errorf("told %s, want %s", got, want)
		}
		if !i.Receipt.Final {
			t.Errorf("%s: the receipt is not final", want)
		}
	}
	fetch := func(path string) {
		t.Helper()
		req := request()
		req.URL = []byte("http://user:pass@worker.test" + path)
		var res event.Response
		_ = v.Serve(t.Context(), req, &res)
		collect(&res)
	}
	fetch("/x?secret")
	expect("fetch w1 GET http://worker.test/x 200 ok  0")
	fetch("/throw")
	expect("fetch w1 GET http://worker.test/throw 0 worker_error  0")
	fetch("/spin")
	expect("fetch w1 GET http://worker.test/spin 0 cpu_exceeded  0")
	fetch("/cut")
	expect("fetch w1 GET http://worker.test/cut 200 worker_error  0")
	if _, err := v.Scheduled(t.Context(), event.Scheduled{Cron: "*/5 * * * *"}); err != nil {
		t.Fatal(err)
	}
	expect("scheduled w1   0 ok */5 * * * * 0")
	if _, err := v.Queue(t.Context(), &event.Batch{ID: "b", Queue: "tasks", Messages: make([]event.Message, 3), Settler: &recorder{}}); err == nil {
		t.Fatal("the handler threw")
	}
	expect("queue w1   0 worker_error tasks 3")
	text(t, call)
	expect("service w1 GET http://in.test/s 200 ok  0")
	expect("fetch w2 GET http://worker.test/path 200 ok  0")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	<-s.turns.line(new(queues), quick, until{}).ready // the only slot
	var res event.Response
	if err := v.Serve(ctx, request(), &res); err == nil {
		t.Error("there is no slot, and the client has left")
	}
	s.turns.give(quick)
	expect("fetch w1 GET http://worker.test/path 0 client_left  0")
	if err := v.Retire(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := v.Serve(t.Context(), request(), &res); !errors.Is(err, event.ErrNotServing) {
		t.Fatal(err)
	}
	if len(w) > 0 {
		t.Errorf("told of a version that was retired: another is asked, and nothing has happened: %+v", <-w)
	}
}

// A worker's counters have what the receipts of its invocations say.
func TestReceiptsAreCountedPerWorker(t *testing.T) {
	m := NewMetrics(nil)
	s := newBox(t, Options{Metrics: m, MaxCPU: 100 * time.Millisecond})
	kv := &memoryKV{entries: map[string]binding.KVEntry{}, ttl: map[string]time.Duration{}}
	v := openVersion(t, s, Spec{Worker: "a", Bindings: []binding.Binding{{Name: "CACHE", KV: kv}}, Graph: graphOf(fetcher(
		`await env.CACHE.get('k'); if (request.url.endsWith('spin')) for (;;); return new Response(await request.text())`))})
	serve(t, v, post(said("0123456789"), 10))
	req := request()
	req.URL = []byte("http://worker.test/spin")
	var res event.Response
	if err := v.Serve(t.Context(), req, &res); !errors.Is(err, event.ErrCPU) {
		t.Fatal(err)
	}
	w := m.workers.Of("a")
	for name, c := range map[string]float64{"in": testutil.ToFloat64(w.in) - 10, "out": testutil.ToFloat64(w.out) - 10,
		"kv calls": testutil.ToFloat64(w.waits["kv"].calls) - 2, "fetch calls": testutil.ToFloat64(w.waits[kindOutbound].calls),
		"near cpu": testutil.ToFloat64(w.near[limitCPU]) - 1, "near wall": testutil.ToFloat64(w.near[limitWall]), "near memory": testutil.ToFloat64(w.near[limitMemory])} {
		if c != 0 {
			t.Errorf("%s is off by %v", name, c)
		}
	}
	if s := testutil.ToFloat64(w.waits["kv"].seconds); s <= 0 {
		t.Errorf("the calls took %v s", s)
	}
	if b := testutil.ToFloat64(w.peak); b <= 0 || b > 8<<20 {
		t.Errorf("%v bytes at most", b)
	}
}
