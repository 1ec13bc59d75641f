package sandbox

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"edged/internal/fault"
	"edged/sandbox/event"
)

func begin(t *testing.T, v *Version, ctx context.Context) *event.Response {
	t.Helper()
	res := &event.Response{}
	if err := v.Serve(ctx, request(), res); err != nil {
		t.Fatal(err)
	}
	if res.Stream == nil {
		t.Fatal("the response is not streamed")
	}
	return res
}

// module-worker §3.1: the body is sent as it is produced; no length is invented.
func TestStreamAsProduced(t *testing.T) {
	s := newBox(t, Options{})
	v := openWorker(t, s, fetcher(`let n = 0; return new Response(new ReadableStream({
		async pull(c) { await new Promise(r => setTimeout(r, 2)); if (n === 3) c.close(); else c.enqueue(new TextEncoder().encode('part' + n++)) } }))`))
	res := begin(t, v, context.Background())
	if res.Length != -1 {
		t.Errorf("length %d", res.Length)
	}
	buf := make([]byte, 100)
	for i := range 3 {
		n, err := res.Stream.Read(buf)
		if want := fmt.Sprint("part", i); string(buf[:n]) != want || err != nil {
			t.Fatalf("got %q, %v, want %q", buf[:n], err, want)
		}
	}
	for range 2 {
		if _, err := res.Stream.Read(buf); err != io.EOF {
			t.Errorf("end: %v", err)
		}
	}
	res.Stream.Close()
	idle(t, v)
}

// Chunks of every size come through unchanged, whatever the reader's buffer is.
func TestStreamChunks(t *testing.T) {
	s := newBox(t, Options{})
	v := openWorker(t, s, fetcher(`const sizes = [0, 1, 65535, 65536, 65537, 300000, 0, 7]; let i = 0;
		return new Response(new ReadableStream({ pull(c) {
			if (i === sizes.length) return c.close();
			c.enqueue(new Uint8Array(sizes[i]).fill(65 + i++)); } }))`))
	var want strings.Builder
	for i, n := range []int{0, 1, 65535, 65536, 65537, 300000, 0, 7} {
		want.WriteString(strings.Repeat(string(rune('A'+i)), n))
	}
	for _, size := range []int{1 << 20, 4096, 100_003} {
		res := begin(t, v, context.Background())
		var got strings.Builder
		if _, err := io.CopyBuffer(struct{ io.Writer }{&got}, struct{ io.Reader }{res.Stream}, make([]byte, size)); err != nil {
			t.Fatal(err)
		}
		res.Stream.Close()
		if got.String() != want.String() {
			t.Errorf("buffer %d: %d bytes came through wrong", size, got.Len())
		}
	}
}

// A chunk is what it was when it was read: a worker that changes it later does not change what is sent.
func TestStreamChunkIsACopy(t *testing.T) {
	var l logs
	s := newBox(t, Options{Console: l.add})
	for _, size := range []int{1000, 100_000} {
		v := openWorker(t, s, fetcher(fmt.Sprintf(`const b = new Uint8Array(%d).fill(65); let n = 0;
			return new Response(new ReadableStream({ pull(c) {
				if (n++ > 0) return c.close();
				c.enqueue(b); setTimeout(() => { b.fill(33); console.log('changed %[1]d') }, 20) } }, { highWaterMark: 0 }))`, size)))
		res := begin(t, v, context.Background())
		head := make([]byte, 10)
		if _, err := io.ReadFull(res.Stream, head); err != nil {
			t.Fatal(err)
		}
		l.await(t, fmt.Sprint("changed ", size))
		rest, err := io.ReadAll(res.Stream)
		if got := string(head) + string(rest); err != nil || got != strings.Repeat("A", size) {
			t.Errorf("%d bytes: got %d, changed %v, %v", size, len(got), strings.Contains(got, "!"), err)
		}
		res.Stream.Close()
		idle(t, v)
	}
}

// Back-pressure: a reader that does not read holds the worker back, and memory stays bounded.
func TestStreamBackPressure(t *testing.T) {
	var l logs
	s := newBox(t, Options{Console: l.add})
	v := openWorker(t, s, fetcher(`let pulled = 0; ctx.waitUntil(new Promise(r => setTimeout(() => r(Promise.reject('pulled ' + pulled)), 200)));
		return new Response(new ReadableStream({ pull(c) { pulled++; c.enqueue(new Uint8Array(1000)) } }))`))
	res := begin(t, v, context.Background())
	if n, err := io.ReadFull(res.Stream, make([]byte, 5000)); n != 5000 || err != nil {
		t.Fatal(n, err)
	}
	l.await(t, "pulled")
	var pulled int
	fmt.Sscanf(l.String()[strings.Index(l.String(), "pulled"):], "pulled %d", &pulled)
	if pulled < 5 || pulled > 8 {
		t.Errorf("5 chunks were read and %d produced", pulled)
	}
	res.Stream.Close()
	idle(t, v)
}

