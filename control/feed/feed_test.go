package feed

import (
	"bytes"
	"context"
	"crypto/sha256"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"

	"edged/control/artifact"
	"edged/control/plan"
	"edged/internal/fault"
)

// level waits in virtual time until a node serves the source's plan.
func level(t *testing.T, n *node, want *plan.Plan, within time.Duration) {
	t.Helper()
	for end := time.Now().Add(within); ; time.Sleep(10 * time.Millisecond) {
		err := n.equals(want, nil)
		if err == nil {
			return
		}
		if time.Now().After(end) {
			t.Fatal(err)
		}
	}
}

// pair is a voter and one follower of it, in virtual time.
type pair struct {
	net   *fabric
	src   *source
	voter *Server
	n     *node
	lose  func() // the voter's listener
}

func newPair(t *testing.T, opt ServerOptions) *pair {
	p := &pair{net: newFabric(), src: newSource(t, rand.New(rand.NewPCG(1, 2))), voter: newServer(t, opt)}
	p.lose = p.net.serve("voter", handler(p.voter, p.src.files))
	p.n = newNode(t, p.net, "node", fixed(upstream("voter", true)))
	return p
}

func (p *pair) change(t *testing.T) {
	t.Helper()
	publish(t, p.voter, 1, p.src.change(t))
}

// A follower that comes back is sent only what it missed, over a lost connection and over its own restart.
func TestResume(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPair(t, ServerOptions{})
		p.change(t)
		p.n.start()
		level(t, p.n, p.src.plan, time.Second)
		first := p.src.plan.Index
		p.net.setCut(true, link("node", "voter"))
		p.change(t)
		p.change(t)
		p.net.setCut(false, link("node", "voter"))
		level(t, p.n, p.src.plan, 10*time.Second)
		if p.n.index() <= first {
			t.Errorf("after a cut the follower is at index %d, it had %d before", p.n.index(), first)
		}
		p.n.stop()
		p.change(t)
		p.n.start()
		level(t, p.n, p.src.plan, 10*time.Second)
		if n := testutil.ToFloat64(p.voter.opt.Metrics.wholes); n != 1 {
			t.Errorf("%v whole plans were sent; after the first, deltas are enough", n)
		}
		p.n.stop()
		p.lose()
	})
}

// Which answer a follower gets for where it is: what follows, everything, or a refusal.
func TestWhereAFollowerIs(t *testing.T) {
	s := newServer(t, ServerOptions{Filter: leavesOnly})
	ask := func(member string, at position) (status int, whole bool, events []Event) {
		t.Helper()
		ctx, cancel := context.WithCancel(t.Context())
		r, w := io.Pipe()
		req := httptest.NewRequestWithContext(ctx, "GET", fmt.Sprintf("%s?epoch=%d&from=%d&partial=%t", pathFeed, at.epoch, at.index, at.partial), nil)
		req.RemoteAddr = member
		rec := &piped{w: w, code: make(chan int, 1)}
		done := make(chan struct{})
		go func() { defer close(done); s.Handler().ServeHTTP(rec, req); rec.WriteHeader(200); w.Close() }() // ends with cancel
		defer func() { cancel(); r.Close(); <-done }()
		if status = <-rec.code; status != 200 {
			return status, false, nil
		}
		for dec := NewDecoder(r, nil); ; {
			e, err := dec.Next()
			if err != nil {
				t.Fatal(err)
			}
			events = append(events, e)
			if e.Beat != nil {
				return status, whole, events
			}
			whole = whole || e.Change != nil && e.Change.Whole != nil
		}
	}
	if status, _, _ := ask("leaf", position{}); status != 503 {
		t.Errorf("a node without a plan answers %d", status)
	}
	src := newSource(t, rand.New(rand.NewPCG(1, 2)))
	var indexes []uint64
	for range 10 {
		d := src.change(t)
		publish(t, s, 7, d)
		indexes = append(indexes, d.Index)
	}
	for _, tt := range []struct {
		what    string
		member  string
		at      position
		status  int
		whole   bool
		changes int
	}{
		{"new", "leaf", position{}, 200, true, 1},
		{"at the end", "leaf", position{7, indexes[9], false}, 200, false, 0},
		{"two behind", "leaf", position{7, indexes[7], false}, 200, false, 2},
		{"between two", "leaf", position{7, indexes[9] - 1, false}, 200, indexes[9]-1 != indexes[8], 1},
		{"of an older epoch", "leaf", position{6, indexes[9], false}, 200, true, 1},
		{"of a newer epoch", "leaf", position{8, 1, false}, 503, false, 0},
		{"ahead", "leaf", position{7, indexes[9] + 1, false}, 503, false, 0},
		{"with a part, and needs all", "leaf", position{7, indexes[9], true}, 200, true, 1},
		{"with all, and needs a part", "part", position{7, indexes[9], false}, 200, true, 1},
		{"with a part", "part", position{7, indexes[8], true}, 200, false, 1},
	} {
		status, whole, events := ask(tt.member, tt.at)
		if status != tt.status || whole != tt.whole || status == 200 && len(events)-2 != tt.changes {
			t.Errorf("%s: status %d, whole %t, %d changes; want %d, %t, %d", tt.what, status, whole, len(events)-2, tt.status, tt.whole, tt.changes)
		}
	}
	if err := s.Publish(7, true, &plan.Delta{Index: indexes[9] + 5}); err != nil {
		t.Fatal(err)
	}
	if status, _, _ := ask("leaf", position{}); status != 503 {
		t.Errorf("a node that has only its own part of the plan feeds others: status %d", status)
	}
}

