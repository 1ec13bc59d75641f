package router

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"edged/sandbox/event"
)

// echo answers with what it read, as a whole.
func echo(_ context.Context, req *event.Request, res *event.Response) error {
	res.Status = 200
	if req.Body == nil {
		res.Body = append(res.Body, "no body"...)
		return nil
	}
	b, err := io.ReadAll(req.Body)
	res.Body = append(res.Body, b...)
	return err
}

// module-worker §3.1: the handler starts from the head; of a body of known length, whose second half comes later, it sees
// the first half before.
func TestHandlerStartsBeforeTheBodyArrived(t *testing.T) {
	const half = 6 << 10
	for _, early := range []int{0, 1, half} {
		t.Run(fmt.Sprint(early), func(t *testing.T) {
			started, saw := make(chan int64, 1), make(chan int, 1)
			f := start(t, Options{}, serving(func(_ context.Context, req *event.Request, res *event.Response) error {
				started <- req.Length
				first := make([]byte, max(early, 1))
				n, err := io.ReadFull(req.Body, first)
				if err != nil {
					return err
				}
				saw <- n
				rest, err := io.ReadAll(req.Body)
				if err != nil {
					return err
				}
				return answer(res, 200, fmt.Sprint(n+len(rest)))
			}))
			c := f.dial(t)
			c.send(fmt.Sprintf("POST / HTTP/1.1\r\nHost: a.test\r\nContent-Length: %d\r\n\r\n%s", 2*half, strings.Repeat("x", early)))
			if n := wait(t, "the handler", started); n != 2*half {
				t.Errorf("Length %d", n)
			}
			if early > 0 {
				wait(t, "the first bytes", saw)
			}
			c.send(strings.Repeat("y", 2*half-early))
			if _, body := c.response("POST"); body != fmt.Sprint(2*half) {
				t.Errorf("the handler read %s bytes", body)
			}
		})
	}
}

// module-worker §8: the first chunk is observable before the second exists, no declared length.
func TestChunkedRequestStreams(t *testing.T) {
	pieces := make(chan string)
	f := start(t, Options{}, serving(func(_ context.Context, req *event.Request, res *event.Response) error {
		if req.Length != -1 {
			t.Errorf("Length %d", req.Length)
		}
		buf := make([]byte, 100)
		for {
			n, err := req.Body.Read(buf)
			if n > 0 {
				pieces <- string(buf[:n])
			}
			if err == io.EOF {
				return answer(res, 200, "done")
			} else if err != nil {
				return err
			}
		}
	}))
	c := f.dial(t)
	c.send("POST / HTTP/1.1\r\nHost: a.test\r\nTransfer-Encoding: chunked\r\n\r\n")
	c.send("5;ext=1\r\nfirst\r\n")
	if got := wait(t, "the first chunk", pieces); got != "first" {
		t.Errorf("got %q", got)
	}
	c.send("6\r\nsecond\r\n0\r\nTrailer: x\r\n\r\nGET /next HTTP/1.1\r\nHost: nobody.test\r\n\r\n")
	if got := wait(t, "the second chunk", pieces); got != "second" {
		t.Errorf("got %q", got)
	}
	if _, body := c.response("POST"); body != "done" {
		t.Errorf("got %q", body)
	}
	res, _ := c.response("GET")
	checkError(t, res, 404, "unknown_host")
}

