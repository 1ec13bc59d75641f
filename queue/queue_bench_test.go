package queue

import (
	"context"
	"encoding/binary"
	"errors"
	"flag"
	"path/filepath"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2"

	"edged/internal/disk"
)

const benchBody = 512

var backlogSize = flag.Int("backlog", 100_000, "messages that wait during BenchmarkBacklog; the claim is made for 5000000")

func benchPebble(b *testing.B) *pebble.DB {
	db, err := disk.OpenPebble(disk.PebbleOptions{Dir: filepath.Join(b.TempDir(), "raw"), MemSize: 32 << 20})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { db.Close() })
	return db
}

func benchStore(b *testing.B, deliver func(context.Context, *Batch) (Outcome, error)) *Store {
	s, err := Open(Options{Dir: filepath.Join(b.TempDir(), "queue"), Deliver: deliver})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { s.Close() })
	if err := s.Create(b.Context(), jobs, settings()); err != nil {
		b.Fatal(err)
	}
	return s
}

// inParallel spreads b.N calls over some goroutines.
func inParallel(b *testing.B, goroutines int, f func() error) {
	var left atomic.Int64
	left.Store(int64(b.N))
	var all sync.WaitGroup
	b.ReportAllocs()
	b.ResetTimer()
	for range goroutines {
		all.Go(func() {
			for left.Add(-1) >= 0 {
				if err := f(); err != nil {
					b.Error(err)
					return
				}
			}
		})
	}
	all.Wait()
	b.StopTimer()
}

func rate(b *testing.B, per int) {
	b.ReportMetric(float64(b.N*per)/b.Elapsed().Seconds(), "msg/s")
}

// One durable message of 512 B beside one durable write of 512 B.
func BenchmarkSend(b *testing.B) {
	for _, senders := range []struct {
		name string
		n    int
	}{{"senders=1", 1}, {"senders=128", 128}} {
		b.Run(senders.name+"/impl=pebble", func(b *testing.B) {
			db := benchPebble(b)
			var n atomic.Uint64
			value := make([]byte, benchBody)
			inParallel(b, senders.n, func() error {
				return db.Set(binary.BigEndian.AppendUint64(make([]byte, 0, 8), n.Add(1)), value, pebble.Sync)
			})
			rate(b, 1)
		})
		b.Run(senders.name+"/impl=ours", func(b *testing.B) {
			s := benchStore(b, nil)
			m := Message{Body: make([]byte, benchBody)}
			inParallel(b, senders.n, func() error {
				_, err := s.Send(b.Context(), jobs, m)
				return err
			})
			rate(b, 1)
		})
	}
}

// A hundred messages in one durable step.
func BenchmarkSendBatch(b *testing.B) {
	for _, senders := range []struct {
		name string
		n    int
	}{{"senders=1", 1}, {"senders=8", 8}} {
		b.Run(senders.name+"/impl=pebble", func(b *testing.B) {
			db := benchPebble(b)
			var n atomic.Uint64
			value := make([]byte, benchBody)
			inParallel(b, senders.n, func() error {
				batch := db.NewBatch()
				defer batch.Close()
				for range MaxBatch {
					if err := batch.Set(binary.BigEndian.AppendUint64(make([]byte, 0, 8), n.Add(1)), value, nil); err != nil {
						return err
					}
				}
				return batch.Commit(pebble.Sync)
			})
			rate(b, MaxBatch)
		})
		b.Run(senders.name+"/impl=ours", func(b *testing.B) {
			s := benchStore(b, nil)
			ms := make([]Message, MaxBatch)
			for i := range ms {
				ms[i].Body = make([]byte, benchBody)
			}
			inParallel(b, senders.n, func() error {
				_, err := s.SendBatch(b.Context(), jobs, ms)
				return err
			})
			rate(b, MaxBatch)
		})
	}
}

