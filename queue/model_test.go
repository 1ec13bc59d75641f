package queue

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"

	"edged/internal/testkit"
)

// listed is a message in the model, which is a list.
type listed struct {
	uid, body string
	attempts  int
	held      bool // in the open batch
}

// list is the model: what the queues hold, and what a crash would leave of it.
type list []*listed

// afterCrash renders the messages as a recovery finds them: what was held is in doubt.
func (l list) afterCrash() string {
	var lines []string
	for _, m := range l {
		lines = append(lines, fmt.Sprintf("%s %s #%d doubt=%t", m.uid, m.body, m.attempts, m.held))
	}
	slices.Sort(lines)
	return strings.Join(lines, "\n")
}

// script runs random operations on a store and on the list, one durable step each. Before a step it announces which two states a
// crash may leave.
type script struct {
	t        *testing.T
	s        *Store
	rng      *rand.Rand
	model    list
	sent     int
	open     *Batch
	announce func(before, after string)
}

const modelRetries = 2

func modelConsumers() []Consumer {
	return []Consumer{{Queue: jobs.UID, MaxBatchSize: 3, MaxConcurrency: 1, MaxRetries: modelRetries, DeadLetter: dlq.UID}}
}

// do changes the model by change and the store by op, with both states announced.
func (x *script) do(change func(), op func() error) {
	x.t.Helper()
	before := x.model.afterCrash()
	change()
	x.announce(before, x.model.afterCrash())
	if err := op(); err != nil {
		x.t.Fatal(err)
	}
}

func (x *script) send() {
	ms := make([]Message, 1+x.rng.IntN(3))
	for i := range ms {
		x.sent++
		ms[i].Body = fmt.Appendf(nil, "m%d", x.sent)
	}
	x.do(func() {
		for _, m := range ms {
			x.model = append(x.model, &listed{uid: jobs.UID, body: string(m.Body)})
		}
	}, func() error {
		_, err := x.s.SendBatch(x.t.Context(), jobs, ms)
		return err
	})
}

// take leases the next batch; which messages it has is the store's choice, how many is not.
func (x *script) take() {
	q := x.s.find(jobs.UID)
	d := x.s.decide(q, time.Now().Add(time.Millisecond)) // what was sent in this millisecond is due
	want := min(3, x.count(func(m *listed) bool { return m.uid == jobs.UID }))
	if len(d.batch) != want {
		x.t.Fatalf("%d messages to lease, the list has %d", len(d.batch), want)
	}
	if want == 0 {
		return
	}
	bodies := map[string]bool{}
	for _, e := range d.batch {
		b, closer, err := x.s.db.Get(messageKey(q.num, e.seq))
		if err != nil {
			x.t.Fatal(err)
		}
		m, err := readMessage(b)
		if err != nil {
			x.t.Fatal(err)
		}
		bodies[string(m.body)] = true
		closer.Close()
	}
	x.do(func() {
		for _, m := range x.model {
			if m.uid == jobs.UID && bodies[m.body] {
				m.held = true
				m.attempts++
			}
		}
	}, func() (err error) {
		x.open, err = x.s.lease(q, d)
		return err
	})
	for _, m := range x.open.Messages {
		if want := x.held(string(m.Body)); want == nil || want.attempts != m.Attempts {
			x.t.Fatalf("leased %s with %d attempts, the list says %+v", m.Body, m.Attempts, want)
		}
	}
}

func (x *script) count(f func(*listed) bool) (n int) {
	for _, m := range x.model {
		if f(m) {
			n++
		}
	}
	return n
}

func (x *script) held(body string) *listed {
	for _, m := range x.model {
		if m.held && m.body == body {
			return m
		}
	}
	return nil
}

func (x *script) drop(gone *listed) {
	x.model = slices.DeleteFunc(x.model, func(m *listed) bool { return m == gone })
}

// back is a retry in the model.
func (x *script) back(m *listed) {
	m.held = false
	if m.attempts > modelRetries {
		m.uid, m.attempts = dlq.UID, 0
	}
}

func (x *script) allHeld(f func(*listed)) {
	for _, m := range slices.Clone(x.model) {
		if m.held {
			f(m)
		}
	}
}

func (x *script) settle() {
	b := x.open
	m := b.Messages[x.rng.IntN(len(b.Messages))]
	h := x.held(string(m.Body))
	switch x.rng.IntN(6) {
	case 0, 1:
		if h != nil {
			x.do(func() { x.drop(h) }, func() error { return b.Acknowledge(m.ID) })
		}
	case 2, 3:
		if h != nil {
			x.do(func() { x.back(h) }, func() error { return b.Retry(m.ID, 0) })
		}
	case 4:
		x.do(func() { x.allHeld(x.drop) }, b.AcknowledgeAll)
	case 5:
		x.do(func() { x.allHeld(x.back) }, func() error { return b.RetryAll(0) })
	}
}

