package sandbox

import (
	"context"
	"errors"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"edged/internal/fault"
	"edged/sandbox/event"
)

// module-worker §6, §7: guests that never end do not keep others from running: a short request is answered while they are
// at it, and they are stopped when they have used their own time.
func TestGuestsTakeTurns(t *testing.T) {
	s := newBox(t, Options{MaxRunning: 1, MaxCPU: 3 * time.Second, MaxWall: time.Minute})
	hostile := openWorker(t, s, fetcher(`for (;;) {}`))
	good := openWorker(t, s, fetcher(`return new Response('ok')`))
	const loops = 4
	ended := make(chan string, loops)
	for range loops {
		go func() {
			var res event.Response
			ended <- fault.NameOf(hostile.Serve(context.Background(), request(), &res))
		}()
	}
	for end := time.Now().Add(20 * time.Second); s.turns.taken() == 0 || s.turns.waiting.Load() < loops-1; {
		if time.Now().After(end) {
			t.Fatal("the loops do not run")
		}
	}
	for range 20 {
		if got := text(t, good); got != "ok" {
			t.Fatalf("got %q", got)
		}
	}
	if len(ended) > 0 {
		t.Error("a loop had ended before the others had their turn: the test shows nothing")
	}
	for range loops {
		if got := <-ended; got != "cpu_exceeded" {
			t.Errorf("a loop ended with %q", got)
		}
	}
}

// module-worker §3.1: when the client leaves, what runs for it ends within about a second even if it never looks at its signal.
func TestDesertedGuestIsStopped(t *testing.T) {
	s := newBox(t, Options{MaxRunning: 1, MaxCPU: time.Minute, MaxWall: time.Minute})
	hostile := openWorker(t, s, fetcher(`for (;;) {}`))
	ctx, leave := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() {
		var res event.Response
		ended <- hostile.Serve(ctx, request(), &res)
	}()
	for end := time.Now().Add(20 * time.Second); s.turns.taken() == 0; {
		if time.Now().After(end) {
			t.Fatal("the loop does not run")
		}
	}
	leave()
	if err := <-ended; fault.CodeOf(err) != fault.Canceled {
		t.Errorf("ended with %v", err)
	}
	idle(t, hostile)
	good := openWorker(t, s, fetcher(`return new Response('ok')`))
	if got := text(t, good); got != "ok" {
		t.Errorf("got %q", got)
	}
}

// deserter stands in line until the function that it returns is called.
func deserter(t *testing.T, s *turns, who *queues) (leave func()) {
	ctx, cancel := context.WithCancel(context.Background())
	p := s.line(who, quick, until{gone: ctx})
	return func() {
		s.sweep()
		if len(p.ready) > 0 {
			t.Error("a wait ended that nothing had ended")
		}
		cancel()
		s.sweep()
		if err := <-p.ready; !errors.Is(err, errClient) {
			t.Errorf("the wait of a client that has left ended with %v", err)
		}
	}
}

// A wait ends with its slot, its client, its deadline or its version, within some milliseconds, and costs no memory.
func TestWaitsEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, who := newTurns(1, 0), new(queues)
		s.try(quick)
		ctx, leave := context.WithCancel(t.Context())
		killed := make(chan struct{})
		for _, c := range []struct {
			until until
			end   func()
			want  error
		}{
			{until{gone: ctx}, leave, errClient},
			{until{kill: killed}, func() { close(killed) }, errShutdown},
			{until{deadline: time.Now().Add(time.Second)}, func() { time.Sleep(time.Second) }, event.ErrWall},
			{until{}, func() { s.give(quick) }, nil},
		} {
			ended := make(chan error, 1)
			go func() { ended <- s.wait(who, quick, c.until) }()
			synctest.Wait()
			time.Sleep(10 * sweepEvery)
			if synctest.Wait(); len(ended) > 0 {
				t.Fatalf("a wait for %v ended by itself: %v", c.want, <-ended)
			}
			c.end()
			began := time.Now()
			if err := <-ended; !errors.Is(err, c.want) || time.Since(began) > sweepEvery {
				t.Errorf("got %v after %v, want %v", err, time.Since(began), c.want)
			}
		}
	})
}