// From a backlog through lease, handler and acknowledgement, ten messages at a time; b.N counts messages.
func BenchmarkDeliver(b *testing.B) {
	for _, concurrency := range []struct {
		name string
		n    int
	}{{"concurrency=1", 1}, {"concurrency=16", 16}} {
		b.Run(concurrency.name, func(b *testing.B) {
			var seen atomic.Int64
			done := make(chan struct{})
			s := benchStore(b, func(_ context.Context, batch *Batch) (Outcome, error) {
				if seen.Add(int64(len(batch.Messages))) >= int64(b.N) {
					select {
					case done <- struct{}{}:
					default:
					}
				}
				return Returned, nil
			})
			fillQueue(b, s, b.N)
			runBench(b, s, concurrency.n, 10, func() {
				b.ReportAllocs()
				b.ResetTimer()
			}, done)
			rate(b, 1)
		})
	}
}

func fillQueue(b *testing.B, s *Store, n int) {
	ms := make([]Message, MaxBatch)
	for i := range ms {
		ms[i].Body = make([]byte, benchBody)
	}
	for ; n > 0; n -= MaxBatch {
		if _, err := s.SendBatch(b.Context(), jobs, ms[:min(n, MaxBatch)]); err != nil {
			b.Fatal(err)
		}
	}
}

// runBench delivers until done has a token.
func runBench(b *testing.B, s *Store, concurrency, size int, start func(), done chan struct{}) {
	ctx, cancel := context.WithCancel(b.Context())
	ended := make(chan error, 1)
	go func() { ended <- s.Run(ctx) }()
	start()
	err := s.SetConsumers([]Consumer{{Queue: jobs.UID, MaxBatchSize: size, MaxConcurrency: concurrency, MaxRetries: 3}})
	if err != nil {
		b.Fatal(err)
	}
	<-done
	b.StopTimer()
	cancel()
	if err := <-ended; !errors.Is(err, context.Canceled) {
		b.Error(err)
	}
}

// The steady state of a queue at which as much is sent as is delivered, with a backlog behind it and many messages passed: the
// rates must not depend on either.
func BenchmarkBacklog(b *testing.B) {
	for _, backlog := range []int{0, *backlogSize} {
		b.Run("backlog="+strconv.Itoa(backlog), func(b *testing.B) { steady(b, backlog) })
	}
}

func steady(b *testing.B, backlog int) {
	var seen atomic.Int64
	done := make(chan struct{})
	s := benchStore(b, func(_ context.Context, batch *Batch) (Outcome, error) {
		if seen.Add(int64(len(batch.Messages))) >= int64(b.N) {
			select {
			case done <- struct{}{}:
			default:
			}
		}
		return Returned, nil
	})
	fillQueue(b, s, backlog+1000)
	var senders sync.WaitGroup
	stop, halt := context.WithCancel(b.Context())
	runBench(b, s, 16, 10, func() {
		b.ResetTimer()
		for range 16 {
			senders.Go(func() {
				m := Message{Body: make([]byte, benchBody)}
				for stop.Err() == nil && seen.Load() < int64(b.N) {
					if _, err := s.Send(b.Context(), jobs, m); err != nil {
						b.Error(err)
						return
					}
				}
			})
		}
	}, done)
	halt()
	senders.Wait()
	rate(b, 1)
}

// How long it takes to open a store of a million messages and to count them; 1,000 of them were in delivery.
func BenchmarkRecovery(b *testing.B) {
	const total = 1_000_000
	dir := filepath.Join(b.TempDir(), "queue")
	s, err := Open(Options{Dir: dir})
	if err != nil {
		b.Fatal(err)
	}
	if err := errors.Join(s.Create(b.Context(), jobs, settings()), s.SetConsumers([]Consumer{{Queue: jobs.UID, MaxBatchSize: 100, MaxConcurrency: 10}})); err != nil {
		b.Fatal(err)
	}
	fillQueue(b, s, total)
	q := s.find(jobs.UID)
	for range 10 {
		if _, err := s.lease(q, s.decide(q, time.Now().Add(time.Second))); err != nil {
			b.Fatal(err)
		}
	}
	if err := s.Close(); err != nil {
		b.Fatal(err)
	}
	b.ResetTimer()
	for range b.N {
		s, err := Open(Options{Dir: dir})
		if err != nil {
			b.Fatal(err)
		}
		if st, err := s.Stats(b.Context(), jobs); st.Waiting != total || err != nil {
			b.Fatalf("%+v, %v", st, err)
		}
		if err := s.Close(); err != nil {
			b.Fatal(err)
		}
	}
}
