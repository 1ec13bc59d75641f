package queue

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"

	"edged/internal/testkit"
)

const (
	worlds         = 50  // stores, each crashed several times
	queuesPerWorld = 200 // each has its own rules, messages and handlers: its own history
	crashes        = 3   // of a world
)

// fate is what the oracle knows about one message.
type fate struct {
	queue     int
	accepted  bool // Send returned before a crash
	batch     int  // its sendBatch, 0 if alone
	delivered int  // times a handler saw it
	attempts  int  // the last seen
	ending    bool // a handler tried to acknowledge it, or returned: it may be gone
	acked     bool // Acknowledge returned before a crash: it is gone
	dead      int  // copies in the dead-letter queue
}

// world is one store through several crashes, and what must hold of it. Its lock decides whether something happened before the
// crash: what is recorded later than the copy of the disk did not happen.
type world struct {
	t       *testing.T
	rules   []Consumer
	mu      sync.Mutex
	rng     *rand.Rand
	dead    bool // the copy was taken
	fates   map[string]*fate
	crashes int
	final   bool
	batches int

	writes, crashAt int
	copy            *vfs.MemFS
}

// fs is a disk that takes a copy of itself at a chosen write: what a crash of that moment leaves.
func (w *world) fs(mem *vfs.MemFS) vfs.FS {
	return errorfs.Wrap(mem, errorfs.InjectorFunc(func(op errorfs.Op) error {
		if op.Kind.ReadOrWrite() != errorfs.OpIsWrite {
			return nil
		}
		w.mu.Lock()
		defer w.mu.Unlock()
		w.writes++
		if w.writes == w.crashAt && !w.dead {
			w.crash(mem)
		}
		return nil
	}))
}

func (w *world) crash(mem *vfs.MemFS) {
	w.dead = true
	percent := []int{0, 0, 50, 100}[w.rng.IntN(4)]
	w.copy = mem.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: percent, RNG: rand.New(rand.NewPCG(w.rng.Uint64(), 0))})
}

// happened runs f if the crash has not come yet.
func (w *world) happened(f func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.dead {
		f()
	}
}

func (w *world) int(n int) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.rng.IntN(n)
}

func queueRef(i int) Ref { return Ref{fmt.Sprintf("q%03d", i), 1} }

func deadRef(i int) Ref { return Ref{fmt.Sprintf("d%03d", i), 1} }

// deliver is every handler: it settles some, takes some time, and ends somehow.
func (w *world) deliver(ctx context.Context, b *Batch) (Outcome, error) {
	o := []Outcome{Returned, Threw, Threw, Unknown, NotReached}[w.int(5)]
	w.mu.Lock()
	if w.final && o != Threw {
		o = Returned
	}
	w.mu.Unlock()
	if o == NotReached {
		return o, nil
	}
	for _, m := range b.Messages {
		w.happened(func() { w.see(b, m) })
	}
	for _, m := range b.Messages {
		switch w.int(4) {
		case 0:
			w.happened(func() { w.fates[string(m.Body)].ending = true })
			if err := b.Acknowledge(m.ID); err != nil {
				w.t.Errorf("acknowledge: %v", err)
			}
			w.happened(func() { w.fates[string(m.Body)].acked = true })
		case 1:
			if err := b.Retry(m.ID, w.int(20)); err != nil {
				w.t.Errorf("retry: %v", err)
			}
		}
	}
	if w.int(3) == 0 {
		select {
		case <-time.After(time.Duration(w.int(20)) * time.Second):
		case <-ctx.Done():
			return Unknown, nil
		}
	}
	if o == Returned {
		for _, m := range b.Messages {
			w.happened(func() { w.fates[string(m.Body)].ending = true })
		}
	}
	return o, nil
}

func (w *world) see(b *Batch, m Delivered) {
	f := w.fates[string(m.Body)]
	budget := 1 + w.rules[f.queue].MaxRetries
	f.delivered++
	switch {
	case f.acked:
		w.t.Errorf("%s was acknowledged and came again", m.Body)
	case f.delivered > budget || m.Attempts > budget:
		w.t.Errorf("%s was delivered %d times, attempts %d, budget %d", m.Body, f.delivered, m.Attempts, budget)
	case m.Attempts <= f.attempts:
		w.t.Errorf("%s came with attempts %d after %d", m.Body, m.Attempts, f.attempts)
	case f.dead > 0:
		w.t.Errorf("%s is a dead letter and came again", m.Body)
	case b.Queue != queueRef(f.queue).UID:
		w.t.Errorf("%s came from %s", m.Body, b.Queue)
	}
	f.attempts = m.Attempts
}

// send stores one to three messages of a queue at some moment.
func (w *world) send(ctx context.Context, s *Store, q int) {
	pass(time.Duration(w.int(60_000)) * time.Millisecond)
	n := 1 + w.int(3)
	ms := make([]Message, n)
	w.mu.Lock()
	w.batches++
	batch := w.batches
	for i := range ms {
		body := fmt.Sprintf("%d/%d/%d", q, batch, i)
		ms[i] = Message{Body: []byte(body), DelaySeconds: w.rng.IntN(10)}
		w.fates[body] = &fate{queue: q, batch: batch}
	}
	w.mu.Unlock()
	_, err := s.SendBatch(ctx, queueRef(q), ms)
	if err != nil {
		w.t.Errorf("send: %v", err)
		return
	}
	w.happened(func() {
		for _, m := range ms {
			w.fates[string(m.Body)].accepted = true
		}
	})
}