// A body that fails after the head is an error for the reader, never a normal end; the reason is in the log only.
func TestStreamFailures(t *testing.T) {
	for _, c := range []struct{ name, source, log string }{
		{"error", `new ReadableStream({ start(c) { c.enqueue(new Uint8Array(3)) }, pull(c) { c.error(new Error('broke')) } })`, "broke"},
		{"throw in pull", `new ReadableStream({ start(c) { c.enqueue(new Uint8Array(3)) }, pull() { throw new Error('broke') } })`, "broke"},
		{"not bytes", `new ReadableStream({ start(c) { c.enqueue(new Uint8Array(3)); c.enqueue('text'); c.close() } })`, "Uint8Array"},
		{"stuck", `new ReadableStream({ start(c) { c.enqueue(new Uint8Array(3)) }, pull() { return new Promise(() => {}) } })`, "no longer happen"},
		{"too short", `new ReadableStream({ start(c) { c.enqueue(new Uint8Array(3)); c.close() } }), {headers: {'content-length': '5'}}`, "content-length"},
		{"too long", `new ReadableStream({ start(c) { c.enqueue(new Uint8Array(3)); c.enqueue(new Uint8Array(3)); c.close() } }), {headers: {'content-length': '5'}}`, "content-length"},
		{"loops", `new ReadableStream({ start(c) { c.enqueue(new Uint8Array(3)) }, pull() { for (;;) {} } })`, "cpu_exceeded"},
	} {
		t.Run(c.name, func(t *testing.T) {
			var l logs
			s := newBox(t, Options{Console: l.add, MaxCPU: 300 * time.Millisecond})
			v := openWorker(t, s, fetcher(`return new Response(`+c.source+`)`))
			res := begin(t, v, context.Background())
			b, err := io.ReadAll(res.Stream)
			if err == nil || len(b) > 5 {
				t.Errorf("read %d bytes, error %v", len(b), err)
			}
			if fault.CodeOf(err) == 0 {
				t.Errorf("error %v has no code", err)
			}
			res.Stream.Close()
			idle(t, v)
			if !strings.Contains(l.String(), c.log) {
				t.Errorf("log lacks %q: %s", c.log, l.String())
			}
		})
	}
}

// A declared length that is kept is told to the reader.
func TestStreamDeclaredLength(t *testing.T) {
	s := newBox(t, Options{})
	v := openWorker(t, s, fetcher(`return new Response(new ReadableStream({ start(c) { c.enqueue(new Uint8Array(5)); c.close() } }), {headers: {'content-length': '5'}})`))
	res := begin(t, v, context.Background())
	b, err := io.ReadAll(res.Stream)
	if len(b) != 5 || err != nil || res.Length != 5 {
		t.Errorf("read %d bytes of %d, %v", len(b), res.Length, err)
	}
	res.Stream.Close()
}

// The client leaves, by its context or by Close: the worker's stream is cancelled and request.signal aborted, soon.
func TestStreamCancelled(t *testing.T) {
	for _, byContext := range []bool{true, false} {
		var l logs
		s := newBox(t, Options{Console: l.add})
		v := openWorker(t, s, fetcher(`
			let done; ctx.waitUntil(new Promise((_, no) => { done = no }));
			let aborted = false; request.signal.addEventListener('abort', () => { aborted = true });
			return new Response(new ReadableStream({
				pull(c) { c.enqueue(new Uint8Array(10)) },
				cancel(reason) { done('cancelled: ' + reason.name + ' ' + aborted) } }))`))
		ctx, cancel := context.WithCancel(context.Background())
		res := begin(t, v, ctx)
		if _, err := io.ReadFull(res.Stream, make([]byte, 20)); err != nil {
			t.Fatal(err)
		}
		start := time.Now()
		if byContext {
			cancel()
		} else {
			res.Stream.Close()
		}
		idle(t, v)
		if took := time.Since(start); took > time.Second*scale {
			t.Errorf("took %v", took)
		}
		if want := fmt.Sprint("cancelled: AbortError ", byContext); !strings.Contains(l.String(), want) {
			t.Errorf("log lacks %q: %s", want, l.String())
		}
		if _, err := res.Stream.Read(make([]byte, 1)); err == nil || errors.Is(err, io.EOF) {
			t.Errorf("a cancelled stream reads %v", err)
		}
		res.Stream.Close()
		cancel()
	}
}

// module-worker §3.4: tasks go on after the response, a rejection only reaches the log, ctx ends with the invocation.
func TestWaitUntil(t *testing.T) {
	var l logs
	s := newBox(t, Options{Console: l.add})
	v := openWorker(t, s, fetcher(`
		for (let i = 0; i < 40; i++) ctx.waitUntil(new Promise(r => setTimeout(r, i)));
		ctx.waitUntil(Promise.reject(new Error('told to the log')));
		ctx.waitUntil('no promise');
		ctx.waitUntil((async () => { await new Promise(r => setTimeout(r, 60)); ctx.waitUntil(Promise.reject(new Error('registered late'))) })());
		return new Response('early')`))
	if got := text(t, v); got != "early" {
		t.Errorf("got %q", got)
	}
	idle(t, v)
	for _, want := range []string{"told to the log", "registered late"} {
		if strings.Count(l.String(), "waitUntil: Error: "+want) != 1 {
			t.Errorf("log: %s", l.String())
		}
	}
}

// waitUntil has a wall limit of its own; a task that can no longer settle ends at once.
func TestWaitUntilEnds(t *testing.T) {
	for _, c := range []struct {
		task, log string
		most      time.Duration
	}{
		{`new Promise(() => {})`, "can no longer happen", 100 * time.Millisecond},
		{`new Promise(r => setTimeout(r, 1e6))`, "wall_exceeded", 300 * time.Millisecond},
		{`(async () => { await null; for (;;) {} })()`, "cpu_exceeded", 300 * time.Millisecond},
	} {
		var l logs
		s := newBox(t, Options{Console: l.add, MaxWallEvents: 200 * time.Millisecond, MaxCPU: 100 * time.Millisecond})
		v := openWorker(t, s, fetcher(`const task = new Promise(r => setTimeout(r, 1)).then(() => `+c.task+`); ctx.waitUntil(task); return new Response('early')`))
		text(t, v)
		start := time.Now()
		idle(t, v)
		if took := time.Since(start); took > c.most*scale {
			t.Errorf("%s: took %v", c.task, took)
		}
		if !strings.Contains(l.String(), c.log) {
			t.Errorf("%s: log lacks %q: %s", c.task, c.log, l.String())
		}
	}
}
