package kv

import (
	"sync"

	"github.com/cockroachdb/pebble/v2"
)

// committer makes changes durable in groups: whoever comes while a group is being staged or synced waits and goes with the next
// one. There is no goroutine of its own: the first of those who wait leads the next group.
type committer struct {
	l        *ledger
	unsynced bool          // Options.unsynced
	syncing  chan struct{} // capacity maxSyncing: groups staged and not yet durable

	mu      sync.Mutex
	queue   []*request
	leading bool
}

const (
	maxSyncing    = 2       // one group is staged while another is on its way to the disk
	maxGroupBytes = 2 << 20 // a group ends at the request that passes this
)

type request struct {
	fn    func(*tx) error
	bytes int
	err   error
	wake  chan bool // capacity 1: true means lead, false means done
}

func newCommitter(l *ledger) *committer {
	return &committer{l: l, syncing: make(chan struct{}, maxSyncing)}
}

// do runs fn in a transaction and returns when what it changed, and what it found, is durable. bytes is about how much it adds.
// An fn that fails must have staged nothing; its error is returned as it is. It cannot be called off: it takes about two fsyncs.
func (c *committer) do(bytes int, fn func(*tx) error) error {
	if c.unsynced {
		return c.doUnsynced(fn)
	}
	r := &request{fn: fn, bytes: bytes, wake: make(chan bool, 1)}
	c.mu.Lock()
	c.queue = append(c.queue, r)
	lead := !c.leading
	c.leading = true
	c.mu.Unlock()
	if lead || <-r.wake {
		c.lead()
	}
	return r.err
}

// lead stages the first group of the queue, hands the lead on, and waits until the group is durable. The caller's own request
// is the first in the queue.
func (c *committer) lead() {
	c.syncing <- struct{}{} // a slot frees when a group is durable, whoever waits for it
	group := c.take()
	fns := make([]func(*tx) error, len(group))
	for i, r := range group {
		fns[i] = r.fn
	}
	b, last, errs, err := c.l.stage(fns, func(b *pebble.Batch) error { return c.l.db.ApplyNoSyncWait(b, pebble.Sync) })
	c.handOn()
	if err == nil {
		err = c.settle(b, last)
	}
	<-c.syncing
	for i, r := range group {
		r.err = err
		if err == nil {
			r.err = errs[i]
		}
		if i > 0 {
			r.wake <- false
		}
	}
}

// settle waits until the first last batches are durable. A group that changed nothing waits for what it saw.
func (c *committer) settle(b *pebble.Batch, last uint64) error {
	if b == nil {
		return c.l.settleEmpty(last)
	}
	if err := b.SyncWait(); err != nil {
		c.l.mu.Lock()
		defer c.l.mu.Unlock()
		return c.l.breakLocked(err)
	}
	c.l.synced(last)
	return b.Close()
}

func (c *committer) take() []*request {
	c.mu.Lock()
	defer c.mu.Unlock()
	n, bytes := 0, 0
	for n < len(c.queue) && bytes < maxGroupBytes {
		bytes += c.queue[n].bytes
		n++
	}
	group := c.queue[:n:n]
	c.queue = c.queue[n:]
	return group
}

func (c *committer) handOn() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.queue) == 0 {
		c.leading = false
		c.queue = nil
		return
	}
	c.queue[0].wake <- true
}

// doUnsynced is do without the wait: what it changes is lost in a crash until sync is called.
func (c *committer) doUnsynced(fn func(*tx) error) error {
	_, _, errs, err := c.l.stage([]func(*tx) error{fn}, func(b *pebble.Batch) error { return c.l.db.Apply(b, pebble.NoSync) })
	if err == nil {
		err = errs[0]
	}
	return err
}
