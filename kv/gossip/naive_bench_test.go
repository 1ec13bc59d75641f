package gossip

import (
	"encoding/binary"
	"fmt"
	"io"
	"log"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/hashicorp/memberlist"
)

// What package kv does not do: 300 B records themselves as payloads of gossip, among 8 nodes with a tick of 50 ms. A queue that
// is longer than its packets sends the newest first, so records wait for seconds or are never sent. BenchmarkConverge in package kv is the
// other side. delivered-% counts arrivals at the 7 other nodes until 5 s after the last put.
func BenchmarkNaiveGossip(b *testing.B) {
	for _, perSecond := range []int{20, 200, 2000} {
		b.Run(fmt.Sprintf("nodes=8/puts=%d", perSecond), func(b *testing.B) { naive(b, 8, perSecond) })
	}
}

func naive(b *testing.B, nodes, perSecond int) {
	const lasts = 5 * time.Second
	var heard latencies
	list := make([]*naiveNode, nodes)
	var known []string
	for i := range list {
		list[i] = newNaive(b, fmt.Sprint("n", i), &heard)
		// Each tells all of them: the news of a join may be lost in gossip too, for longer than is waited below.
		if n, err := list[i].list.Join(known); n < len(known) {
			b.Fatal(err)
		}
		known = append(known, list[i].list.LocalNode().Address())
	}
	for _, n := range list {
		eventually(b, "all join", func() bool { return n.list.NumMembers() == nodes })
	}
	sent := 0
	for b.Loop() {
		tick := time.NewTicker(time.Millisecond)
		for begin, first := time.Now(), sent; time.Since(begin) < lasts; <-tick.C {
			for due := first + int(time.Since(begin)*time.Duration(perSecond)/time.Second); sent < due; sent++ {
				list[sent%nodes].put(uint64(sent))
			}
		}
		tick.Stop()
	}
	<-time.After(lasts) // what is still on its way
	took := heard.sorted()
	b.ReportMetric(100*float64(len(took))/float64(sent*(nodes-1)), "delivered-%")
	if len(took) > 0 {
		b.ReportMetric(took[len(took)/2].Seconds()*1000, "p50-ms")
		b.ReportMetric(took[len(took)*99/100].Seconds()*1000, "p99-ms")
	}
	b.ReportMetric(float64(sent)/(b.Elapsed().Seconds()), "puts/s")
}

type latencies struct {
	mu   sync.Mutex
	took []time.Duration
}

func (l *latencies) add(d time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.took = append(l.took, d)
}

func (l *latencies) sorted() []time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	slices.Sort(l.took)
	return l.took
}

// naiveNode gossips records: it keeps what it has heard and passes on what is new.
type naiveNode struct {
	list  *memberlist.Memberlist
	queue memberlist.TransmitLimitedQueue
	ready atomic.Bool
	heard *latencies

	mu   sync.Mutex
	seen map[uint64]bool
}

func newNaive(b *testing.B, name string, heard *latencies) *naiveNode {
	n := &naiveNode{heard: heard, seen: map[uint64]bool{}}
	c := memberlist.DefaultLANConfig()
	c.Name, c.BindAddr, c.BindPort, c.AdvertisePort = name, "127.0.0.1", 0, 0
	c.GossipInterval = 50 * time.Millisecond
	c.Delegate = n
	c.Logger = log.New(io.Discard, "", 0)
	n.queue.NumNodes = func() int { return n.list.NumMembers() }
	n.queue.RetransmitMult = c.RetransmitMult
	var err error
	if n.list, err = memberlist.Create(c); err != nil {
		b.Fatal(err)
	}
	n.ready.Store(true)
	b.Cleanup(func() { n.list.Shutdown() })
	return n
}

func (n *naiveNode) put(id uint64) {
	msg := binary.BigEndian.AppendUint64(nil, id)
	msg = binary.BigEndian.AppendUint64(msg, uint64(time.Now().UnixNano()))
	msg = append(msg, make([]byte, 300-len(msg))...)
	n.take(id)
	n.queue.QueueBroadcast(record(msg))
}

// take reports whether a record is new here.
func (n *naiveNode) take(id uint64) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	was := n.seen[id]
	n.seen[id] = true
	return !was
}

// NotifyMsg implements memberlist.Delegate.
func (n *naiveNode) NotifyMsg(b []byte) {
	if len(b) < 16 || !n.ready.Load() || !n.take(binary.BigEndian.Uint64(b)) {
		return
	}
	n.heard.add(time.Since(time.Unix(0, int64(binary.BigEndian.Uint64(b[8:])))))
	n.queue.QueueBroadcast(record(slices.Clone(b)))
}

// GetBroadcasts implements memberlist.Delegate.
func (n *naiveNode) GetBroadcasts(overhead, limit int) [][]byte {
	if !n.ready.Load() {
		return nil
	}
	return n.queue.GetBroadcasts(overhead, limit)
}

// NodeMeta implements memberlist.Delegate.
func (n *naiveNode) NodeMeta(int) []byte { return nil }

// LocalState implements memberlist.Delegate.
func (n *naiveNode) LocalState(bool) []byte { return nil }

// MergeRemoteState implements memberlist.Delegate.
func (n *naiveNode) MergeRemoteState([]byte, bool) {}

// record is one payload; none takes the place of another.
type record []byte

// Invalidates implements memberlist.Broadcast.
func (record) Invalidates(memberlist.Broadcast) bool { return false }

// UniqueBroadcast implements memberlist.UniqueBroadcast.
func (record) UniqueBroadcast() {}

// Message implements memberlist.Broadcast.
func (r record) Message() []byte { return r }

// Finished implements memberlist.Broadcast.
func (record) Finished() {}
