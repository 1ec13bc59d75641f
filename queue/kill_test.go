package queue

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

// childDir tells a copy of this test binary to be the process that is killed.
const childDir = "EDGED_TEST_QUEUE_DIR"

const killRetries = 3

func killConsumer() Consumer {
	return Consumer{Queue: jobs.UID, MaxBatchSize: 4, MaxConcurrency: 4, MaxRetries: killRetries, DeadLetter: dlq.UID}
}

// TestKilledChild is that process: it sends, delivers and settles, and says on standard output what is durable, until it is killed.
func TestKilledChild(t *testing.T) {
	dir := os.Getenv(childDir)
	if dir == "" {
		t.Skip("runs only as the child of TestKilledProcess")
	}
	var mu sync.Mutex
	say := func(format string, args ...any) {
		mu.Lock()
		defer mu.Unlock()
		fmt.Printf(format, args...)
	}
	s, err := Open(Options{Dir: dir, Lease: 30 * time.Millisecond, Deliver: func(_ context.Context, b *Batch) (Outcome, error) {
		for i, m := range b.Messages {
			say("seen %s %d\n", m.Body, m.Attempts)
			if i%2 == 0 {
				say("ending %s 0\n", m.Body)
				if err := b.Acknowledge(m.ID); err != nil {
					return Threw, err
				}
				say("acked %s 0\n", m.Body)
			}
		}
		return Threw, nil
	}})
	if err != nil {
		t.Fatal(err)
	}
	ctx := t.Context()
	if err := errors.Join(s.Create(ctx, jobs, settings()), s.Create(ctx, dlq, settings()), s.SetConsumers([]Consumer{killConsumer()})); err != nil {
		t.Fatal(err)
	}
	go func() { _ = s.Run(ctx) }() // it is killed
	for i := 0; ; i++ {
		body := fmt.Sprintf("%d-%d", os.Getpid(), i)
		if _, err := s.Send(ctx, jobs, Message{Body: []byte(body)}); err != nil {
			t.Fatal(err)
		}
		say("sent %s 0\n", body)
	}
}

// queue §6 with a real process: SIGKILL loses nothing that was accepted, revives nothing that was acknowledged, and spends no more
// than the budget.
func TestKilledProcess(t *testing.T) {
	dir := t.TempDir()
	fates := map[string]*fate{}
	const rounds = 3
	for round := range rounds {
		cmd := exec.Command(os.Args[0], "-test.run=^TestKilledChild$", "-test.count=1")
		cmd.Env = append(os.Environ(), childDir+"="+dir)
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		lines := bufio.NewScanner(out)
		said := 0
		for lines.Scan() {
			words := strings.Fields(lines.Text())
			if len(words) == 3 {
				said++
				record(t, fates, words)
			}
			if said == 200+137*round {
				if err := cmd.Process.Kill(); err != nil { // what it still said before its end is read too
					t.Error(err)
				}
			}
		}
		_ = cmd.Wait() // it was killed
		if said < 200 {
			t.Fatalf("the child said %d things", said)
		}
	}
	drainKilled(t, dir, fates)
	for body, f := range fates {
		if f.accepted && !f.ending && f.dead == 0 {
			t.Errorf("%s is lost: %+v", body, *f)
		}
		if f.dead > 1 || f.dead == 1 && (f.acked || f.delivered+rounds <= killRetries) {
			t.Errorf("%s is a dead letter: %+v", body, *f)
		}
	}
}

func fateOf(fates map[string]*fate, body string) *fate {
	f := fates[body]
	if f == nil {
		f = &fate{}
		fates[body] = f
	}
	return f
}

func record(t *testing.T, fates map[string]*fate, words []string) {
	f := fateOf(fates, words[1])
	switch words[0] {
	case "sent":
		f.accepted = true
	case "seen":
		attempts, err := strconv.Atoi(words[2])
		f.delivered++
		if err != nil || attempts <= f.attempts || attempts > 1+killRetries || f.delivered > 1+killRetries || f.acked {
			t.Errorf("%v after %+v", words, *f)
		}
		f.attempts = attempts
	case "ending":
		f.ending = true
	case "acked":
		f.acked = true
	}
}

// drainKilled delivers all that is left and acknowledges it, and counts the dead letters.
func drainKilled(t *testing.T, dir string, fates map[string]*fate) {
	var mu sync.Mutex
	idle := make(chan struct{}, 1)
	s, err := Open(Options{Dir: dir, Deliver: func(_ context.Context, b *Batch) (Outcome, error) {
		mu.Lock()
		defer mu.Unlock()
		for _, m := range b.Messages {
			record(t, fates, []string{"seen", string(m.Body), strconv.Itoa(m.Attempts)})
			fates[string(m.Body)].ending = true
		}
		signal(idle)
		return Returned, nil
	}})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	ended := make(chan error, 1)
	go func() { ended <- s.Run(ctx) }()
	if err := s.SetConsumers([]Consumer{killConsumer()}); err != nil {
		t.Fatal(err)
	}
	poll := time.NewTicker(5 * time.Millisecond)
	defer poll.Stop()
	for {
		st, err := s.Stats(ctx, jobs)
		if err != nil {
			t.Fatal(err)
		}
		if st.Waiting+st.InFlight == 0 {
			break
		}
		select {
		case <-idle:
		case <-poll.C:
		case <-ctx.Done():
			t.Fatalf("not drained: %+v", st)
		}
	}
	cancel()
	<-ended
	peeked := PeekOptions{Max: 1000, Bodies: true}
	for {
		p, err := s.Peek(t.Context(), dlq, peeked)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range p.Messages {
			fateOf(fates, string(m.Body)).dead++
		}
		if peeked.Cursor = p.Next; p.Next == "" {
			return
		}
	}
}
