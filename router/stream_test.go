package router

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"edged/sandbox/event"
)

// source is a response stream under a test's control. It gives what is sent to pieces; a closed channel is its end.
type source struct {
	pieces chan string
	fails  error // the end, instead of io.EOF
	closes atomic.Int32
	closed chan struct{}
}

func newSource() *source {
	return &source{pieces: make(chan string), closed: make(chan struct{})}
}

func (s *source) Read(p []byte) (int, error) {
	select {
	case piece, more := <-s.pieces:
		if !more && s.fails != nil {
			return 0, s.fails
		} else if !more {
			return 0, io.EOF
		}
		return copy(p, piece), nil
	case <-s.closed:
		return 0, io.ErrClosedPipe
	}
}

func (s *source) Close() error {
	if s.closes.Add(1) == 1 {
		close(s.closed)
	}
	return nil
}

func streaming(s *source, length int64) handlerFunc {
	return func(_ context.Context, _ *event.Request, res *event.Response) error {
		res.Status, res.Stream, res.Length = 200, s, length
		return nil
	}
}

func (s *source) checkClosedOnce(t *testing.T) {
	t.Helper()
	wait(t, "the stream's end", s.closed)
	if n := s.closes.Load(); n != 1 {
		t.Errorf("the stream was closed %d times", n)
	}
}

// module-worker §§3.1, 8: head and every piece go out as they are produced, without an invented length; a declared one is
// kept to.
func TestStreamGoesOutAsProduced(t *testing.T) {
	for _, length := range []int64{-1, 9} {
		t.Run(fmt.Sprint(length), func(t *testing.T) {
			s := newSource()
			f := start(t, Options{}, serving(streaming(s, length)))
			c := f.dial(t)
			c.send("GET / HTTP/1.1\r\nHost: a.test\r\n\r\n")
			res := c.head("GET") // before any piece exists
			if res.ContentLength != length {
				t.Errorf("Content-Length %d", res.ContentLength)
			}
			for _, piece := range []string{"one", "two", "six"} {
				s.pieces <- piece
				got := make([]byte, 3)
				if _, err := io.ReadFull(res.Body, got); err != nil || string(got) != piece {
					t.Fatalf("got %q, %v", got, err)
				}
			}
			close(s.pieces)
			if rest, err := io.ReadAll(res.Body); err != nil || len(rest) > 0 {
				t.Errorf("end: %q, %v", rest, err)
			}
			s.checkClosedOnce(t)
			c.send("GET / HTTP/1.1\r\nHost: nobody.test\r\n\r\n")
			res, _ = c.response("GET")
			checkError(t, res, 404, "unknown_host")
		})
	}
}

// module-worker §3.1: an error after the head cuts the body visibly; so does a length that was a lie.
func TestStreamErrorCutsVisibly(t *testing.T) {
	for _, tt := range []struct {
		name   string
		proto  string
		length int64
		fails  error
	}{
		{"chunked", "HTTP/1.1", -1, event.ErrCPU},
		{"declared", "HTTP/1.1", 100, event.ErrCPU},
		{"close-delimited", "HTTP/1.0", -1, event.ErrCPU},
		{"too short", "HTTP/1.1", 100, nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := newSource()
			s.fails = tt.fails
			f := start(t, Options{}, serving(streaming(s, tt.length)))
			c := f.dial(t)
			c.send("GET / " + tt.proto + "\r\nHost: a.test\r\n\r\n")
			res := c.head("GET")
			s.pieces <- "some"
			if _, err := io.ReadFull(res.Body, make([]byte, 4)); err != nil {
				t.Fatal(err)
			}
			close(s.pieces)
			if _, err := io.ReadAll(res.Body); err == nil {
				t.Error("the cut cannot be seen")
			}
			s.checkClosedOnce(t)
		})
	}
	t.Run("too long", func(t *testing.T) {
		s := newSource()
		f := start(t, Options{}, serving(streaming(s, 3)))
		c := f.dial(t)
		c.send("GET / HTTP/1.1\r\nHost: a.test\r\n\r\n")
		res := c.head("GET")
		s.pieces <- "more"
		if b, err := io.ReadAll(res.Body); err != nil || string(b) != "mor" {
			t.Errorf("got %q, %v", b, err)
		}
		c.closed()
		s.checkClosedOnce(t)
	})
	t.Run("panic", func(t *testing.T) {
		f := start(t, Options{}, serving(func(_ context.Context, _ *event.Request, res *event.Response) error {
			res.Status, res.Stream = 200, panicking{}
			return nil
		}))
		c := f.dial(t)
		c.send("GET / HTTP/1.1\r\nHost: a.test\r\n\r\n")
		if _, err := io.ReadAll(c.head("GET").Body); err == nil {
			t.Error("the cut cannot be seen")
		}
	})
}

