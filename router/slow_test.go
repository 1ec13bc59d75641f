package router

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"edged/router/table"
	"edged/sandbox/event"
)

// pipe is a client on a connection that has no socket and no buffer, in virtual time: it takes and gives just what it says.
type pipe struct {
	net.Conn
	r     *Router
	ended chan struct{}  // closed when the connection was served
	all   sync.WaitGroup // what the client does at once; it ends with the connection
}

// end closes the connection, and checks that nothing is held for it.
func (p *pipe) end(t *testing.T) {
	t.Helper()
	_ = p.Close()
	<-p.ended
	p.all.Wait()
	if busy, streams := p.r.gate.busy.Load(), p.r.gate.streams.Load(); busy != 0 || streams != 0 {
		t.Errorf("%d places, %d streams are lost", busy, streams)
	}
}

func piped(t *testing.T, v *table.Version) *pipe {
	t.Helper()
	r, err := New(Options{})
	if err != nil {
		t.Fatal(err)
	}
	publish(t, r, v)
	client, server := net.Pipe()
	p := &pipe{Conn: client, r: r, ended: make(chan struct{})}
	served := newConn(r, server)
	if !r.crowd.enlist(served, time.Now()) {
		t.Fatal("no room for one")
	}
	go func() { defer close(p.ended); r.own(t.Context(), served, func(c *conn) bool { return c.open(false) }) }() // ends with the connection
	return p
}

// upload sends a body of so many bytes in pieces, one in each interval, and returns the status.
func upload(t *testing.T, c *pipe, pieces, size int, every time.Duration) int {
	t.Helper()
	c.all.Go(func() {
		_, err := fmt.Fprintf(c, "POST / HTTP/1.1\r\nHost: a.test\r\nContent-Length: %d\r\n\r\n", pieces*size)
		for i := 0; i < pieces && err == nil; i++ {
			time.Sleep(every)
			_, err = io.WriteString(c, strings.Repeat("x", size))
		}
	})
	res, err := http.ReadResponse(bufio.NewReader(c), nil)
	if err != nil {
		t.Fatal(err)
	}
	return res.StatusCode
}

// A body that trickles holds a place for BodyTimeout and what its bytes have earned, not for ever; one at the rate is let.
func TestSlowUpload(t *testing.T) {
	for _, tt := range []struct {
		name         string
		pieces, size int
		every        time.Duration
		status       int
		most         time.Duration
	}{
		{"a byte every 50 s", 1000, 1, 50 * time.Second, 400, 61 * time.Second},
		{"100 bytes a second", 100_000, 100, time.Second, 400, 110 * time.Second},
		{"300 bytes a second", 600, 300, time.Second, 200, 601 * time.Second},
		{"much, then nothing for a while", 3, 60_000, 50 * time.Second, 200, 151 * time.Second},
	} {
		synctest.Test(t, func(t *testing.T) {
			var took time.Duration
			var got int64
			c := piped(t, serving(func(_ context.Context, req *event.Request, res *event.Response) error {
				began := time.Now()
				n, err := io.Copy(io.Discard, req.Body)
				took, got = time.Since(began), n
				if err != nil {
					return event.ErrBodyAborted
				}
				return answer(res, 200, "read")
			}))
			if status := upload(t, c, tt.pieces, tt.size, tt.every); status != tt.status {
				t.Errorf("%s: status %d, want %d", tt.name, status, tt.status)
			}
			if took > tt.most || tt.status == 200 && got != int64(tt.pieces*tt.size) {
				t.Errorf("%s: a place was held for %v; %d bytes", tt.name, took, got)
			}
			c.end(t)
		})
	}
}

// The client is not blamed for a worker that reads slowly.
func TestSlowWorkerIsNotTheClientsFault(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := piped(t, serving(func(_ context.Context, req *event.Request, res *event.Response) error {
			buf := make([]byte, 100)
			for {
				time.Sleep(10 * time.Second)
				if _, err := req.Body.Read(buf); err == io.EOF {
					return answer(res, 200, "read")
				} else if err != nil {
					return event.ErrBodyAborted
				}
			}
		}))
		if status := upload(t, c, 10, 200, 0); status != 200 {
			t.Errorf("status %d", status)
		}
		c.end(t)
	})
}

