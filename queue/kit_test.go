package queue

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"edged/internal/testkit"
)

func TestMain(m *testing.M) { testkit.Main(m) }

// lab is a store in memory, inside a bubble of virtual time, with a handler that a test can replace.
type lab struct {
	t      *testing.T
	fs     *vfs.MemFS
	s      *Store
	cancel context.CancelFunc
	ended  chan struct{}

	mu      sync.Mutex
	handler func(ctx context.Context, b *Batch) (Outcome, error)
	log     []string // "body#attempts" of every delivered message
}

var jobs = Ref{UID: "r-jobs", Epoch: 1}
var dlq = Ref{UID: "r-dead", Epoch: 1}

func settings() Settings { return Settings{Name: "jobs", Retention: 14 * 24 * time.Hour} }

// consumer is one that takes single messages at once, with two retries after 10 s.
func consumer() Consumer {
	return Consumer{Queue: jobs.UID, Worker: "r-worker", MaxBatchSize: 1, MaxConcurrency: 1, MaxRetries: 2, RetryDelay: 10 * time.Second}
}

func bubble(t *testing.T, f func(t *testing.T, l *lab)) {
	synctest.Test(t, func(t *testing.T) {
		l := &lab{t: t, fs: vfs.NewCrashableMem()}
		l.handler = func(context.Context, *Batch) (Outcome, error) { return Returned, nil }
		l.open()
		defer l.close()
		l.check(l.s.Create(t.Context(), jobs, settings()))
		f(t, l)
	})
}

func (l *lab) check(err error) {
	l.t.Helper()
	if err != nil {
		l.t.Fatal(err)
	}
}

func (l *lab) open() {
	l.t.Helper()
	s, err := Open(Options{Dir: "q", FS: l.fs, Deliver: l.deliver})
	l.check(err)
	l.s = s
}

func (l *lab) run() {
	ctx, cancel := context.WithCancel(l.t.Context())
	l.cancel, l.ended = cancel, make(chan struct{})
	go func() {
		defer close(l.ended)
		if err := l.s.Run(ctx); !errors.Is(err, context.Canceled) {
			l.t.Errorf("Run: %v", err)
		}
	}()
}

func (l *lab) stop() {
	if l.cancel != nil {
		l.cancel()
		<-l.ended
		l.cancel = nil
	}
}

func (l *lab) close() {
	l.stop()
	l.check(l.s.Close())
}

// crash continues on what a crash of this moment would leave on the disk.
func (l *lab) crash() {
	fs := l.fs.CrashClone(vfs.CrashCloneCfg{})
	l.close()
	l.fs = fs
	l.open()
}

func (l *lab) deliver(ctx context.Context, b *Batch) (Outcome, error) {
	l.mu.Lock()
	for _, m := range b.Messages {
		l.log = append(l.log, fmt.Sprintf("%s#%d", m.Body, m.Attempts))
	}
	h := l.handler
	l.mu.Unlock()
	return h(ctx, b)
}

func (l *lab) handle(h func(ctx context.Context, b *Batch) (Outcome, error)) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.handler = h
}

// pass lets virtual time pass.
func pass(d time.Duration) { time.Sleep(d) }

// saw returns what was delivered since the last call, after d more of virtual time.
func (l *lab) saw(d time.Duration) string {
	time.Sleep(d)
	synctest.Wait()
	l.mu.Lock()
	defer l.mu.Unlock()
	s := strings.Join(l.log, " ")
	l.log = nil
	return s
}

func (l *lab) expect(d time.Duration, want string) {
	l.t.Helper()
	if got := sorted(l.saw(d)); got != sorted(want) { // there is no order
		l.t.Fatalf("delivered %q, want %q", got, want)
	}
}

func (l *lab) send(bodies ...string) []string {
	l.t.Helper()
	var ids []string
	for _, b := range bodies {
		id, err := l.s.Send(l.t.Context(), jobs, Message{Body: []byte(b), DelaySeconds: DefaultDelay})
		l.check(err)
		ids = append(ids, id)
	}
	return ids
}

func (l *lab) consume(c ...Consumer) {
	l.t.Helper()
	l.check(l.s.SetConsumers(c))
}

func (l *lab) stats(ref Ref) Stats {
	l.t.Helper()
	st, err := l.s.Stats(l.t.Context(), ref)
	l.check(err)
	return st
}

// empty checks that the queue holds nothing, on disk and in the counters.
func (l *lab) empty(ref Ref) {
	l.t.Helper()
	if st := l.stats(ref); st.Waiting != 0 || st.InFlight != 0 || st.Bytes != 0 {
		l.t.Errorf("the queue holds %+v", st)
	}
	for _, class := range []byte{messageClass, dueClass, leaseClass} {
		if n := keysOf(l.t, l.s, class, ref.UID); n != 0 {
			l.t.Errorf("%d keys of class %c are left", n, class)
		}
	}
}

func sorted(s string) string {
	words := strings.Fields(s)
	slices.Sort(words)
	return strings.Join(words, " ")
}