// life is one process, from open to crash, or to the end if it is the last.
func (w *world) life(mem *vfs.MemFS, last bool) *vfs.MemFS {
	w.mu.Lock()
	w.dead, w.writes, w.crashAt, w.final = false, 0, 1+w.rng.IntN(900), last
	if last {
		w.crashAt = 0
	}
	w.mu.Unlock()
	s, err := Open(Options{Dir: "q", FS: w.fs(mem), Deliver: w.deliver, Drain: time.Millisecond})
	if err != nil {
		w.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(w.t.Context())
	var all sync.WaitGroup
	all.Go(func() {
		if err := s.Run(ctx); !errors.Is(err, context.Canceled) {
			w.t.Errorf("Run: %v", err)
		}
	})
	if err := s.SetConsumers(w.rules); err != nil {
		w.t.Fatal(err)
	}
	var sends sync.WaitGroup
	for q := range queuesPerWorld {
		sends.Go(func() { w.send(ctx, s, q) })
	}
	sends.Wait()
	pass(time.Minute)
	if last {
		pass(5 * time.Minute)
		synctest.Wait()
		w.verify(s)
	}
	w.mu.Lock()
	if !w.dead {
		w.crash(mem)
	}
	w.crashes++
	w.mu.Unlock()
	cancel()
	all.Wait()
	if err := s.Close(); err != nil {
		w.t.Error(err)
	}
	return w.copy
}

// verify holds the end of the world against what is known of every message.
func (w *world) verify(s *Store) {
	for q := range queuesPerWorld {
		if !w.rules[q].hasDeadLetter() {
			continue
		}
		peeked, err := s.Peek(w.t.Context(), deadRef(q), PeekOptions{Max: 1000, Bodies: true})
		if err != nil {
			w.t.Fatal(err)
		}
		for _, m := range peeked.Messages {
			w.fates[string(m.Body)].dead++
		}
	}
	seen, known := map[int]int{}, map[int]int{}
	for body, f := range w.fates {
		rules := w.rules[f.queue]
		mayBeSpent := f.delivered+w.crashes > rules.MaxRetries
		switch {
		case f.dead > 1 || f.dead == 1 && f.acked:
			w.t.Errorf("%s is %d dead letters: %+v", body, f.dead, *f)
		case f.dead == 1 && !mayBeSpent:
			w.t.Errorf("%s became a dead letter before its budget was spent: %+v", body, *f)
		case f.accepted && f.dead == 0 && !f.ending && (rules.hasDeadLetter() || !mayBeSpent):
			w.t.Errorf("%s is lost: %+v, %+v", body, *f, rules)
		}
		known[f.batch]++
		if f.delivered > 0 || f.dead > 0 {
			seen[f.batch]++
		}
	}
	for batch, n := range seen {
		if q := w.queueOf(batch); n != known[batch] && (w.rules[q].hasDeadLetter() || w.rules[q].MaxRetries >= crashes) {
			w.t.Errorf("%d of %d messages of sendBatch %d exist", n, known[batch], batch)
		}
	}
	for q := range queuesPerWorld {
		st, err := s.Stats(w.t.Context(), queueRef(q))
		if err != nil || st.Waiting != 0 || st.InFlight != 0 || st.Bytes != 0 {
			w.t.Errorf("queue %d is not empty: %+v, %v", q, st, err)
		}
		for _, class := range []byte{messageClass, dueClass, leaseClass} {
			if n := keysOf(w.t, s, class, queueRef(q).UID); n != 0 {
				w.t.Errorf("queue %d leaks %d keys of class %c", q, n, class)
			}
		}
	}
}

func (w *world) queueOf(batch int) int {
	for _, f := range w.fates {
		if f.batch == batch {
			return f.queue
		}
	}
	return -1
}

func (c Consumer) hasDeadLetter() bool { return c.DeadLetter != "" }

// queue §6: over random histories of crashes at any write no message is lost, none is delivered more often than its budget
// allows, none comes after its acknowledgement, and none is live in two queues.
func TestCrashHistories(t *testing.T) {
	rng := testkit.Rand(t)
	n := worlds
	if testing.Short() || raceEnabled {
		n = worlds / 10
	}
	for range n {
		seed := rng.Uint64()
		synctest.Test(t, func(t *testing.T) {
			w := &world{t: t, rng: rand.New(rand.NewPCG(seed, 1)), fates: map[string]*fate{}}
			mem := w.found()
			for range crashes {
				mem = w.life(mem, false)
			}
			w.life(mem, true)
		})
		if t.Failed() {
			return
		}
	}
}

// found makes the queues of a world.
func (w *world) found() *vfs.MemFS {
	mem := vfs.NewCrashableMem()
	s, err := Open(Options{Dir: "q", FS: mem})
	if err != nil {
		w.t.Fatal(err)
	}
	for q := range queuesPerWorld {
		c := Consumer{Queue: queueRef(q).UID, MaxBatchSize: 1 + w.rng.IntN(4), MaxConcurrency: 1 + w.rng.IntN(2),
			MaxRetries: w.rng.IntN(4), RetryDelay: time.Duration(w.rng.IntN(5)) * time.Second}
		refs := []Ref{queueRef(q)}
		if w.rng.IntN(2) == 0 {
			c.DeadLetter = deadRef(q).UID
			refs = append(refs, deadRef(q))
		}
		for _, ref := range refs {
			if err := s.Create(w.t.Context(), ref, settings()); err != nil {
				w.t.Fatal(err)
			}
		}
		w.rules = append(w.rules, c)
	}
	if err := s.Close(); err != nil {
		w.t.Fatal(err)
	}
	return mem
}
