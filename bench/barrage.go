package main

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"sync"
	"sync/atomic"
	"time"
)

// barrage sends requests on open connections when they are due and does not wait for answers: what the node owes does not
// slow it down. Answers are counted by their status alone; nothing a client should do about a refusal is done.
type barrage struct {
	addr    string
	request []byte
	idle    chan *shot // connections without a request
	all     []*shot
	readers sync.WaitGroup

	refused, failed atomic.Int64
	unsent          int64 // due while no connection was free; only send's goroutine
}

// shot is one connection. due is written before a request is sent and read when its answer is here.
type shot struct {
	mu   sync.Mutex // guards what follows
	c    net.Conn   // nil after a failure
	took []answer   // of accepted requests
	due  time.Time
}

// answer is one request that was served.
type answer struct {
	due  time.Time
	took time.Duration
}

func newBarrage(addr, host string, conns int) (*barrage, error) {
	b := &barrage{addr: addr, request: fmt.Appendf(nil, "GET / HTTP/1.1\r\nHost: %s\r\n\r\n", host), idle: make(chan *shot, conns)}
	for range conns {
		c, err := net.Dial("tcp", addr)
		if err != nil {
			b.close()
			return nil, err
		}
		s := &shot{c: c}
		b.all = append(b.all, s)
		b.readers.Go(func() { b.read(s, c) })
		b.idle <- s
	}
	return b, nil
}

// read takes answers off a connection until it ends.
func (b *barrage) read(s *shot, c net.Conn) {
	buf := make([]byte, 4096)
	for {
		n, err := c.Read(buf)
		now := time.Now()
		if err != nil || n < 12 {
			s.mu.Lock()
			s.c = nil
			waited := !s.due.IsZero()
			s.due = time.Time{}
			s.mu.Unlock()
			c.Close()
			if waited {
				b.failed.Add(1)
				b.idle <- s
			}
			return
		}
		s.mu.Lock()
		switch string(buf[9:12]) {
		case "200":
			s.took = append(s.took, answer{s.due, now.Sub(s.due)})
		case "503":
			b.refused.Add(1)
		default:
			b.failed.Add(1)
		}
		s.due = time.Time{}
		s.mu.Unlock()
		if bytes.Contains(buf[:n], []byte("Connection: close")) {
			s.mu.Lock()
			s.c = nil
			s.mu.Unlock()
			c.Close()
			b.idle <- s
			return
		}
		b.idle <- s
	}
}

// fire sends one request on s.
func (b *barrage) fire(s *shot, due time.Time) {
	s.mu.Lock()
	c := s.c
	if c == nil {
		var err error
		if c, err = net.DialTimeout("tcp", b.addr, time.Second); err != nil {
			s.mu.Unlock()
			b.failed.Add(1)
			b.idle <- s
			return
		}
		s.c = c
		b.readers.Go(func() { b.read(s, c) })
	}
	s.due = due
	s.mu.Unlock()
	c.Write(b.request) // the reader finds out if it fails
}

// send offers so many requests a second for a while, or until ctx is done.
func (b *barrage) send(ctx context.Context, perSecond float64, window time.Duration) {
	began := time.Now()
	total := int64(perSecond * window.Seconds())
	for sent := int64(0); sent < total && ctx.Err() == nil; time.Sleep(time.Millisecond) {
		for ; sent < min(total, int64(time.Since(began).Seconds()*perSecond)); sent++ {
			select {
			case s := <-b.idle:
				b.fire(s, began.Add(time.Duration(float64(sent)/perSecond*float64(time.Second))))
			default:
				b.unsent++
			}
		}
	}
}

// saturate keeps all connections busy for a while: each sends when it was answered.
func (b *barrage) saturate(ctx context.Context, window time.Duration) {
	end := time.NewTimer(window)
	defer end.Stop()
	for {
		select {
		case s := <-b.idle:
			b.fire(s, time.Now())
		case <-end.C:
			return
		case <-ctx.Done():
			return
		}
	}
}

// settle waits until every request was answered, or for so long.
func (b *barrage) settle(patience time.Duration) {
	for end := time.Now().Add(patience); len(b.idle) < len(b.all) && time.Now().Before(end); {
		time.Sleep(time.Millisecond)
	}
}

// take returns what was served of the requests that were due since.
func (b *barrage) take(since time.Time) (all []answer) {
	for _, s := range b.all {
		s.mu.Lock()
		for _, a := range s.took {
			if !a.due.Before(since) {
				all = append(all, a)
			}
		}
		s.mu.Unlock()
	}
	return all
}

func (b *barrage) close() {
	for _, s := range b.all {
		s.mu.Lock()
		if s.c != nil {
			s.c.Close()
		}
		s.due = time.Time{}
		s.mu.Unlock()
	}
	b.readers.Wait()
}

// millisecondsOf are the times of answers.
func millisecondsOf(all []answer) []float64 {
	out := make([]float64, len(all))
	for i, a := range all {
		out[i] = milliseconds(a.took)
	}
	return out
}
