package feed

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"edged/control/plan"
)

// A follower at epoch 5, index 3 takes nothing from an upstream that goes back, leaves something out or speaks of what it did not send.
func TestFollowerRefuses(t *testing.T) {
	change := func(prev, index uint64) []byte {
		d := &plan.Delta{Index: index}
		d.Hosts.Put = []*plan.Host{{Name: "bad.test"}}
		b, err := appendChange(nil, prev, d)
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	whole := func(index uint64) []byte { return append(appendFrame(nil, frameReset), change(0, index)...) }
	for what, frames := range map[string][]byte{
		"an older epoch":                  append(appendHello(nil, 4, false), whole(9)...),
		"an older plan of the same epoch": append(appendHello(nil, 5, false), whole(2)...),
		"a gap":                           append(appendHello(nil, 5, false), change(4, 6)...),
		"a change of another epoch":       append(appendHello(nil, 6, false), change(3, 6)...),
		"a change of a part":              append(appendHello(nil, 5, true), change(3, 6)...),
		"a beat of what was not sent":     append(appendHello(nil, 6, false), appendBeat(nil, 9, 0)...),
		"a beat of before":                append(appendHello(nil, 5, false), appendBeat(nil, 2, 0)...),
	} {
		t.Run(what, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				net := newFabric()
				bad := func(w http.ResponseWriter, r *http.Request) {
					_, _ = w.Write(frames)
					_ = http.NewResponseController(w).Flush()
					<-r.Context().Done()
				}
				good := newServer(t, ServerOptions{})
				first := &plan.Delta{Index: 3}
				first.Hosts.Put = []*plan.Host{{Name: "good.test"}}
				publish(t, good, 5, first)
				stop := net.serve("up", good.Handler())
				n := newNode(t, net, "node", fixed(upstream("up", true)))
				n.start()
				time.Sleep(time.Second)
				if n.index() != 3 {
					t.Fatalf("the follower is at index %d", n.index())
				}
				stop()
				lost := time.Now()
				stop = net.serve("up", http.HandlerFunc(bad))
				time.Sleep(20 * time.Second)
				if n.index() != 3 || n.equals(good.plan, nil) != nil {
					t.Errorf("the follower took index %d", n.index())
				}
				if since, cut := n.f.CutOff(); !cut || since.After(lost) {
					t.Errorf("the follower believes that index 3 is the newest: cut off %t since %v", cut, since)
				}
				n.stop()
				stop()
			})
		})
	}
}

// Followers that lose their upstream together come back apart.
func TestReconnectIsSpread(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPair(t, ServerOptions{})
		p.change(t)
		var nodes []*node
		for i := range 20 {
			n := newNode(t, p.net, fmt.Sprint("n", i), p.n.upstreams)
			nodes = append(nodes, n)
			n.start()
		}
		for _, n := range nodes {
			level(t, n, p.src.plan, 10*time.Second)
		}
		p.net.mu.Lock()
		p.net.dials = nil
		p.net.mu.Unlock()
		p.lose()
		time.Sleep(time.Minute)
		p.net.mu.Lock()
		dials := p.net.dials
		p.net.mu.Unlock()
		most, in := 0, map[int64]int{}
		for _, at := range dials {
			slot := at.UnixMilli() / 10
			in[slot]++
			most = max(most, in[slot])
		}
		// 20 followers, a pause of 2.5 s on average, 60 s; reports come on top
		if len(dials) > 20*60 || most > 10 {
			t.Errorf("%d attempts in a minute, %d of them within 10 ms", len(dials), most)
		}
		for _, n := range nodes {
			n.stop()
		}
	})
}

// What a server keeps for followers is bounded, and so is what a session reads ahead.
func TestBounds(t *testing.T) {
	s := newServer(t, ServerOptions{})
	src := newSource(t, rand.New(rand.NewPCG(1, 2)))
	for i := range historyDeltas + 100 {
		d := &plan.Delta{Index: uint64(i + 1)}
		d.Workers.Put = []*plan.Worker{{UID: "w", Name: src.next("w")}}
		publish(t, s, 1, d)
	}
	if n := len(s.history); n != historyDeltas {
		t.Errorf("%d deltas are kept", n)
	}
	if s.after(50).whole != true || s.after(200).whole {
		t.Error("the oldest go first")
	}
	large := &plan.Delta{Index: 100_000}
	for i := range 20 {
		large.Versions.Put = append(large.Versions.Put, &plan.Version{UID: fmt.Sprint(i), Vars: []byte(`"` + strings.Repeat("x", 4<<20) + `"`)})
	}
	publish(t, s, 1, large)
	if len(s.history) > 0 || s.bytes != 0 {
		t.Errorf("%d bytes are kept", s.bytes)
	}
	synctest.Test(t, func(t *testing.T) {
		var in inbox
		in.init()
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		for range 2 {
			if err := in.put(ctx, arrival{delta: large, bytes: inboxBytes/2 + 1}); err != nil {
				t.Fatal(err)
			}
		}
		if err := in.put(ctx, arrival{delta: large, bytes: 1}); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("more than the bound is read ahead: %v", err)
		}
		if n := len(in.take()); n != 2 {
			t.Errorf("%d arrivals are taken", n)
		}
		if err := in.put(t.Context(), arrival{delta: large, bytes: 1}); err != nil {
			t.Error(err)
		}
	})
}
