package sandbox

import (
	"context"
	"testing"
	"time"

	"edged/sandbox/binding"
	"edged/sandbox/event"
)

// nothingHeld fails if a host call left something behind in the count of the node's memory.
func nothingHeld(t *testing.T, s *Sandbox) {
	t.Helper()
	if n := s.held.arguments.Load(); n != 0 {
		t.Errorf("%d bytes of arguments are held by nobody", n)
	}
	if !s.held.results.TryAcquire(s.opt.MaxHeldBytes) || !s.held.reads.TryAcquire(readsAtOnce) {
		t.Error("results are held by nobody")
	}
	s.held.results.Release(s.opt.MaxHeldBytes)
	s.held.reads.Release(readsAtOnce)
}

// withKV opens a worker with a namespace KV.
func withKV(t *testing.T, s *Sandbox, kv binding.KV, body string) *Version {
	t.Helper()
	return openVersion(t, s, Spec{Bindings: []binding.Binding{{Name: "KV", KV: kv}}, Graph: graphOf(told + fetcher(body))})
}

// module-worker §6: what the open calls of one invocation hold in the node's memory is bounded; a call beyond fails by its
// contract error, and those that end make room.
func TestArgumentsAreBounded(t *testing.T) {
	s := newBox(t, Options{MaxCallBytes: 1 << 20})
	kv := &memoryKV{entries: map[string]binding.KVEntry{}, ttl: map[string]time.Duration{}}
	v := withKV(t, s, kv, `
		const value = new Uint8Array(200 << 10);
		const put = () => env.KV.put('k', value).then(() => 'ok', (e) => e.name);
		const count = (all) => all.filter((r) => r === 'ok').length + ' ' + all.filter((r) => r === 'backend_unavailable').length;
		const first = count(await Promise.all(Array.from({length: 20}, put)));
		const one = await put();
		return new Response(first + ' ' + one)`)
	if got := text(t, v); got != "5 15 ok" {
		t.Errorf("got %q, want %q", got, "5 15 ok")
	}
	idle(t, v)
	nothingHeld(t, s)
}

// One invocation's large arguments may make another's large ones fail, never its small ones.
func TestNodeBoundSparesSmallCalls(t *testing.T) {
	s := newBox(t, Options{MaxHeldBytes: 256 << 10, MaxWall: 2 * time.Second})
	busy := make(chan struct{}, 1)
	greedy := caller(t, s, funcService(func(ctx context.Context, req *event.Request, _ *event.Response) error {
		busy <- struct{}{}
		<-ctx.Done()
		return ctx.Err()
	}), `await env.OTHER.fetch('http://h/', {method: 'PUT', body: new Uint8Array(300 << 10)}); return new Response()`)
	kv := &memoryKV{entries: map[string]binding.KVEntry{}, ttl: map[string]time.Duration{}}
	good := withKV(t, s, kv, `return new Response([await env.KV.put('a', new Uint8Array(60 << 10)).then(() => 'ok'),
		await env.KV.put('b', new Uint8Array(200 << 10)).catch((e) => e.name)].join())`)
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	done := make(chan error, 1)
	go func() {
		var res event.Response
		done <- greedy.Serve(ctx, request(), &res)
	}()
	<-busy
	if got := text(t, good); got != "ok,backend_unavailable" {
		t.Errorf("beside a greedy worker: %q", got)
	}
	wantErr(t, <-done, event.ErrWall)
	idle(t, greedy)
	if got := text(t, good); got != "ok," {
		t.Errorf("after it: %q", got)
	}
	idle(t, good)
	nothingHeld(t, s)
}

// A result waits for room, and every one of many large ones comes.
func TestResultsWaitForRoom(t *testing.T) {
	s := newBox(t, Options{MaxCallBytes: 1 << 20, MaxHeldBytes: 512 << 10})
	kv := &memoryKV{entries: map[string]binding.KVEntry{"k": {Value: make([]byte, 200<<10)}}, ttl: map[string]time.Duration{}}
	v := withKV(t, s, kv, `const all = await Promise.all(Array.from({length: 40}, () => env.KV.get('k')));
		return new Response(String(all.filter((b) => b.byteLength === 200 << 10).length))`)
	if got := text(t, v); got != "40" {
		t.Errorf("got %q", got)
	}
	// An invocation that ends while results wait leaves none behind.
	v = withKV(t, s, kv, `for (let i = 0; i < 40; i++) env.KV.get('k'); const t = Date.now(); while (Date.now() - t < 30); return new Response('x')`)
	if got := text(t, v); got != "x" {
		t.Errorf("got %q", got)
	}
	idle(t, v)
	nothingHeld(t, s)
}

// A read that finds no room forgets what it read, and reads again when there is some.
func TestRoomReadsAgain(t *testing.T) {
	var h held
	opt := Options{MaxCallBytes: 1 << 20, MaxHeldBytes: 1 << 20}
	h.init(&opt)
	g := &guest{box: &Sandbox{opt: opt}}
	first, second := g.room(), g.room()
	first.box, second.box = &h, &h
	read := func() (int, error) { return 800 << 10, nil }
	if err := first.Read(t.Context(), read, func() { t.Error("forgotten") }); err != nil {
		t.Fatal(err)
	}
	reads, forgotten, done := 0, make(chan struct{}), make(chan error)
	go func() {
		done <- second.Read(t.Context(), func() (int, error) { reads++; return 800 << 10, nil }, func() { close(forgotten) })
	}()
	<-forgotten
	select {
	case <-done:
		t.Fatal("there was no room")
	default:
	}
	first.free()
	if err := <-done; err != nil || reads != 2 {
		t.Errorf("%d reads, %v; want 2", reads, err)
	}
	second.free()
	if !h.results.TryAcquire(1 << 20) {
		t.Error("room is lost")
	}
}

// Exchanges that are over leave nothing in the node: an invocation may make any number of them, one after another, while
// bodies that are never read are bounded.
func TestExchangesAreForgotten(t *testing.T) {
	var l logs
	s := newBox(t, Options{MaxSubrequests: 20, Console: l.add, Fetch: funcFetcher(func(_ context.Context, _ *binding.Outbound, res *event.Response) error {
		res.Status, res.Stream = 200, newStream(-1)
		return nil
	})})
	b := newMemoryBucket()
	v := openVersion(t, s, Spec{Bindings: []binding.Binding{{Name: "B", Bucket: b, Counted: true}}, Graph: graphOf(told + fetcher(`
		await env.B.put('k', 'value');
		for (let i = 0; i < 60; i++) await env.B.head('k');
		for (let i = 0; i < 60; i++) await new Response((await env.B.get('k')).body).text();
		for (let i = 0; i < 60; i++) await (await env.B.get('k')).body.cancel();
		for (let i = 0; i < 60; i++) await env.B.put('k', new Response('value').body);
		let open = 0, e = '';
		try { for (;; open++) await env.B.get('k') } catch (x) { e = x.name }
		return new Response(open + e)`))})
	var res event.Response
	if err := v.Serve(context.Background(), request(), &res); err != nil || string(res.Body) != "20RangeError" {
		got := string(res.Body)
		t.Errorf("got %q, want %q; log: %s", got, "20RangeError", &l)
	}
}
