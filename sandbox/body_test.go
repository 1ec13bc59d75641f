package sandbox

import (
	"context"
	"io"
	"strings"
	"sync"
	"testing"
	"time"

	"edged/internal/fault"
	"edged/sandbox/event"
)

// testBody is a request body whose bytes come when the test says so.
type testBody struct {
	mu     sync.Mutex
	change *sync.Cond
	data   []byte
	err    error // after data; io.EOF is the normal end
	closed bool
	taken  int // bytes read so far
	reads  int // blocking reads begun
}

func newBody() *testBody {
	b := &testBody{}
	b.change = sync.NewCond(&b.mu)
	return b
}

func (b *testBody) push(s string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.data = append(b.data, s...)
	b.change.Broadcast()
}

func (b *testBody) end(err error) {
	if err == nil {
		err = io.EOF
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.err = err
	b.change.Broadcast()
}

func (b *testBody) TryRead(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.takeLocked(p)
}

func (b *testBody) takeLocked(p []byte) (int, error) {
	if b.closed {
		return 0, io.ErrClosedPipe
	}
	n := copy(p, b.data)
	b.data = b.data[n:]
	b.taken += n
	if n == 0 && b.err != nil {
		return 0, b.err
	}
	return n, nil
}

func (b *testBody) Read(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.reads++
	b.change.Broadcast()
	for {
		if n, err := b.takeLocked(p); n > 0 || err != nil {
			return n, err
		}
		b.change.Wait()
	}
}

func (b *testBody) Close() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.closed = true
	b.change.Broadcast()
	return nil
}

// awaitRead waits until somebody waits for bytes.
func (b *testBody) awaitRead() {
	b.mu.Lock()
	defer b.mu.Unlock()
	for b.reads == 0 {
		b.change.Wait()
	}
}

func post(body event.Body, length int64) *event.Request {
	req := request()
	req.Method, req.Body, req.Length = []byte("POST"), body, length
	return req
}

// A body that is there is read in whole, in each of its forms.
func TestBodyWhole(t *testing.T) {
	s := newBox(t, Options{})
	for _, c := range []struct{ source, want string }{
		{`return new Response(await request.text())`, strings.Repeat("0123456789", 20_000)},
		{`return new Response(String((await request.arrayBuffer()).byteLength))`, "200000"},
		{`return new Response(await request.bytes())`, strings.Repeat("0123456789", 20_000)},
		{`return new Response(request.body)`, strings.Repeat("0123456789", 20_000)},
		{`return new Response('unread')`, "unread"},
	} {
		body := newBody()
		body.push(strings.Repeat("0123456789", 20_000))
		body.end(nil)
		got := serve(t, openWorker(t, s, fetcher(c.source)), post(body, 200_000))
		if got.body != c.want || got.err != nil {
			t.Errorf("%s: got %d bytes %.20q, %v", c.source, len(got.body), got.body, got.err)
		}
	}
}

// module-worker §3.1: the handler runs before the body is there and sees the first chunk before the second exists.
func TestBodyStreams(t *testing.T) {
	s := newBox(t, Options{})
	v := openWorker(t, s, fetcher(`
		const reader = request.body.getReader(), text = new TextDecoder();
		return new Response(new ReadableStream({ async pull(c) {
			const { done, value } = await reader.read();
			if (done) c.close(); else c.enqueue(value.map(b => b ^ 32));
		} }))`))
	body := newBody()
	var res event.Response
	if err := v.Serve(context.Background(), post(body, -1), &res); err != nil {
		t.Fatal(err)
	}
	defer res.Stream.Close()
	buf := make([]byte, 100)
	for _, part := range []string{"abc", "defg", "h"} {
		body.push(part)
		n, err := res.Stream.Read(buf)
		if got := string(buf[:n]); err != nil || got != strings.ToUpper(part) {
			t.Fatalf("sent %q, got %q, %v", part, got, err)
		}
	}
	body.end(nil)
	if _, err := res.Stream.Read(buf); err != io.EOF {
		t.Errorf("end: %v", err)
	}
}

// Back-pressure: the node takes no more of a body than the worker asked for.
func TestBodyBackPressure(t *testing.T) {
	s := newBox(t, Options{})
	v := openWorker(t, s, fetcher(`const r = request.body.getReader(); await r.read(); return new Response('one chunk')`))
	body := newBody()
	body.push(strings.Repeat("x", 1<<20))
	if got := serve(t, v, post(body, 1<<20)).body; got != "one chunk" {
		t.Errorf("got %q", got)
	}
	if body.taken > 2*bodyBufferBytes {
		t.Errorf("%d bytes were taken for one read", body.taken)
	}
}

