package plan

import (
	"encoding/json"
	"log/slog"
	"reflect"
	"strings"
	"testing"

	"edged/control/form"
	"edged/control/state"
)

func (w *world) fleet(kind state.Kind, change state.FleetChange) {
	w.t.Helper()
	w.n++
	if out := w.s.Apply(&state.Command{Kind: kind, At: w.n, Fleet: &change}); out.Refusal != nil {
		w.t.Fatal(out.Refusal)
	}
}

func (w *world) foundFleet() {
	w.t.Helper()
	w.fleet(state.FoundFleet, state.FleetChange{Authority: &state.Authority{Cert: "root", Key: []byte("sealed-key"), Gossip: []byte("sealed-gossip")},
		Member: &state.Member{ID: "n-1", Name: "one", Control: true, Edge: true, Labels: map[string]string{"region": "eu"}, Peer: "a:1", Gossip: "a:2", KVEpoch: 4, Serial: "s1"}})
}

func (w *world) join(name string) {
	w.t.Helper()
	w.fleet(state.InviteMember, state.FleetChange{Invite: &state.Invite{ID: name, Hash: state.TokenHash("secret"), Edge: true, Expires: w.n + 100}})
	w.fleet(state.JoinFleet, state.FleetChange{Invite: &state.Invite{ID: name}, Hash: state.TokenHash("secret"), Proof: []byte("proof"),
		Member: &state.Member{ID: "n-" + name, Name: name, Peer: name + ":1", Serial: "s-" + name}})
}

// A plan has every member as all may know it, and each change of one gives a delta of that one alone; the last plan of a store has
// them again.
func TestMembersInPlans(t *testing.T) {
	w := newWorld(t)
	d := NewDeriver(w.s, New())
	d.Next(1)
	next := func(put, gone string) {
		t.Helper()
		delta := d.Next(2)
		var ids []string
		for _, m := range delta.Members.Put {
			ids = append(ids, m.ID)
		}
		if got := strings.Join(ids, " "); got != put || strings.Join(delta.Members.Gone, " ") != gone {
			t.Errorf("put %q, gone %q, want %q and %q", got, delta.Members.Gone, put, gone)
		}
	}
	w.foundFleet()
	next("n-1", "")
	if got, want := *d.Plan().Members["n-1"], (Member{ID: "n-1", Name: "one", Control: true, Edge: true, Labels: map[string]string{"region": "eu"},
		Peer: "a:1", Gossip: "a:2", KVEpoch: 4, Serial: "s1", JoinedAt: 1}); !reflect.DeepEqual(got, want) {
		t.Errorf("the plan has %+v, want %+v", got, want)
	}
	w.join("2")
	w.join("3")
	next("n-2 n-3", "")
	next("", "")
	w.fleet(state.DrainMember, state.FleetChange{Member: &state.Member{ID: "n-2", Draining: true}})
	next("n-2", "")
	if !d.Plan().Members["n-2"].Draining {
		t.Error("the plan does not say that n-2 drains")
	}
	w.fleet(state.RemoveMember, state.FleetChange{Member: &state.Member{ID: "n-3"}})
	next("", "n-3")

	raw, err := json.Marshal(d.Plan())
	if err != nil {
		t.Fatal(err)
	}
	for _, secret := range []string{"sealed", "secret", "proof", "root"} {
		if strings.Contains(string(raw), secret) {
			t.Errorf("the plan shows %q: %s", secret, raw)
		}
	}
	s, err := OpenStore(t.TempDir(), slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	whole := d.Plan().Delta()
	if err := s.Save(whole, d.Plan()); err != nil {
		t.Fatal(err)
	}
	if back, err := s.Load(); err != nil || !reflect.DeepEqual(back, d.Plan()) {
		t.Errorf("the store gives %+v, %v", back, err)
	}
	w.fleet(state.RemoveMember, state.FleetChange{Member: &state.Member{ID: "n-2"}})
	again := NewDeriver(w.s, d.Plan())
	if delta := again.Next(3); len(delta.Members.Gone) != 1 {
		t.Errorf("the first look after a restart misses a member that left: %s", summary(delta))
	}
}

// The founding gives every store and consumer of before a home, in the plan too.
func TestHomesInPlans(t *testing.T) {
	w := newWorld(t)
	w.shared()
	w.worker("0")
	w.create(form.QueueConsumerURL, "qc", consumerSpec)
	d := NewDeriver(w.s, New())
	d.Next(1)
	if p := d.Plan(); p.Data["q"].Home != "" || p.Consumers["qc"].Home != "" {
		t.Errorf("on a node alone the homes are %q and %q", p.Data["q"].Home, p.Consumers["qc"].Home)
	}
	w.foundFleet()
	delta := d.Next(2)
	if p := d.Plan(); p.Data["q"].Home != "n-1" || p.Data["bucket"].Home != "n-1" || p.Consumers["qc"].Home != "n-1" || p.Data["kv"].Home != "" {
		t.Errorf("after the founding: %+v %+v", p.Data, p.Consumers)
	}
	if n := len(delta.Data.Put); n != 2 || len(delta.Versions.Put)+len(delta.Hosts.Put) != 0 {
		t.Errorf("the founding changes %s", summary(delta))
	}
	if fresh := NewDeriver(w.s, New()); !reflect.DeepEqual(fresh.Next(2), d.Plan().Delta()) {
		t.Error("a plan made anew is another")
	}
}
