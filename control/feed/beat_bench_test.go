package feed

import (
	"bufio"
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"os"
	"os/exec"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
)

// beatReaders names the server that a process of this test program follows, instead of running tests.
const beatReaders = "EDGED_TEST_BEAT_READERS"

const beatFollowers = 200

// readBeats follows a server as many members, each over a connection of its own, says when all of them follow, and ends with its input.
func readBeats(url string) {
	ctx, cancel := context.WithCancel(context.Background())
	var run, ready sync.WaitGroup
	ready.Add(beatFollowers)
	for range beatFollowers {
		run.Go(func() {
			tr := &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, ForceAttemptHTTP2: true}
			defer tr.CloseIdleConnections()
			var first sync.Once
			_ = listen(ctx, &http.Client{Transport: tr}, url, 0, 0, func(uint64) { first.Do(ready.Done) })
		})
	}
	ready.Wait()
	fmt.Println("ready")
	_, _ = io.Copy(io.Discard, os.Stdin)
	cancel()
	run.Wait()
}

// flushes counts the times that something was sent: once for a beat.
type flushes struct {
	http.ResponseWriter
	count *atomic.Int64
	round chan struct{}
}

func (f flushes) Unwrap() http.ResponseWriter { return f.ResponseWriter }

func (f flushes) FlushError() error {
	if f.count.Add(1)%beatFollowers == 0 {
		select {
		case f.round <- struct{}{}:
		default:
		}
	}
	return http.NewResponseController(f.ResponseWriter).Flush()
}

// cpu returns how long this process has been at work.
func cpu(b *testing.B) time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// What it costs a member that 200 others follow to say every second that there is nothing new, over a TLS connection to each. They are
// another process, so that the work counted is the server's alone; an op is a round of beats, a second.
func BenchmarkBeat200(b *testing.B) {
	src := newSource(b, rand.New(rand.NewPCG(1, 2)))
	s := newServer(b, ServerOptions{})
	big(b, s, src, 1)
	var sent atomic.Int64
	round := make(chan struct{}, 1)
	srv := serveTLS(b, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { s.Handler().ServeHTTP(flushes{w, &sent, round}, r) }))
	readers := exec.Command(os.Args[0])
	readers.Env = append(os.Environ(), beatReaders+"="+srv.URL)
	readers.Stderr = os.Stderr
	stop, err := readers.StdinPipe()
	if err != nil {
		b.Fatal(err)
	}
	out, err := readers.StdoutPipe()
	if err != nil {
		b.Fatal(err)
	}
	if err := readers.Start(); err != nil {
		b.Fatal(err)
	}
	defer func() { stop.Close(); _ = readers.Wait() }()
	if line, err := bufio.NewReader(out).ReadString('\n'); err != nil || line != "ready\n" {
		b.Fatalf("%q, %v", line, err)
	}
	<-round // what is left of the beginning
	before, beats, began := cpu(b), sent.Load(), time.Now()
	for b.Loop() {
		<-round
	}
	worked, took := cpu(b)-before, time.Since(began)
	beats = sent.Load() - beats
	b.ReportMetric(float64(worked.Microseconds())/float64(beats), "µs/beat")
	b.ReportMetric(100*worked.Seconds()/took.Seconds(), "%core")
	b.ReportMetric(float64(beats)/took.Seconds(), "beats/s")
}
