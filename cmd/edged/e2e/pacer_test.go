package e2e

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"sync"
	"testing"
	"time"
)

// pacer sends requests over connections that are kept alive, each at its own pace, and forgives nothing: an answer that does not come is an
// error, also on a connection that was idle. Only after "Connection: close" it connects anew.
type pacer struct {
	dial    func() (net.Conn, error)
	request string
	next    func() (request, want string) // in place of request, for which "hello /x" is wanted; any goroutine
	every   time.Duration
	stop    chan struct{}
	done    sync.WaitGroup

	mu      sync.Mutex // guards the fields below
	served  int
	longest time.Duration
	errs    []error
}

func (p *pacer) start(conns int) {
	for range conns {
		p.done.Go(p.run)
	}
}

func (p *pacer) run() {
	var conn net.Conn
	var in *bufio.Reader
	tick := time.NewTicker(p.every)
	defer tick.Stop()
	for {
		select {
		case <-p.stop:
			if conn != nil {
				conn.Close()
			}
			return
		case <-tick.C:
		}
		request, want := p.request, "hello /x"
		if p.next != nil {
			request, want = p.next()
		}
		began := time.Now()
		closes, err := func() (bool, error) {
			if conn == nil {
				var err error
				if conn, err = p.dial(); err != nil {
					return false, fmt.Errorf("connect: %w", err)
				}
				in = bufio.NewReader(conn)
			}
			conn.SetDeadline(began.Add(limit))
			if _, err := io.WriteString(conn, request); err != nil {
				return false, fmt.Errorf("send: %w", err)
			}
			res, err := http.ReadResponse(in, nil)
			if err != nil {
				return false, fmt.Errorf("answer: %w", err)
			}
			body, err := io.ReadAll(res.Body)
			if err == nil && (res.StatusCode != 200 || string(body) != want) {
				err = fmt.Errorf("answer: %d %s", res.StatusCode, body)
			}
			return res.Close, err
		}()
		p.mu.Lock()
		if err == nil {
			p.served++
			p.longest = max(p.longest, time.Since(began))
		} else if len(p.errs) < 10 {
			p.errs = append(p.errs, fmt.Errorf("after %v: %w", time.Since(began), err))
		}
		p.mu.Unlock()
		if (err != nil || closes) && conn != nil {
			conn.Close()
			conn = nil
		}
	}
}

func (p *pacer) count() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.served
}

// ended waits for the end, after stop was closed, and fails the test for what went wrong.
func (p *pacer) ended(t *testing.T, name string) {
	t.Helper()
	p.done.Wait()
	t.Logf("%s: %d requests, the slowest %v", name, p.served, p.longest.Round(time.Millisecond))
	for _, err := range p.errs {
		t.Errorf("%s: %v", name, err)
	}
	if p.longest > 5*time.Second {
		t.Errorf("%s: a request waited %v", name, p.longest)
	}
}