// Whoever worked long waits for those who have not, but not for ever.
func TestTurnsPreferTheQuick(t *testing.T) {
	s, who := newTurns(1, 0), new(queues)
	if !s.try(quick) || s.try(quick) {
		t.Fatal("there is one slot")
	}
	long, gone := s.line(who, slow, until{}), deserter(t, s, who)
	var short []*place
	for range 2 * quickInARow {
		short = append(short, s.line(who, quick, until{}))
	}
	gone()
	holds := quick
	for i := range 2*quickInARow + 1 {
		s.give(holds)
		want := long
		switch {
		case i < quickInARow:
			want = short[i]
		case i > quickInARow:
			want = short[i-1]
		}
		select {
		case <-want.ready:
			holds = want.pace
		default:
			t.Fatalf("slot %d went to another", i)
		}
	}
	if s.give(holds); s.taken() != 0 || s.waiting.Load() != 0 || s.slow != 0 {
		t.Errorf("%d slots are taken, %d of them by slow ones, %d wait", s.taken(), s.slow, s.waiting.Load())
	}
}

// While quick ones come, a slot stays free for the next of them; those that work long have every slot again soon after.
func TestTurnsLeaveASlotToTheQuick(t *testing.T) {
	s, who := newTurns(2, 0), new(queues)
	for range 2 {
		if !s.try(slow) {
			t.Fatal("nobody quick has come: those that work long have both slots")
		}
	}
	if s.try(quick) {
		t.Fatal("there are two slots")
	}
	came := s.line(who, quick, until{})
	s.give(slow)
	if again := s.line(who, slow, until{}); len(came.ready) != 1 || len(again.ready) != 0 {
		t.Fatal("the quick one waits behind one that works long")
	}
	s.give(came.pace)
	if s.taken() != 1 || !s.try(quick) {
		t.Fatal("its slot was not left to the next quick one")
	}
	s.give(quick)
	turns := 0
	for s.taken() == 1 {
		s.give(slow) // to the one that waits
		s.line(who, slow, until{})
		if turns++; turns > 1000 {
			t.Fatal("the slot is kept for ever")
		}
	}
	if turns < guardTurns {
		t.Errorf("the slot was kept for %d turns", turns)
	}
}

// Slots beside the others are for the brief alone: others neither get one nor lose theirs to them, in line or out of it.
func TestTurnsOfTheBrief(t *testing.T) {
	s, who, other := newTurns(2, 1), new(queues), new(queues)
	if !s.try(slow) || !s.try(quick) || s.try(quick) || s.try(slow) {
		t.Fatal("there are two slots for all")
	}
	if !s.try(brief) || s.try(brief) {
		t.Fatal("there is one more for the brief")
	}
	first, second, third := s.line(who, quick, until{}), s.line(other, brief, until{}), s.line(other, brief, until{})
	s.give(brief)
	if len(first.ready) != 0 || len(second.ready) != 1 || len(third.ready) != 0 {
		t.Fatal("a slot of the brief went to another, or waits with one of them behind another")
	}
	s.give(quick)
	if len(first.ready) != 1 || len(third.ready) != 0 {
		t.Fatal("a slot for all went past the next in line")
	}
	s.give(brief)
	s.give(slow)
	s.give(quick)
	for range 2 {
		if !s.try(brief) {
			t.Error("the brief have the other slots too")
		}
	}
	if s.try(quick) || s.try(brief) {
		t.Error("there are more slots than there are")
	}
	for range 3 {
		s.give(brief)
	}
	if s.taken() != 0 || s.waiting.Load() != 0 || s.slow != 0 {
		t.Errorf("%d slots are taken, %d of them by slow ones, %d wait", s.taken(), s.slow, s.waiting.Load())
	}
}