// piped is a ResponseWriter that can be read while it is written.
type piped struct {
	w    io.Writer
	h    http.Header
	code chan int
	sent bool
}

func (p *piped) Header() http.Header {
	if p.h == nil {
		p.h = http.Header{}
	}
	return p.h
}

func (p *piped) WriteHeader(code int) {
	if !p.sent {
		p.sent = true
		p.code <- code
	}
}
func (p *piped) Write(b []byte) (int, error)      { p.WriteHeader(200); return p.w.Write(b) }
func (p *piped) Flush()                           {}
func (p *piped) SetWriteDeadline(time.Time) error { return nil }

// A follower that reads nothing is cut off after the stall time and holds up nobody; one that is merely sent nothing hears a heartbeat.
func TestSlowFollowerIsCutOff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPair(t, ServerOptions{})
		p.change(t)
		conn, err := p.net.dial(t.Context(), "slow", "voter")
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		if _, err := io.WriteString(conn, "GET "+pathFeed+"?epoch=0&from=0&partial=false HTTP/1.1\r\nHost: voter\r\n\r\n"); err != nil {
			t.Fatal(err)
		}
		p.n.start()
		level(t, p.n, p.src.plan, time.Second)
		synctest.Wait()
		streams := func() int { p.voter.mu.Lock(); defer p.voter.mu.Unlock(); return p.voter.streams }
		if n := streams(); n != 2 {
			t.Fatalf("%d feeds are open, want 2", n)
		}
		time.Sleep(stall + heartbeat)
		if n := streams(); n != 1 {
			t.Errorf("%d feeds are open after the slow one said nothing for %v, want 1", n, stall)
		}
		if _, cut := p.n.f.CutOff(); cut {
			t.Error("a follower that hears heartbeats counts as cut off")
		}
		p.change(t)
		level(t, p.n, p.src.plan, time.Second)
		p.n.stop()
		p.lose()
	})
}

// A plan waits for the files of what is deployed; what is deployed later in its place makes up for a file that nobody has.
func TestPlanWaitsForItsFiles(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPair(t, ServerOptions{})
		p.change(t)
		p.n.start()
		level(t, p.n, p.src.plan, time.Second)
		before := p.src.plan.Index
		lost := p.src.deploy(t, "w0")
		lost.Bundles.Put[0].Files[0].SHA256 = strings.Repeat("ab", 32)
		lost.Index = before + 1
		p.src.plan.Apply(lost)
		publish(t, p.voter, 1, lost)
		time.Sleep(time.Minute)
		if got := p.n.index(); got != before {
			t.Errorf("index %d is in use without its files", got)
		}
		if since, cut := p.n.f.CutOff(); !cut || time.Since(since) < 50*time.Second {
			t.Errorf("a follower that cannot take what is newest counts as current: cut off %t since %v", cut, since)
		}
		again := p.src.deploy(t, "w0")
		again.Index = before + 2
		p.src.plan.Apply(again)
		publish(t, p.voter, 1, again)
		level(t, p.n, p.src.plan, 10*time.Second)
		p.n.stop()
		p.lose()
	})
}