// Whatever a handler leaves of a body, none of it is parsed as a request (request smuggling).
func TestUnreadBodyIsNeverARequest(t *testing.T) {
	const smuggled = "GET /smuggled HTTP/1.1\r\nHost: a.test\r\n\r\n"
	var paths []string
	f := start(t, Options{}, serving(func(_ context.Context, req *event.Request, res *event.Response) error {
		paths = append(paths, string(req.URL))
		if strings.HasSuffix(string(req.URL), "/some") {
			if _, err := io.ReadFull(req.Body, make([]byte, 5)); err != nil {
				return err
			}
		}
		return answer(res, 200, "ok")
	}))
	big := strings.Repeat(smuggled, 2*drainBytes/len(smuggled))
	chunked := func(s string) string {
		return fmt.Sprintf("Transfer-Encoding: chunked\r\n\r\n%x\r\n%s\r\n0\r\n\r\n", len(s), s)
	}
	sized := func(s string) string { return fmt.Sprintf("Content-Length: %d\r\n\r\n%s", len(s), s) }
	for _, tt := range []struct {
		name, method, path, body string
		keeps                    bool
	}{
		{"sized", "POST", "/none", sized(smuggled), true},
		{"chunked", "POST", "/none", chunked(smuggled), true},
		{"sized half read", "POST", "/some", sized(smuggled), true},
		{"chunked half read", "POST", "/some", chunked(smuggled), true},
		{"get", "GET", "/none", sized(smuggled), true},
		{"get chunked", "GET", "/none", chunked(smuggled), true},
		{"big", "POST", "/none", sized(big), false},
		{"big chunked", "POST", "/none", chunked(big), false},
		{"broken chunks", "POST", "/none", "Transfer-Encoding: chunked\r\n\r\nzz\r\n" + smuggled, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			paths = nil
			c := f.dial(t)
			go func() { // ends at the latest when the connection is closed
				_, _ = io.WriteString(c.Conn, tt.method+" "+tt.path+" HTTP/1.1\r\nHost: a.test\r\n"+tt.body+
					"GET /after HTTP/1.1\r\nHost: nobody.test\r\n\r\n")
			}()
			if res, body := c.response(tt.method); res.StatusCode != 200 || body != "ok" {
				t.Fatalf("got %d %q", res.StatusCode, body)
			}
			if tt.keeps {
				res, _ := c.response("GET")
				checkError(t, res, 404, "unknown_host")
			} else {
				c.closed()
			}
			if len(paths) != 1 {
				t.Errorf("handler ran for %q", paths)
			}
		})
	}
}

// node-surface §2: --max-request-body is 413 before the handler when declared, an aborted body when not.
func TestBodyLimit(t *testing.T) {
	const limit = 1000
	calls := make(chan error, 10)
	f := start(t, Options{MaxRequestBodyBytes: limit}, serving(func(_ context.Context, req *event.Request, res *event.Response) error {
		b, err := io.ReadAll(req.Body)
		calls <- err
		if err != nil {
			return err
		}
		return answer(res, 200, fmt.Sprint(len(b)))
	}))
	chunk := func(n int) string {
		return fmt.Sprintf("Transfer-Encoding: chunked\r\n\r\n%x\r\n%s\r\n0\r\n\r\n", n, strings.Repeat("x", n))
	}
	c := f.dial(t)
	c.send(fmt.Sprintf("POST / HTTP/1.1\r\nHost: a.test\r\nContent-Length: %d\r\n\r\n%s", limit, strings.Repeat("x", limit)))
	if _, body := c.response("POST"); body != "1000" {
		t.Errorf("at the limit: %q", body)
	}
	c.send("POST / HTTP/1.1\r\nHost: a.test\r\n" + chunk(limit))
	if _, body := c.response("POST"); body != "1000" {
		t.Errorf("at the limit, undeclared: %q", body)
	}
	for range 2 {
		if err := wait(t, "a call", calls); err != nil {
			t.Error(err)
		}
	}
	c.send(fmt.Sprintf("POST / HTTP/1.1\r\nHost: a.test\r\nContent-Length: %d\r\nExpect: 100-continue\r\n\r\n", limit+1))
	res, _ := c.response("POST")
	checkError(t, res, 413, "body_too_large")
	c.closed()
	if len(calls) > 0 {
		t.Error("the handler ran")
	}
	c = f.dial(t)
	c.send("POST / HTTP/1.1\r\nHost: a.test\r\n" + chunk(limit+1))
	res, _ = c.response("POST")
	checkError(t, res, 413, "body_too_large")
	if err := wait(t, "a call", calls); !errors.Is(err, event.ErrBodyTooBig) {
		t.Errorf("the body ended with %v", err)
	}
	c.closed()
}