type panicking struct{}

func (panicking) Read([]byte) (int, error) { panic("bug") }
func (panicking) Close() error             { return nil }

// HEAD, 204 and 304 have no body; a stream that nobody reads is cancelled.
func TestResponsesWithoutBody(t *testing.T) {
	for _, tt := range []struct {
		method string
		status int
		fill   func(res *event.Response)
		length string
	}{
		{"HEAD", 200, func(res *event.Response) { res.Body = append(res.Body, "body"...) }, "4"},
		{"HEAD", 200, func(res *event.Response) { res.Null, res.Header = true, append(res.Header, "content-length\n77\n"...) }, "77"},
		{"HEAD", 200, func(res *event.Response) { res.Length = 5; res.Stream = newSource() }, "5"},
		{"HEAD", 200, func(res *event.Response) { res.Stream = newSource() }, ""},
		{"GET", 204, func(res *event.Response) { res.Null = true }, ""},
		{"GET", 204, func(res *event.Response) { res.Stream = newSource() }, ""},
		{"GET", 304, func(res *event.Response) { res.Body = append(res.Body, "body"...) }, ""},
		{"GET", 200, func(res *event.Response) { res.Null = true }, "0"},
	} {
		var stream io.ReadCloser
		f := start(t, Options{}, serving(func(_ context.Context, _ *event.Request, res *event.Response) error {
			res.Status = tt.status
			tt.fill(res)
			stream = res.Stream
			return nil
		}))
		c := f.dial(t)
		c.send(tt.method + " / HTTP/1.1\r\nHost: a.test\r\n\r\nGET / HTTP/1.1\r\nHost: nobody.test\r\n\r\n")
		res, body := c.response(tt.method)
		if got := res.Header.Get("Content-Length"); res.StatusCode != tt.status || body != "" || got != tt.length {
			t.Errorf("%s %d: got %d, body %q, length %q", tt.method, tt.status, res.StatusCode, body, got)
		}
		res, _ = c.response("GET")
		checkError(t, res, 404, "unknown_host")
		if s, ok := stream.(*source); ok {
			s.checkClosedOnce(t)
		}
	}
}

// Back-pressure: a client that takes nothing stops the producer.
func TestStreamWaitsForTheClient(t *testing.T) {
	var reads atomic.Int64
	piece := strings.Repeat("x", 32<<10)
	s := newSource()
	f := start(t, Options{}, serving(streaming(s, -1)))
	c := f.dial(t)
	c.send("GET / HTTP/1.1\r\nHost: a.test\r\n\r\n")
	stuck := make(chan struct{})
	go func() { // ends when the stream is closed
		idle := time.NewTimer(patience)
		defer idle.Stop()
		for {
			idle.Reset(500 * time.Millisecond)
			select {
			case s.pieces <- piece:
				reads.Add(1)
			case <-idle.C:
				close(stuck)
				return
			}
		}
	}()
	wait(t, "the producer to be stopped", stuck)
	if n := reads.Load(); n > 2000 {
		t.Errorf("%d pieces were taken although the client read none", n)
	}
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
	s.checkClosedOnce(t)
}

// WriteTimeout is per piece: a client that stalls is cut, and the worker's stream cancelled.
func TestStalledClientIsCut(t *testing.T) {
	s := newSource()
	f := start(t, Options{WriteTimeout: 50 * time.Millisecond}, serving(streaming(s, -1)))
	c := f.dial(t)
	c.send("GET / HTTP/1.1\r\nHost: a.test\r\n\r\n")
	piece := strings.Repeat("x", 32<<10)
	for {
		select {
		case s.pieces <- piece:
		case <-s.closed:
			s.checkClosedOnce(t)
			return
		}
	}
}