func (x *script) finish() {
	touched := x.open.state.Open() < len(x.open.entries)
	o := []Outcome{Returned, Threw, NotReached}[x.rng.IntN(3)]
	if o == NotReached && touched {
		o = Threw
	}
	x.do(func() {
		switch o {
		case Returned:
			x.allHeld(x.drop)
		case Threw:
			x.allHeld(x.back)
		case NotReached:
			x.allHeld(func(m *listed) { m.held = false; m.attempts-- })
		}
	}, func() error { return x.open.finish(o) })
	x.s.find(jobs.UID).served()
	x.open = nil
}

func (x *script) run(steps int) {
	for range steps {
		switch n := x.rng.IntN(10); {
		case n < 3:
			x.send()
		case n == 3:
			x.do(func() {}, x.s.trim)
		case n == 4 && x.rng.IntN(3) == 0:
			x.do(func() {}, x.s.db.Flush)
		case x.open == nil:
			x.take()
		case n < 8:
			x.settle()
		default:
			x.finish()
		}
	}
}

// dump renders what a store holds after recovery, as list.afterCrash does.
func dump(t *testing.T, s *Store) string {
	var lines []string
	for _, q := range s.all() {
		it, err := s.db.NewIter(&pebble.IterOptions{LowerBound: classKey(dueClass, q.num), UpperBound: classEnd(dueClass, q.num)})
		if err != nil {
			t.Fatal(err)
		}
		n := 0
		for it.First(); it.Valid(); it.Next() {
			e, err := readIndexed(it)
			if err != nil {
				t.Fatal(err)
			}
			w, err := readWaiting(s.db, q.num, e, true)
			if err != nil {
				t.Fatalf("entry %+v: %v", e, err)
			}
			lines = append(lines, fmt.Sprintf("%s %s #%d doubt=%t", q.uid, w.Body, w.Attempts, e.doubt))
			n++
		}
		if err := it.Close(); err != nil {
			t.Fatal(err)
		}
		if m := keysOf(t, s, messageClass, q.uid); m != n {
			t.Errorf("%d messages and %d entries in %s", m, n, q.uid)
		}
	}
	slices.Sort(lines)
	return strings.Join(lines, "\n")
}

// The store against a list of messages: a crash at any write of any operation leaves the list of before or after it, whole.
func TestModelWithACrashAtEveryWrite(t *testing.T) {
	seed := testkit.Rand(t).Uint64()
	steps := 80
	if raceEnabled {
		steps = 25
	}
	total := runScript(t, seed, steps, 0)
	if total < steps/2 {
		t.Fatalf("only %d writes: the script does nothing", total)
	}
	for at := 1; at <= total && !t.Failed(); at++ {
		runScript(t, seed, steps, at)
	}
}

// runScript runs the script of a seed with a crash at the given write, none for 0, and returns how many writes there were.
func runScript(t *testing.T, seed uint64, steps, crashAt int) int {
	mem := vfs.NewCrashableMem()
	var copied *vfs.MemFS
	var before, after, wantBefore, wantAfter string
	writes := 0
	counting := false
	lock := make(chan struct{}, 1) // the disk is written by Pebble's goroutines too
	fs := errorfs.Wrap(mem, errorfs.InjectorFunc(func(op errorfs.Op) error {
		lock <- struct{}{}
		defer func() { <-lock }()
		if !counting || op.Kind.ReadOrWrite() != errorfs.OpIsWrite {
			return nil
		}
		writes++
		if writes == crashAt {
			percent := 100 * (crashAt % 2)
			copied = mem.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: percent, RNG: rand.New(rand.NewPCG(seed, 3))})
			wantBefore, wantAfter = before, after
		}
		return nil
	}))
	s, err := Open(Options{Dir: "q", FS: fs})
	if err != nil {
		t.Fatal(err)
	}
	for _, ref := range []Ref{jobs, dlq} {
		if err := s.Create(t.Context(), ref, settings()); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.SetConsumers(modelConsumers()); err != nil {
		t.Fatal(err)
	}
	x := &script{t: t, s: s, rng: rand.New(rand.NewPCG(seed, 2)), announce: func(b, a string) {
		lock <- struct{}{}
		before, after, counting = b, a, true
		<-lock
	}}
	x.run(steps)
	lock <- struct{}{}
	counting = false
	<-lock
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if crashAt == 0 {
		copied, wantBefore, wantAfter = mem, x.model.afterCrash(), x.model.afterCrash()
	}
	if copied == nil {
		return writes // Pebble's own work took another turn this time
	}
	s, err = Open(Options{Dir: "q", FS: copied})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if got := dump(t, s); got != wantBefore && got != wantAfter {
		t.Errorf("seed %d, crash at write %d left\n%s\nwant\n%s\nor\n%s", seed, crashAt, got, wantBefore, wantAfter)
	}
	return writes
}