// trickle is a stream that always has more.
type trickle struct {
	size   int
	every  time.Duration
	closed chan struct{} // closed with it
}

func (s *trickle) Read(p []byte) (int, error) {
	time.Sleep(s.every)
	return min(len(p), s.size), nil
}

func (s *trickle) Close() error { close(s.closed); return nil }

// A client that does not take its response, or a byte now and then, loses it; its place and the stream are given back. One
// that takes what there is may go on for as long as the worker likes.
func TestSlowReader(t *testing.T) {
	for _, tt := range []struct {
		name        string
		stream      trickle
		take        int
		every       time.Duration
		least, most time.Duration // until the stream is closed; 0: it is not within an hour
	}{
		{"reads nothing", trickle{size: 1 << 10}, 1, 2 * time.Hour, 25 * time.Second, 31 * time.Second},
		{"a byte every 20 s", trickle{size: 1}, 1, 20 * time.Second, 20 * time.Second, 40 * time.Second},
		{"100 bytes a second", trickle{size: 1 << 10}, 100, time.Second, 25 * time.Second, 80 * time.Second},
		{"1000 bytes a second", trickle{size: 1 << 10}, 1000, time.Second, 0, 0},
		{"a slow worker", trickle{size: 1, every: time.Minute}, 4096, 0, 0, 0},
	} {
		synctest.Test(t, func(t *testing.T) {
			s := tt.stream
			s.closed = make(chan struct{})
			c := piped(t, serving(func(_ context.Context, _ *event.Request, res *event.Response) error {
				res.Status, res.Stream, res.Length = 200, &s, -1
				return nil
			}))
			began := time.Now()
			c.all.Go(func() {
				_, err := io.WriteString(c, "GET / HTTP/1.1\r\nHost: a.test\r\n\r\n")
				buf := make([]byte, tt.take)
				for err == nil {
					time.Sleep(tt.every)
					_, err = c.Read(buf)
				}
			})
			select {
			case <-s.closed:
				if took := time.Since(began); took < tt.least || took > tt.most {
					t.Errorf("%s: ended after %v", tt.name, took)
				}
			case <-time.After(time.Hour):
				if tt.most != 0 {
					t.Errorf("%s: still served after an hour", tt.name)
				}
			}
			c.end(t)
		})
	}
}

// A head that trickles has HeadTimeout in all, and a connection that says nothing IdleTimeout.
func TestSlowHead(t *testing.T) {
	for _, tt := range []struct {
		text string
		want time.Duration
	}{{"", 60 * time.Second}, {"GET / HTTP/1.1\r\nHost: a.test\r\nX-Slow: " + strings.Repeat("x", 100), 10 * time.Second}} {
		synctest.Test(t, func(t *testing.T) {
			c := piped(t, serving(hello))
			began := time.Now()
			c.all.Go(func() { _, _ = io.Copy(io.Discard, c) })
			c.all.Go(func() {
				for i := range len(tt.text) {
					if _, err := c.Write([]byte{tt.text[i]}); err != nil {
						return
					}
					time.Sleep(time.Second)
				}
			})
			<-c.ended
			if took := time.Since(began); took > tt.want+2*time.Second || took < tt.want*7/8-time.Second {
				t.Errorf("%.20q…: ended after %v", tt.text, took)
			}
			c.end(t)
		})
	}
}

// The date of a response is that of its head, however long the worker took.
func TestDateIsThatOfTheResponse(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var answered time.Time
		c := piped(t, serving(func(ctx context.Context, req *event.Request, res *event.Response) error {
			time.Sleep(20 * time.Second)
			answered = time.Now()
			return hello(ctx, req, res)
		}))
		c.all.Go(func() { _, _ = io.WriteString(c, "GET / HTTP/1.1\r\nHost: a.test\r\n\r\n") })
		res, err := http.ReadResponse(bufio.NewReader(c), nil)
		if err != nil {
			t.Fatal(err)
		}
		if got, want := res.Header.Get("Date"), answered.UTC().Format(http.TimeFormat); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
		c.end(t)
	})
}