// A slow client that makes progress is not cut, however long the whole takes.
func TestSlowClientIsServed(t *testing.T) {
	body := strings.Repeat("0123456789abcdef", 1<<20)
	f := start(t, Options{WriteTimeout: 300 * time.Millisecond}, serving(func(_ context.Context, _ *event.Request, res *event.Response) error {
		return answer(res, 200, body)
	}))
	c := f.dial(t)
	if err := c.Conn.(interface{ SetReadBuffer(int) error }).SetReadBuffer(32 << 10); err != nil {
		t.Fatal(err)
	}
	c.send("GET / HTTP/1.1\r\nHost: a.test\r\n\r\n")
	res := c.head("GET")
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for got := int64(0); got < int64(len(body)); {
		<-tick.C
		n, err := io.CopyN(io.Discard, res.Body, min(128<<10, int64(len(body))-got))
		if got += n; err != nil {
			t.Fatalf("cut after %d bytes: %v", got, err)
		}
	}
}

// module-worker §3.1: a client that left cancels context and stream within a second, by FIN or by reset, with or without
// a response under way.
func TestClientGone(t *testing.T) {
	for _, reset := range []bool{false, true} {
		t.Run(fmt.Sprintf("handler, reset %t", reset), func(t *testing.T) {
			entered, ended := make(chan struct{}), make(chan error, 1)
			f := start(t, Options{}, serving(func(ctx context.Context, _ *event.Request, _ *event.Response) error {
				close(entered)
				<-ctx.Done()
				ended <- context.Cause(ctx)
				return ctx.Err()
			}))
			c := f.dial(t)
			c.send("GET / HTTP/1.1\r\nHost: a.test\r\n\r\n")
			wait(t, "the handler", entered)
			left := time.Now()
			c.leave(reset)
			if err := wait(t, "the signal", ended); !errors.Is(err, errClientGone) {
				t.Errorf("cause %v", err)
			}
			if took := time.Since(left); took > time.Second {
				t.Errorf("noticed after %v", took)
			}
		})
		t.Run(fmt.Sprintf("stream, reset %t", reset), func(t *testing.T) {
			s := newSource()
			f := start(t, Options{}, serving(streaming(s, -1)))
			c := f.dial(t)
			c.send("GET / HTTP/1.1\r\nHost: a.test\r\n\r\n")
			c.head("GET")
			left := time.Now()
			c.leave(reset)
			s.checkClosedOnce(t)
			if took := time.Since(left); took > time.Second {
				t.Errorf("noticed after %v", took)
			}
		})
	}
}

func (c *client) leave(reset bool) {
	c.t.Helper()
	if reset {
		if err := c.Conn.(interface{ SetLinger(int) error }).SetLinger(0); err != nil {
			c.t.Fatal(err)
		}
	}
	if err := c.Close(); err != nil {
		c.t.Fatal(err)
	}
}

// A client that only shuts down its sending side has its answer, if it comes at once or the worker ignores the signal.
func TestHalfClosedClientGetsItsAnswer(t *testing.T) {
	f := start(t, Options{}, serving(func(ctx context.Context, req *event.Request, res *event.Response) error {
		if strings.HasSuffix(string(req.URL), "/late") {
			began := time.Now()
			<-ctx.Done()
			if took := time.Since(began); took < halfClosed-100*time.Millisecond {
				t.Errorf("signalled after %v", took)
			}
		}
		return answer(res, 200, "answer")
	}))
	for _, path := range []string{"/", "/late"} {
		c := f.dial(t)
		c.send("GET " + path + " HTTP/1.1\r\nHost: a.test\r\n\r\n")
		if err := c.Conn.(interface{ CloseWrite() error }).CloseWrite(); err != nil {
			t.Fatal(err)
		}
		if _, body := c.response("GET"); body != "answer" {
			t.Errorf("%s: got %q", path, body)
		}
		c.closed()
	}
}

// Both bodies at once: an echo that answers before it has read, piece by piece.
func TestFullDuplexEcho(t *testing.T) {
	f := start(t, Options{}, serving(func(_ context.Context, req *event.Request, res *event.Response) error {
		res.Status, res.Stream = 200, io.NopCloser(req.Body)
		return nil
	}))
	c := f.dial(t)
	for range 3 {
		c.send("POST / HTTP/1.1\r\nHost: a.test\r\nTransfer-Encoding: chunked\r\n\r\n")
		res := c.head("POST")
		for _, piece := range []string{"one", "two"} {
			c.send("3\r\n" + piece + "\r\n")
			got := make([]byte, 3)
			if _, err := io.ReadFull(res.Body, got); err != nil || string(got) != piece {
				t.Fatalf("got %q, %v", got, err)
			}
		}
		c.send("0\r\n\r\n")
		if rest, err := io.ReadAll(res.Body); err != nil || len(rest) > 0 {
			t.Fatalf("end: %q, %v", rest, err)
		}
	}
}
