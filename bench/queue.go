package main

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// queueSource sends to one queue that nobody reads and one that it consumes itself: the handler says to the bench which it saw.
const queueSource = `const body = "0123456789abcdef".repeat(32), decoder = new TextDecoder();
export default {
	async fetch(request, env) {
		const url = new URL(request.url);
		switch (url.pathname) {
		case "/send": await env.KEPT.send(body); break;
		case "/batch": await env.KEPT.sendBatch(Array.from({ length: 100 }, () => ({ body }))); break;
		case "/one": await env.READ.send(url.search.slice(1) + " " + body); break;
		case "/hundred": {
			const first = Number(url.search.slice(1));
			await env.READ.sendBatch(Array.from({ length: 100 }, (_, i) => ({ body: (first + i) + " " + body })));
		}
		}
		return new Response("Hello World");
	},
	async queue(batch, env) {
		const seen = batch.messages.map((m) => decoder.decode(m.body).split(" ", 1)[0]);
		await fetch(env.SINK, { method: "POST", body: seen.join(" ") });
	},
};`

const (
	pacedMessages  = 5000 // at 1,000 a second
	streamMessages = 20_000
)

// benchQueue measures the store at its door beside raw Pebble, and messages from one handler to another.
func benchQueue(ctx context.Context, cfg config, r *report) error {
	all, err := room(ctx, "./queue", func(binary string, all results) error {
		if err := all.run(ctx, binary, storeTurns, "^Benchmark(Send|SendBatch)$", "300ms"); err != nil {
			return err
		}
		if err := all.run(ctx, binary, storeTurns, "^BenchmarkDeliver$", "30000x"); err != nil {
			return err
		}
		return all.run(ctx, binary, 1, "^BenchmarkLatency$", "3000x")
	})
	if err != nil {
		return err
	}
	r.line("  from Go, 512 B, medians of %d turns; raw is the same bytes written to Pebble with sync", storeTurns)
	for _, b := range []struct {
		what, name string
		want       float64
	}{{"send, 1 sender", "Send/senders=1", 0.7}, {"send, 128 senders", "Send/senders=128", 0.7},
		{"sendBatch of 100, 1 sender", "SendBatch/senders=1", 0.5}, {"sendBatch of 100, 8 senders", "SendBatch/senders=8", 0.5}} {
		r.compared(b.what, all, b.name+"/impl=ours", b.name+"/impl=pebble", "raw", "msg/s", b.want)
	}
	r.value("lease and acknowledge, concurrency 1", spreadOf(all["Deliver/concurrency=1"]["msg/s"]), "1/s")
	r.reach("lease and acknowledge, concurrency 16", spreadOf(all["Deliver/concurrency=16"]["msg/s"]), 30_000, false, "1/s")
	r.line("  %-44s %8.2f ms p50, %.2f ms p99", "send to handler at 1,000 msg/s, Go", all.of("Latency", "p50-us")/1000, all.of("Latency", "p99-us")/1000)
	r.percentiles("send to handler at 1,000 msg/s, Go", []float64{all.of("Latency", "p50-us") / 1000}, []float64{all.of("Latency", "p99-us") / 1000})

	s, err := openSink(max(pacedMessages, streamMessages))
	if err != nil {
		return err
	}
	defer s.ln.Close()
	rules, err := s.rules()
	if err != nil {
		return err
	}
	defer os.RemoveAll(filepath.Dir(rules))
	return withNode(ctx, cfg, func(n *nodeProcess) error { return n.measureQueues(ctx, cfg, r, s) }, "--egress", rules, "--max-inflight", "1024")
}

