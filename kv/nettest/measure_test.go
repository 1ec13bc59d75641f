//go:build linux

package nettest

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"edged/kv"
	"edged/kv/replica"
)

// measure is what a node's process notes of its own puts and of the others'. All processes share a machine and its clock.
type measure struct {
	mu     sync.Mutex // guards seen
	seen   []*arrivals
	cancel context.CancelFunc
}

// moment is when a put was acknowledged, in Unix nanoseconds.
type moment struct {
	Seq uint64
	At  int64
}

// arrivals are when this node had what an origin wrote: At[i] is for First+i.
type arrivals struct {
	Origin replica.Origin
	First  uint64
	At     []int64
}

// follow notes from now on when the puts of the members come.
func (m *measure) follow(ctx context.Context, s *kv.Store, members []kv.Member) {
	ctx, m.cancel = context.WithCancel(ctx)
	self := s.Epoch()
	for _, member := range members {
		if member.Epoch == self {
			continue
		}
		a := &arrivals{Origin: member.Epoch, First: 1}
		m.seen = append(m.seen, a)
		go func() { // ends with the process, or with arrived
			for seq := a.First; s.Wait(ctx, a.Origin, seq) == nil; seq++ {
				m.mu.Lock()
				a.At = append(a.At, time.Now().UnixNano())
				m.mu.Unlock()
			}
		}()
	}
}

// arrived returns what was noted, and ends the noting.
func (m *measure) arrived() []arrivals {
	m.cancel()
	m.mu.Lock()
	defer m.mu.Unlock()
	out := make([]arrivals, 0, len(m.seen))
	for _, a := range m.seen {
		out = append(out, arrivals{a.Origin, a.First, a.At})
	}
	return out
}

const sampled = 20 // one of so many puts is followed

// load puts at a rate for a while, whatever each takes, and returns when some of the puts were acknowledged.
func (m *measure) load(ctx context.Context, s *kv.Store, o order) ([]moment, error) {
	ns, value := s.Namespace(space), make([]byte, 256)
	var mu sync.Mutex
	var acked []moment
	var failed error
	var puts sync.WaitGroup
	began := time.Now()
	for n := range int(float64(o.Rate) * o.Within.Seconds()) {
		if early := time.Until(began.Add(time.Duration(n) * time.Second / time.Duration(o.Rate))); early > 0 {
			<-time.After(early)
		}
		puts.Go(func() {
			err := ns.Put(ctx, fmt.Sprint("key", rand.IntN(20_000)), value, kv.PutOptions{})
			at := time.Now().UnixNano()
			mu.Lock()
			defer mu.Unlock()
			if err != nil {
				failed = err
			} else if n%sampled == 0 {
				_, seq := s.Position()
				acked = append(acked, moment{seq, at})
			}
		})
	}
	puts.Wait()
	return acked, failed
}
