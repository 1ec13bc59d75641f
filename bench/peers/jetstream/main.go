// Command jetstream measures NATS JetStream, embedded, with a file store that syncs every write: the operations that the queue part of
// the bench measures. It prints them as `go test -bench` would. It is a module of its own, so that what it needs stays out of the
// program's.
//
// Not here: the network. Clients talk to the server inside this process.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

const (
	bodyBytes = 512
	subject   = "jobs"
)

func main() {
	window := flag.Duration("window", time.Second, "how long each operation is measured")
	messages := flag.Int("messages", 2000, "how many messages are consumed")
	flag.Parse()
	dir, err := os.MkdirTemp("", "jetstream-")
	if err == nil {
		err = errors.Join(run(dir, *window, *messages), os.RemoveAll(dir))
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(dir string, window time.Duration, messages int) error {
	s, err := server.NewServer(&server.Options{ServerName: "bench", DontListen: true, JetStream: true, StoreDir: dir, SyncAlways: true, NoLog: true, NoSigs: true})
	if err != nil {
		return err
	}
	s.Start()
	defer s.WaitForShutdown()
	defer s.Shutdown()
	if !s.ReadyForConnections(10 * time.Second) {
		return errors.New("the server is not ready")
	}
	conn, err := nats.Connect("", nats.InProcessServer(s))
	if err != nil {
		return err
	}
	defer conn.Close()
	js, err := jetstream.New(conn)
	if err != nil {
		return err
	}
	ctx := context.Background()
	stream, err := js.CreateStream(ctx, jetstream.StreamConfig{Name: "jobs", Subjects: []string{subject}, Storage: jetstream.FileStorage, Retention: jetstream.WorkQueuePolicy})
	if err != nil {
		return err
	}
	body := make([]byte, bodyBytes)
	one := func() error { _, err := js.Publish(ctx, subject, body); return err }
	hundred := func() error { return publish(js, body, 100) }
	for _, b := range []struct {
		name    string
		senders int
		per     int
		send    func() error
	}{{"Send/senders=1", 1, 1, one}, {"Send/senders=128", 128, 1, one}, {"SendBatch/senders=1", 1, 100, hundred}, {"SendBatch/senders=8", 8, 100, hundred}} {
		n, took, err := repeat(b.senders, window, b.send)
		if err != nil {
			return fmt.Errorf("%s: %w", b.name, err)
		}
		fmt.Printf("Benchmark%s/impl=jetstream\t%d\t%.0f msg/s\n", b.name, n, float64(n*int64(b.per))/took.Seconds())
		if err := stream.Purge(ctx); err != nil {
			return err
		}
	}
	for sent := 0; sent < messages; sent += 100 {
		if err := publish(js, body, 100); err != nil {
			return err
		}
	}
	rate, err := consume(ctx, stream, messages)
	if err != nil {
		return err
	}
	fmt.Printf("BenchmarkDeliver/concurrency=16/impl=jetstream\t%d\t%.0f msg/s\n", messages, rate)
	return nil
}

// publish sends n messages at once and waits for all of their acknowledgements. They are not one atomic step.
func publish(js jetstream.JetStream, body []byte, n int) error {
	acks := make([]jetstream.PubAckFuture, n)
	for i := range acks {
		var err error
		if acks[i], err = js.PublishAsync(subject, body); err != nil {
			return err
		}
	}
	for _, a := range acks {
		select {
		case <-a.Ok():
		case err := <-a.Err():
			return err
		}
	}
	return nil
}

// repeat runs f from some goroutines for a while and returns how often it ran.
func repeat(goroutines int, window time.Duration, f func() error) (n int64, took time.Duration, err error) {
	var count atomic.Int64
	var once sync.Once
	var all sync.WaitGroup
	began := time.Now()
	for range goroutines {
		all.Go(func() {
			for time.Since(began) < window {
				if e := f(); e != nil {
					once.Do(func() { err = e })
					return
				}
				count.Add(1)
			}
		})
	}
	all.Wait()
	return count.Load(), time.Since(began), err
}

// consume fetches ten messages at a time from 16 goroutines, acknowledges each and waits for that, and returns messages per second.
func consume(ctx context.Context, stream jetstream.Stream, messages int) (float64, error) {
	c, err := stream.CreateConsumer(ctx, jetstream.ConsumerConfig{Durable: "reader", AckPolicy: jetstream.AckExplicitPolicy, MaxAckPending: -1})
	if err != nil {
		return 0, err
	}
	var seen atomic.Int64
	_, took, err := repeat(16, time.Minute, func() error {
		if seen.Load() >= int64(messages) {
			return errDone
		}
		batch, err := c.Fetch(10, jetstream.FetchMaxWait(100*time.Millisecond))
		if err != nil {
			return err
		}
		for m := range batch.Messages() {
			if err := m.DoubleAck(ctx); err != nil {
				return err
			}
			seen.Add(1)
		}
		return batch.Error()
	})
	if !errors.Is(err, errDone) {
		return 0, errors.Join(err, fmt.Errorf("%d of %d messages were consumed", seen.Load(), messages))
	}
	return float64(messages) / took.Seconds(), nil
}

var errDone = errors.New("all messages were consumed")