// A body that fails errors request.body; the handler can tell why and still answer.
func TestBodyErrors(t *testing.T) {
	s := newBox(t, Options{})
	v := openWorker(t, s, fetcher(`try { await request.text(); return new Response('no error') }
		catch (e) { return new Response(e.name + (e instanceof DOMException ? ' DOM' : '')) }`))
	for _, c := range []struct {
		err  error
		want string
	}{
		{event.ErrBodyTooBig, "TypeError"},
		{event.ErrBodyAborted, "AbortError DOM"},
		{io.ErrUnexpectedEOF, "TypeError"},
	} {
		for _, late := range []bool{false, true} {
			body := newBody()
			body.push("some")
			if late {
				go func() {
					body.awaitRead()
					body.end(c.err)
				}()
			} else {
				body.end(c.err)
			}
			if got := serve(t, v, post(body, -1)).body; got != c.want {
				t.Errorf("%v (late: %v): got %q, want %q", c.err, late, got, c.want)
			}
		}
	}
}

// The client leaves while the handler waits for its body: request.signal aborts, the body fails, Serve returns at once,
// and what the handler does then still counts as the invocation.
func TestClientLeavesBeforeHead(t *testing.T) {
	var l logs
	s := newBox(t, Options{Console: l.add})
	v := openWorker(t, s, fetcher(`
		let seen = ''; request.signal.addEventListener('abort', () => { seen = request.signal.reason.name });
		ctx.waitUntil((async () => { await new Promise(r => setTimeout(r, 300)); throw new Error('cleaned up after ' + seen) })());
		await request.text()`))
	ctx, cancel := context.WithCancel(context.Background())
	body := newBody()
	go func() {
		body.awaitRead()
		cancel()
	}()
	var res event.Response
	err := v.Serve(ctx, post(body, -1), &res)
	if fault.CodeOf(err) != fault.Canceled {
		t.Errorf("error %v, want canceled", err)
	}
	idle(t, v)
	if got := l.String(); !strings.Contains(got, "AbortError") {
		t.Errorf("log: %s", got)
	}
}

// A signal that nobody looked at before the client left is born aborted.
func TestSignalAfterClientLeft(t *testing.T) {
	var l logs
	s := newBox(t, Options{Console: l.add})
	v := openWorker(t, s, fetcher(`await request.text().catch(() => {}); throw new Error('aborted: ' + request.signal.aborted)`))
	ctx, cancel := context.WithCancel(context.Background())
	body := newBody()
	go func() {
		body.awaitRead()
		cancel()
	}()
	var res event.Response
	_ = v.Serve(ctx, post(body, -1), &res)
	idle(t, v)
	if got := l.String(); !strings.Contains(got, "aborted: true") {
		t.Errorf("log: %s", got)
	}
}

// A body that the worker does not want is closed, and nothing reads it after the exchange.
func TestBodyCancel(t *testing.T) {
	s := newBox(t, Options{})
	body := newBody()
	body.push("x")
	v := openWorker(t, s, fetcher(`await request.body.cancel(); return new Response('done')`))
	if got := serve(t, v, post(body, -1)).body; got != "done" || !body.closed {
		t.Errorf("got %q, closed %v", got, body.closed)
	}
	// A read that is open when the response is complete is cut short.
	body = newBody()
	v = openWorker(t, s, fetcher(`request.body.getReader().read().catch(() => {}); await new Promise(r => setTimeout(r, 20)); return new Response('done')`))
	start := time.Now()
	if got := serve(t, v, post(body, -1)).body; got != "done" || !body.closed {
		t.Errorf("got %q, closed %v", got, body.closed)
	}
	if time.Since(start) > 5*time.Second {
		t.Errorf("took %v", time.Since(start))
	}
}

// Isolation worker: a request that outlived its invocation reads nothing of the next one's body and follows no signal of it.
func TestStaleRequest(t *testing.T) {
	s := newBox(t, Options{Isolation: IsolateWorker})
	v := openWorker(t, s, `let old, stream; export default { async fetch(request) {
		const was = old; old = request;
		if (!was) { stream = request.clone().body; return new Response('first') }
		const out = [];
		for (const read of [() => was.text(), () => stream.getReader().read(), () => was.clone().text()]) {
			try { out.push(await read()) } catch (e) { out.push(e.name) } }
		return new Response(out + ' ' + await request.text() + ' ' + (was.signal === request.signal)) } }`)
	for i, want := range []string{"first", "AbortError,AbortError,TypeError mine false"} {
		body := newBody()
		if i > 0 {
			body.push("mine")
		}
		body.end(nil)
		if got := serve(t, v, post(body, -1)).body; got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}
