package state

import (
	"bytes"
	"strings"
)

// rendering is what rule 9 is about.
type rendering struct {
	observed, cause      string
	generation, revision uint64
	operation            string
}

func (x *sequence) renderings() map[string]rendering {
	out := make(map[string]rendering, len(x.m.live))
	x.s.resources.Scan(func(uid string, r *Resource) bool {
		d := rendering{string(r.Observed), "", r.Generation, r.Revision, r.LastOperation}
		if r.Cause != nil {
			d.cause = string(r.Cause.Reason) + r.Cause.Text
		}
		out[uid] = d
		return true
	})
	return out
}

// check compares every rendering and counter with the reference, and what moved with rule 9.
func (x *sequence) check(before map[string]rendering) {
	now := x.renderings()
	if len(now) != len(x.m.live) {
		x.t.Fatalf("%s\n%d Resources live, the reference has %d", x.past(), len(now), len(x.m.live))
	}
	for uid, r := range x.m.live {
		got := now[uid]
		want := x.m.observed(r)
		if r.spec.kind == "WorkerBundle" && r.settled {
			want = got.observed // its index is the runner's
		}
		rec := x.s.get(uid)
		if got.observed != want || got.generation != r.generation || string(rec.Phase) != r.phase {
			x.t.Fatalf("%s\n%s observes %s in generation %d and phase %s, the reference has %s, %d, %s", x.past(), uid, got.observed, got.generation, rec.Phase, want, r.generation, r.phase)
		}
		old, was := before[uid]
		if !was {
			continue
		}
		own := old.operation != got.operation || old.generation != got.generation || rec.Phase != Phase(r.phase)
		if moved, changed := old.revision != got.revision, old.observed != got.observed || old.cause != got.cause; changed && !moved || moved && !changed && !own && uid != x.lastSettled() {
			x.t.Fatalf("%s\n%s: rendering changed %t, revision moved %t", x.past(), uid, changed, moved)
		}
	}
}

// lastSettled is the Resource whose Operation the last step ended: phase and observedGeneration of it move too.
func (x *sequence) lastSettled() string {
	if len(x.history) == 0 {
		return ""
	}
	if rest, ok := strings.CutPrefix(x.history[len(x.history)-1], "settle "); ok {
		uid, _, _ := strings.Cut(rest, ":")
		return uid
	}
	return ""
}

// restarted compares the state with its snapshot's and with one that the same encoded commands lead to.
func (x *sequence) restarted() {
	var frozen, again, replayed bytes.Buffer
	if err := x.s.Freeze().Write(&frozen); err != nil {
		x.t.Fatal(err)
	}
	s := New(x.s.drivers)
	if err := s.Restore(bytes.NewReader(frozen.Bytes())); err != nil {
		x.t.Fatal(err)
	}
	if _ = s.Freeze().Write(&again); !bytes.Equal(again.Bytes(), frozen.Bytes()) {
		x.t.Fatalf("%s\nrestored\n%s\nwant\n%s", x.past(), again.Bytes(), frozen.Bytes())
	}
	r := New(x.s.drivers)
	for _, raw := range x.log {
		c, err := DecodeCommand(raw)
		if err != nil {
			x.t.Fatal(err)
		}
		r.Apply(c)
	}
	if _ = r.Freeze().Write(&replayed); !bytes.Equal(replayed.Bytes(), frozen.Bytes()) {
		x.t.Fatalf("%s\nreplayed\n%s\nwant\n%s", x.past(), replayed.Bytes(), frozen.Bytes())
	}
	x.s = s
}