// However many brief ones come, whoever else waits has the next slot that one of them gives back.
func TestTheBriefKeepNobodyOut(t *testing.T) {
	for _, as := range []pace{quick, slow} {
		s, who := newTurns(2, 1), new(queues)
		for s.try(brief) {
		}
		if s.taken() != 3 {
			t.Fatalf("the brief have %d slots", s.taken())
		}
		waits := s.line(who, as, until{})
		s.give(brief)
		if s.try(brief) || len(waits.ready) != 1 {
			t.Errorf("a brief one went before one of pace %d that waited", as)
		}
		s.give(brief)
		if !s.try(brief) {
			t.Error("its slot is not given again")
		}
	}
}

// How brief a version's invocations are is learnt from them; of one that nobody called nothing is taken for granted.
func TestPaceIsLearnt(t *testing.T) {
	v := new(Version)
	for _, c := range []struct {
		cpu   time.Duration
		times int
		want  pace
	}{{0, 0, quick}, {20 * time.Microsecond, 1, brief}, {2 * time.Millisecond, 20, quick}, {50 * time.Millisecond, 20, slow}, {10 * time.Microsecond, 100, brief},
		{5 * time.Millisecond, 1, quick}, {10 * time.Microsecond, 10, brief}} {
		for range c.times {
			v.learn(c.cpu)
		}
		if v.pace() != c.want {
			t.Errorf("after %d of %v it is taken for %d, usual %v", c.times, c.cpu, v.pace(), time.Duration(v.usual.Load()))
		}
	}
}

// A version whose invocations work long as a rule waits behind the others' from the start of the next one, until it changes its ways.
func TestTurnsKnowWhoWorksLong(t *testing.T) {
	told := make(chan string, 256)
	s := newBox(t, Options{MaxRunning: 1, Console: func(e Entry) { told <- e.Text }})
	long := openWorker(t, s, `let n = 0; export default { fetch(request) {
		console.log("long");
		const turns = request.headers.get("accept") === "short" ? 1 : 5e6;
		for (let i = 0; i < turns; i++) n += i;
		return new Response("long") } }`)
	good := openWorker(t, s, fetcher(`console.log("good"); return new Response('ok')`))
	text(t, long)
	text(t, good)
	if long.pace() != slow || good.pace() == slow {
		t.Fatalf("usual are %d and %d ns", long.usual.Load(), good.usual.Load())
	}
	<-told
	<-told
	free := full(s)
	ended := make(chan error, 2)
	for i, v := range []*Version{long, good} {
		go func() {
			var res event.Response
			ended <- v.Serve(context.Background(), request(), &res)
		}()
		for end := time.Now().Add(20 * time.Second); s.turns.waiting.Load() < int32(i+1); runtime.Gosched() {
			if time.Now().After(end) {
				t.Fatal("the invocation does not wait")
			}
		}
	}
	free()
	if err := errors.Join(<-ended, <-ended); err != nil {
		t.Error(err)
	}
	if first, second := <-told, <-told; first != "good" || second != "long" {
		t.Errorf("%s ran before %s", first, second)
	}
	short := request()
	short.Header = []byte("host\nworker.test\naccept\nshort\n")
	for range 100 {
		serve(t, long, short)
	}
	if long.pace() == slow {
		t.Errorf("a version that has changed its ways still takes %d ns as a rule", long.usual.Load())
	}
}

// Versions take turns: one with a hundred guests that wait does not keep another's from the next slot but one.
func TestTurnsAreFairBetweenVersions(t *testing.T) {
	s, crowd, other := newTurns(1, 0), new(queues), new(queues)
	s.try(quick)
	var many []*place
	for range 100 {
		many = append(many, s.line(crowd, quick, until{}))
	}
	one := s.line(other, quick, until{})
	gone := deserter(t, s, other)
	s.give(quick)
	<-many[0].ready
	s.give(quick)
	select {
	case <-one.ready:
	default:
		t.Fatal("the other version waits behind the crowd")
	}
	gone()
	for _, p := range many[1:] {
		s.give(quick)
		<-p.ready
	}
	if s.give(quick); s.taken() != 0 || s.waiting.Load() != 0 || s.queues[quick].Len() != 0 {
		t.Errorf("left behind: %d taken, %d wait, %d queues", s.taken(), s.waiting.Load(), s.queues[quick].Len())
	}
}
