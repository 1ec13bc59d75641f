package feed

import (
	"math/rand/v2"
	"net/http"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// counting counts the feeds that begin.
func counting(h http.Handler, feeds *atomic.Int64) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == pathFeed {
			feeds.Add(1)
		}
		h.ServeHTTP(w, r)
	})
}

// A member that follows a machine which vanishes, so that nothing comes from it and nothing is refused there, has what is published
// afterwards from another within the bound that docs/fleet.md gives: the silence, counted from the last beat, and the pause before the next.
func TestVanishedUpstream(t *testing.T) {
	const least, most = quickStall - quickBeat, quickStall + retryFirst<<2 + 100*time.Millisecond
	shortest, longest := time.Hour, time.Duration(0)
	for part := range 8 { // when in a beat it vanishes
		synctest.Test(t, func(t *testing.T) {
			f, src := newFabric(), newSource(t, rand.New(rand.NewPCG(1, uint64(part))))
			voters := map[string]*Server{"a": newServer(t, ServerOptions{}), "b": newServer(t, ServerOptions{})}
			var ends []func()
			change := func() {
				d := src.change(t)
				for _, v := range voters {
					publish(t, v, 1, d)
				}
			}
			for name, v := range voters {
				ends = append(ends, f.serve(name, handler(v, src.files)))
			}
			change()
			n := newNode(t, f, "node", fixed(upstream("a", true), upstream("b", true)))
			n.start()
			level(t, n, src.plan, time.Second)
			time.Sleep(10*time.Second + time.Duration(part)*quickBeat/8)
			gone, _ := n.f.Following()
			f.setSilent(link("node", gone))
			change()
			began := time.Now()
			level(t, n, src.plan, time.Minute)
			took := time.Since(began)
			shortest, longest = min(shortest, took), max(longest, took)
			if took < least || took > most {
				t.Errorf("it had the change from another upstream after %v, want %v to %v", took, least, most)
			}
			if now, open := n.f.Following(); now == gone || !open {
				t.Errorf("it follows %s, open %t, after %s vanished", now, open, gone)
			}
			n.stop()
			for _, end := range ends {
				end()
			}
		})
	}
	t.Logf("after %v to %v", shortest, longest)
}

// An upstream that lives and is slow is kept: what it sends may be late by what a silence is longer than a beat. One that is slower is left.
func TestSlowUpstreamIsKept(t *testing.T) {
	for _, delay := range []time.Duration{quickBeat * 3 / 2, quickStall - quickBeat - 100*time.Millisecond, quickStall + time.Second} {
		synctest.Test(t, func(t *testing.T) {
			p, feeds := newPair(t, ServerOptions{}), new(atomic.Int64)
			p.lose()
			p.lose = p.net.serve("voter", counting(handler(p.voter, p.src.files), feeds))
			p.change(t)
			p.n.start()
			level(t, p.n, p.src.plan, time.Second)
			p.net.setDelay("voter", delay)
			time.Sleep(time.Minute)
			p.change(t)
			time.Sleep(time.Minute)
			kept := delay < quickStall
			if again := feeds.Load() > 1; again == kept {
				t.Errorf("with %v between two pieces %d feeds were begun", delay, feeds.Load())
			}
			if err := p.n.equals(p.src.plan, nil); err != nil && kept {
				t.Error(err)
			}
			p.net.setDelay("voter", 0)
			level(t, p.n, p.src.plan, time.Minute)
			p.n.stop()
			p.lose()
			time.Sleep(delay) // what was on its way
		})
	}
}