// A client that goes on sending after it was refused is not reset: it could lose the answer.
func TestRefusalReachesABusySender(t *testing.T) {
	f := start(t, Options{MaxRequestBodyBytes: 10}, serving(echo))
	c := f.dial(t)
	c.send("POST / HTTP/1.1\r\nHost: a.test\r\nContent-Length: 300000\r\n\r\n" + strings.Repeat("x", 100000))
	res, _ := c.response("POST")
	checkError(t, res, 413, "body_too_large")
	for range 10 {
		c.send(strings.Repeat("x", 10000))
	}
	c.closed()
}

// RFC 9110 §10.1.1: 100 is sent when the worker reads, not before, and not after the response began.
func TestExpectContinue(t *testing.T) {
	read := make(chan bool)
	f := start(t, Options{}, serving(func(ctx context.Context, req *event.Request, res *event.Response) error {
		if strings.HasSuffix(string(req.URL), "/stream") {
			res.Status, res.Stream = 200, io.NopCloser(req.Body)
			return nil
		}
		if !<-read {
			return answer(res, 200, "unread")
		}
		return echo(ctx, req, res)
	}))
	const head = " HTTP/1.1\r\nHost: a.test\r\nContent-Length: 4\r\nExpect: 100-continue\r\n\r\n"
	c := f.dial(t)
	c.send("POST /" + head)
	if c.br.Buffered() > 0 {
		t.Error("an answer before the worker read")
	}
	read <- true
	if res := c.head("POST"); res.StatusCode != 100 {
		t.Fatalf("got %d, want 100", res.StatusCode)
	}
	c.send("body")
	if res, body := c.response("POST"); body != "body" || res.Close {
		t.Errorf("got %q, close %t", body, res.Close)
	}
	c.send("POST /stream" + head)
	if res := c.head("POST"); res.StatusCode != 100 {
		t.Fatalf("an answer made of the body: got %d, want 100", res.StatusCode)
	}
	c.send("flow")
	if _, body := c.response("POST"); body != "flow" {
		t.Errorf("got %q", body)
	}
	c.send("POST /" + head)
	read <- false
	if res, body := c.response("POST"); res.StatusCode != http.StatusOK || body != "unread" || !res.Close {
		t.Errorf("got %d %q, close %t: it is open whether the body follows", res.StatusCode, body, res.Close)
	}
	c.closed()
}

// event.Body: TryRead does not wait, Close wakes a reader, and a body is dead after its exchange.
func TestBodyDoor(t *testing.T) {
	bodies := make(chan event.Body, 1)
	f := start(t, Options{}, serving(func(_ context.Context, req *event.Request, res *event.Response) error {
		bodies <- req.Body
		buf := make([]byte, 10)
		if n, err := req.Body.TryRead(buf); n != 0 || err != nil {
			t.Errorf("TryRead of nothing: %d, %v", n, err)
		}
		ended := make(chan error)
		go func() { // ends by Close
			_, err := req.Body.Read(buf)
			ended <- err
		}()
		if err := req.Body.Close(); err != nil {
			t.Error(err)
		}
		if err := <-ended; !errors.Is(err, event.ErrBodyAborted) {
			t.Errorf("a closed read gives %v", err)
		}
		return answer(res, 200, "ok")
	}))
	c := f.dial(t)
	c.send("POST / HTTP/1.1\r\nHost: a.test\r\nContent-Length: 4\r\n\r\n")
	if _, body := c.response("POST"); body != "ok" {
		t.Fatalf("got %q", body)
	}
	old := <-bodies
	// The body's bytes come late, then another request with a body: the old body must see neither.
	c.send("bodyPOST / HTTP/1.1\r\nHost: a.test\r\nContent-Length: 4\r\n\r\n")
	if res, _ := c.response("POST"); res.StatusCode != 200 {
		t.Errorf("got %d", res.StatusCode)
	}
	if n, err := old.Read(make([]byte, 10)); n != 0 || !errors.Is(err, event.ErrBodyAborted) {
		t.Errorf("the old body gives %d, %v", n, err)
	}
	if n, err := old.TryRead(make([]byte, 10)); n != 0 || !errors.Is(err, event.ErrBodyAborted) {
		t.Errorf("the old body gives %d, %v without waiting", n, err)
	}
}