// Cut off is counted from when the plan was last known to be the newest: through a relay that is cut off itself, and over a restart.
func TestCutOff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPair(t, ServerOptions{})
		p.change(t)
		p.n.start()
		leaf := newNode(t, p.net, "leaf", fixed(upstream("node", false)))
		leaf.start()
		level(t, leaf, p.src.plan, 10*time.Second)
		time.Sleep(time.Minute)
		if _, cut := leaf.f.CutOff(); cut {
			t.Fatal("cut off while all is well")
		}
		p.lose()
		lost := time.Now()
		time.Sleep(10 * time.Minute)
		check := func(n *node, slack time.Duration) {
			t.Helper()
			since, cut := n.f.CutOff()
			if !cut || since.After(lost) || since.Before(lost.Add(-slack)) {
				t.Errorf("%s is cut off: %t since %v, want since at most %v before %v", n.name, cut, since, slack, lost)
			}
		}
		check(p.n, heartbeat)
		check(leaf, 2*heartbeat)
		leaf.stop()
		leaf.start()
		check(leaf, freshEvery+2*heartbeat)
		p.lose = p.net.serve("voter", handler(p.voter, p.src.files))
		time.Sleep(30 * time.Second)
		for _, n := range []*node{p.n, leaf} {
			if since, cut := n.f.CutOff(); cut {
				t.Errorf("%s is cut off since %v although the voter is back", n.name, since)
			}
		}
		leaf.stop()
		p.n.stop()
		p.lose()
	})
}

// A file comes whole although the members that have it stop halfway or give other bytes, and from nobody if nobody has it.
func TestFetch(t *testing.T) {
	body := bytes.Repeat([]byte("0123456789abcdef"), 64<<10/16)
	digest := artifact.Digest(sha256.Sum256(body))
	var asked atomic.Int32
	var ranges atomic.Int32
	half := func(w http.ResponseWriter, r *http.Request) {
		asked.Add(1)
		if r.Header.Get("Range") != "" {
			ranges.Add(1)
			http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(body))
			return
		}
		w.Header().Set("Content-Length", fmt.Sprint(len(body)))
		_, _ = w.Write(body[:len(body)/2])
		panic(http.ErrAbortHandler)
	}
	wrong := func(w http.ResponseWriter, r *http.Request) {
		other := bytes.Repeat([]byte("x"), len(body))
		http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(other))
	}
	none := func(w http.ResponseWriter, r *http.Request) { http.NotFound(w, r) }
	whole := newSource(t, rand.New(rand.NewPCG(1, 2))).files
	if err := whole.Take(t.Context(), digest, int64(len(body)), bytes.NewReader(body)); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		what  string
		peers []http.HandlerFunc
		ok    bool
	}{
		{"one has it", []http.HandlerFunc{Blobs(whole).ServeHTTP}, true},
		{"one of three has it", []http.HandlerFunc{none, none, Blobs(whole).ServeHTTP}, true},
		{"each breaks off and goes on at another", []http.HandlerFunc{half, half}, true},
		{"one gives other bytes", []http.HandlerFunc{wrong, Blobs(whole).ServeHTTP}, true},
		{"all give other bytes", []http.HandlerFunc{wrong, wrong}, false},
		{"nobody has it", []http.HandlerFunc{none}, false},
		{"there is nobody", nil, false},
	} {
		var members []Upstream
		client := &http.Client{}
		for i, h := range tt.peers {
			srv := serveTLS(t, h)
			client = srv.Client() // all test servers have one certificate
			members = append(members, Upstream{Member: fmt.Sprint(i), URL: srv.URL})
		}
		files := newSource(t, rand.New(rand.NewPCG(1, 2))).files
		f, err := NewFetcher(FetcherOptions{Client: client, Files: files, Members: fixed(members...)})
		if err != nil {
			t.Fatal(err)
		}
		err = f.Fetch(t.Context(), "0", digest, int64(len(body)))
		if (err == nil) != tt.ok || files.Has(digest, int64(len(body))) != tt.ok {
			t.Errorf("%s: %v", tt.what, err)
		}
		if !tt.ok && fault.CodeOf(err) != fault.Unavailable {
			t.Errorf("%s: code %v", tt.what, fault.CodeOf(err))
		}
	}
	if ranges.Load() != 1 || asked.Load() != 2 {
		t.Errorf("a file that broke off was asked for %d times, %d times from the middle; want 2, 1", asked.Load(), ranges.Load())
	}
}

// The index that members serve is known to whoever makes the plan: only from themselves, of this epoch, and while they report.
func TestServing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPair(t, ServerOptions{})
		p.change(t)
		p.n.start()
		level(t, p.n, p.src.plan, time.Second)
		time.Sleep(time.Second)
		want := p.src.plan.Index
		if got := p.voter.Serving(); len(got) != 1 || got["node"] != want {
			t.Errorf("serving %v, want node at %d", got, want)
		}
		publish(t, p.voter, 1, &plan.Delta{Index: want + 3}) // changed nothing
		if got := p.voter.Serving()["node"]; got != want+3 {
			t.Errorf("a node with the newest plan counts as serving %d, want %d", got, want+3)
		}
		p.n.stop()
		time.Sleep(reportLasts + time.Second)
		if got := p.voter.Serving(); len(got) != 0 {
			t.Errorf("a member that is gone is still told of: %v", got)
		}
		p.lose()
	})
}
