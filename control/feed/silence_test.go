package feed

import (
	"bytes"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// A follower leaves an upstream that fell silent within seconds where both know of the quick beat, and within the stall time where the
// upstream is of a program that does not: it beats more slowly, which is no silence. It is not the first that is tried next.
func TestSilentUpstreamIsLeft(t *testing.T) {
	for name, quick := range map[string]bool{"quick": true, "of before": false} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := newPair(t, ServerOptions{})
				asked := 0
				end := p.net.serve("silent", http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					if r.URL.Path != pathFeed {
						http.NotFound(w, r)
						return
					}
					asked++
					if r.URL.Query().Get("beat") != "1000" {
						t.Errorf("asked %s", r.URL)
					}
					if quick {
						w.Header().Set(headerBeat, "1000")
					}
					b := appendFrame(appendHello(nil, 1, false), frameReset)
					b = appendBeat(appendFrame(b, frameEnd, num(0), num(0)), 0, 0)
					_, _ = w.Write(b)
					_ = http.NewResponseController(w).Flush()
					<-r.Context().Done()
				}))
				p.n.upstreams = fixed(upstream("silent", true), upstream("voter", false))
				p.change(t)
				p.n.start()
				least, most := quickStall, quickStall+time.Second
				if !quick {
					least, most = stall, stall+time.Second
				}
				time.Sleep(least - time.Second)
				if p.n.index() != 0 {
					t.Error("it left an upstream that may still beat")
				}
				time.Sleep(most - least + time.Second)
				level(t, p.n, p.src.plan, time.Millisecond)
				if asked != 1 {
					t.Errorf("the silent upstream was asked %d times", asked)
				}
				p.n.stop()
				end()
				p.lose()
			})
		})
	}
}

// The beat that a follower asks for is bounded: nobody makes a voter write more often.
func TestBeatIsBounded(t *testing.T) {
	for text, want := range map[string]time.Duration{
		"": 0, "0": 0, "-1": 0, "x": 0, "99999999": 0, "1": quickBeat, "1000": quickBeat, "3000": 3 * time.Second, "60000": heartbeat,
	} {
		if got := beatOf(text); got != want {
			t.Errorf("%q: %v, want %v", text, got, want)
		}
	}
}

// A member's program is known to the voters as it reports, whatever its epoch; one that says nothing of it counts as level 0, and what is
// no version for a terminal is not shown.
func TestProgramsAreAnnounced(t *testing.T) {
	s := newServer(t, ServerOptions{Caller: func(r *http.Request) string { return r.Header.Get("From") }})
	post := func(from, body string) {
		t.Helper()
		r, _ := http.NewRequest("POST", pathServing, strings.NewReader(body))
		r.Header.Set("From", from)
		w := &recorder{}
		s.Handler().ServeHTTP(w, r)
		if w.status != http.StatusNoContent {
			t.Errorf("%s: status %d", from, w.status)
		}
	}
	post("old", `{"epoch":1,"index":2}`)
	post("new", `{"epoch":9,"index":2,"version":"v1.2","level":3,"novel":true}`)
	post("odd", `{"epoch":1,"index":2,"version":"\u001b[2J","level":1}`)
	post("long", `{"epoch":1,"index":2,"version":"`+strings.Repeat("x", maxVersion+1)+`","level":1}`)
	want := map[string]Program{"old": {}, "new": {"v1.2", 3}, "odd": {"", 1}, "long": {"", 1}}
	for member, p := range s.Announced() {
		if p != want[member] {
			t.Errorf("%s: %+v, want %+v", member, p, want[member])
		}
		delete(want, member)
	}
	if len(want) > 0 {
		t.Errorf("nothing is known of %v", want)
	}
}

type recorder struct {
	status int
	header http.Header
	bytes.Buffer
}

func (r *recorder) Header() http.Header {
	if r.header == nil {
		r.header = http.Header{}
	}
	return r.header
}
func (r *recorder) WriteHeader(status int) { r.status = status }