func (n *nodeProcess) measureQueues(ctx context.Context, cfg config, r *report, s *sink) error {
	var queues [2]bound
	for i, name := range []string{"KEPT", "READ"} {
		var err error
		if queues[i], err = n.boundTo(ctx, "AtLeastOnceQueue/0.2.0/", name, map[string]any{"messageRetentionSeconds": 3600}); err != nil {
			return err
		}
	}
	bundle, err := n.bundle(ctx, "queues", queueSource)
	if err != nil {
		return err
	}
	worker, host, err := n.deployVersion(ctx, "queues", map[string]any{"bundle": bundle, "handlers": []string{"fetch", "queue"},
		"queueProducerBindings": queues[:], "vars": map[string]string{"SINK": "http://" + s.ln.Addr().String() + "/"}})
	if err != nil {
		return err
	}
	none, send, batch := n.contender("from JavaScript, no call", host, "/"), n.contender("from JavaScript, send", host, "/send"), n.contender("from JavaScript, sendBatch of 100", host, "/batch")
	if err := contest(ctx, cfg.fewer(), r, 2*connections, none, send, batch); err != nil {
		return err
	}
	r.besideFirst([]*contender{none, send, batch})
	_, err = n.create(ctx, "QueueConsumer/0.3.0/", "queues.consumer", map[string]any{"queue": queues[1].Resource, "worker": worker,
		"maxBatchSize": 100, "maxBatchTimeoutSeconds": 0, "maxConcurrency": 16, "maxRetries": 3, "retryDelaySeconds": 0})
	if err != nil {
		return err
	}
	if err := n.sendPaced(ctx, host, s); err != nil {
		return err
	}
	took := s.took(pacedMessages)
	r.line("  %-44s p50 %.2f ms, p99 %.2f ms, from the request to the consumer's own request outside",
		fmt.Sprintf("%d messages at 1,000 msg/s, JavaScript", pacedMessages), quantile(took, 0.5), quantile(took, 0.99))
	r.percentiles("a message at 1,000 msg/s, JavaScript", []float64{quantile(took, 0.5)}, []float64{quantile(took, 0.99)})
	began := time.Now()
	s.expect(streamMessages)
	if err := n.ask(ctx, host, streamMessages/100, 0, func(i int) string { return "/hundred?" + strconv.Itoa(100*i) }, nil); err != nil {
		return err
	}
	if err := s.wait(ctx); err != nil {
		return err
	}
	r.value("sendBatch to acknowledged, JavaScript", once(streamMessages/time.Since(began).Seconds()), "1/s")
	return nil
}

func (n *nodeProcess) sendPaced(ctx context.Context, host string, s *sink) error {
	for _, count := range []int{500, pacedMessages} { // the first ones warm up
		s.expect(count)
		path := func(i int) string { return "/one?" + strconv.Itoa(i) }
		if err := n.ask(ctx, host, count, time.Millisecond, path, func(i int) { s.sent[i] = time.Now() }); err != nil {
			return err
		}
		if err := s.wait(ctx); err != nil {
			return err
		}
	}
	return nil
}

// ask sends count requests over 32 connections, one per interval (0: as fast as they are answered), and says when each is sent.
func (n *nodeProcess) ask(ctx context.Context, host string, count int, interval time.Duration, path func(int) string, sent func(int)) error {
	var conns sync.Pool
	began := time.Now()
	return together(ctx, 32, count, func(_ context.Context, i int) (err error) {
		c, _ := conns.Get().(net.Conn)
		if c == nil {
			if c, err = net.Dial("tcp", n.http); err != nil {
				return err
			}
		}
		time.Sleep(time.Until(began.Add(time.Duration(i) * interval)))
		if sent != nil {
			sent(i)
		}
		if _, err = request(c, host, path(i), make([]byte, 1024)); err != nil {
			c.Close()
			return err
		}
		conns.Put(c)
		return nil
	})
}

// sink is where the consumer says what it saw.
type sink struct {
	ln   net.Listener
	sent []time.Time
	seen []atomic.Int64 // nanoseconds from sent, plus one; 0: not yet
	left atomic.Int64
	done chan struct{}
}

func openSink(most int) (*sink, error) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	s := &sink{ln: ln, sent: make([]time.Time, most), seen: make([]atomic.Int64, most), done: make(chan struct{}, 1)}
	go http.Serve(ln, s) //nolint:errcheck // ends with the listener
	return s, nil
}

// rules lets workers reach the sink and nothing else.
func (s *sink) rules() (string, error) {
	dir, err := os.MkdirTemp("", "edged-bench-")
	if err != nil {
		return "", err
	}
	_, port, err := net.SplitHostPort(s.ln.Addr().String())
	if err != nil {
		return "", err
	}
	file := filepath.Join(dir, "egress")
	return file, os.WriteFile(file, []byte("allow 127.0.0.1 "+port+"\ndefault none\n"), 0o600)
}

// expect begins a run of messages numbered from 0.
func (s *sink) expect(count int) {
	for i := range s.seen {
		s.seen[i].Store(0)
	}
	s.left.Store(int64(count))
}

// ServeHTTP takes the numbers of a batch; one that came before (delivery is at least once) counts once.
func (s *sink) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	now := time.Now()
	body, err := io.ReadAll(req.Body)
	if err != nil {
		w.WriteHeader(http.StatusInternalServerError)
		return
	}
	for _, text := range strings.Fields(string(body)) {
		i, err := strconv.Atoi(text)
		if err != nil || i >= len(s.seen) || !s.seen[i].CompareAndSwap(0, int64(now.Sub(s.sent[i]))+1) {
			continue
		}
		if s.left.Add(-1) == 0 {
			s.done <- struct{}{}
		}
	}
}

func (s *sink) wait(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	select {
	case <-s.done:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("%d messages did not reach the consumer", s.left.Load())
	}
}

// took returns the milliseconds of the first messages.
func (s *sink) took(count int) []float64 {
	all := make([]float64, count)
	for i := range all {
		all[i] = milliseconds(time.Duration(s.seen[i].Load() - 1))
	}
	return all
}