// TryRead sees bytes that the kernel has but nobody read yet.
func TestTryReadLooksIntoTheSocket(t *testing.T) {
	started, sent := make(chan bool), make(chan bool)
	f := start(t, Options{}, serving(func(_ context.Context, req *event.Request, res *event.Response) error {
		started <- true
		<-sent
		buf := make([]byte, 10)
		for { // loopback delivers in its own time
			if n, err := req.Body.TryRead(buf); n > 0 {
				return answer(res, 200, fmt.Sprint(string(buf[:n]), err))
			}
		}
	}))
	c := f.dial(t)
	c.send("POST / HTTP/1.1\r\nHost: a.test\r\nContent-Length: 4\r\n\r\n")
	<-started
	c.send("late")
	sent <- true
	if _, body := c.response("POST"); body != "lateEOF" {
		t.Errorf("got %q", body)
	}
}

// A body that its sender cuts, or stalls, ends in an error and never in a short success.
func TestCutAndStalledBodies(t *testing.T) {
	errs := make(chan error, 1)
	f := start(t, Options{BodyTimeout: 50 * time.Millisecond}, serving(func(_ context.Context, req *event.Request, res *event.Response) error {
		_, err := io.ReadAll(req.Body)
		errs <- err
		return err
	}))
	for _, framing := range []string{"Content-Length: 10\r\n\r\nabc", "Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n"} {
		c := f.dial(t)
		c.send("POST / HTTP/1.1\r\nHost: a.test\r\n" + framing)
		if err := c.Close(); err != nil {
			t.Fatal(err)
		}
		if err := wait(t, "the end", errs); !errors.Is(err, event.ErrBodyAborted) {
			t.Errorf("cut: %v", err)
		}
		c = f.dial(t)
		c.send("POST / HTTP/1.1\r\nHost: a.test\r\n" + framing)
		if err := wait(t, "the end", errs); !errors.Is(err, event.ErrBodyAborted) {
			t.Errorf("stalled: %v", err)
		}
		res, _ := c.response("POST")
		checkError(t, res, 400, "bad_request")
		c.closed()
	}
}

// Bodies of every size come through whole, whatever the reader's room.
func TestBodiesComeThroughWhole(t *testing.T) {
	f := start(t, Options{}, serving(func(_ context.Context, req *event.Request, res *event.Response) error {
		room := 1000
		if strings.HasSuffix(string(req.URL), "/big") {
			room = 64 << 10
		}
		buf, sum, total := make([]byte, room), 0, 0
		for {
			n, err := req.Body.Read(buf)
			for _, b := range buf[:n] {
				sum += int(b)
			}
			total += n
			if err == io.EOF {
				return answer(res, 200, fmt.Sprint(total, sum))
			} else if err != nil {
				return err
			}
		}
	}))
	c := f.dial(t)
	for _, size := range []int{1, 4095, 4096, 4097, 70_000, 1_000_000} {
		var all strings.Builder
		sum := 0
		for i := range size {
			all.WriteByte(byte('a' + i%26))
			sum += 'a' + i%26
		}
		s := all.String()
		var chunks strings.Builder
		for rest, n := s, 1; len(rest) > 0; n = n*3 + 1 {
			piece := rest[:min(n, len(rest))]
			rest = rest[len(piece):]
			fmt.Fprintf(&chunks, "%x\r\n%s\r\n", len(piece), piece)
		}
		for _, framing := range []string{fmt.Sprintf("Content-Length: %d\r\n\r\n%s", size, s), "Transfer-Encoding: chunked\r\n\r\n" + chunks.String() + "0\r\n\r\n"} {
			for _, path := range []string{"/small", "/big"} {
				c.send("POST " + path + " HTTP/1.1\r\nHost: a.test\r\n" + framing)
				if _, body := c.response("POST"); body != fmt.Sprint(size, sum) {
					t.Errorf("%d bytes %s: got %s, want %d %d", size, path, body, size, sum)
				}
			}
		}
	}
}
