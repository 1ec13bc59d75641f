package control

import (
	"errors"
	"strings"
	"testing"

	"edged/control/feed"
	"edged/control/form"
	"edged/control/state"
	"edged/internal/fault"
)

// newerCommand is what a program with more levels would write.
const newerCommand = `{"kind":"novel","level":99,"at":1}`

// A command of a newer program is never skipped: each voter that does not know it carries out nothing from there on, neither votes nor leads,
// says why, and serves its last plan, also after a restart.
func TestNewerCommandStopsTheLog(t *testing.T) {
	f := startFleet(t, 3, nil)
	leader := f.leader()
	before := leader.sure(form.ModuleWorkerURL, "before", spec{})
	for _, m := range f.nodes {
		f.poll(func() bool { return m.lastPlan().Workers[before] != nil })
	}
	r := leader.c.raft.Load()
	novel := r.Apply([]byte(newerCommand), applyTimeout)
	after := r.Apply([]byte(`{"kind":"sweep","at":1}`), applyTimeout)
	if err := novel.Error(); err == nil {
		if err, ok := novel.Response().(error); !ok || !errors.Is(err, state.ErrNewer) {
			t.Errorf("it was carried out: %v", novel.Response())
		}
	}
	if after.Error() == nil {
		if _, ok := after.Response().(error); !ok {
			t.Errorf("what stands behind it was carried out: %v", after.Response())
		}
	}
	stopped := func(m *member) {
		t.Helper()
		f.poll(func() bool { return m.c.Halted() != nil && m.c.leading.Load() == 0 && m.c.Leader() == "" })
		if err := m.c.Halted(); fault.CodeOf(err) != fault.Conflict || !strings.Contains(err.Error(), "level 99") || !strings.Contains(fault.Detail(err), "newer edged") {
			t.Errorf("%s: %v", m.name, err)
		}
		if _, err := m.c.machine.Snapshot(); !errors.Is(err, state.ErrNewer) {
			t.Errorf("%s makes a snapshot that stands for what it did not carry out: %v", m.name, err)
		}
		if a := m.get(before); a.status != 503 || !strings.Contains(string(a.body), "newer edged") {
			t.Errorf("%s answers %d %s", m.name, a.status, a.body)
		}
		if m.lastPlan().Workers[before] == nil {
			t.Errorf("%s lost its plan", m.name)
		}
	}
	halted := func() (out []*member) {
		for _, m := range f.nodes {
			if m.c.Halted() != nil {
				out = append(out, m)
			}
		}
		return out
	}
	f.poll(func() bool { return len(halted()) >= 2 }) // the third may not have heard that it is committed, and is alone now
	for _, m := range halted() {
		stopped(m)
	}
	for _, m := range f.nodes {
		m.stop()
	}
	f.start(leader)
	if leader.lastPlan().Workers[before] == nil {
		t.Error("the last plan is gone after a restart")
	}
}

// What needs a level that not all who get the log have announced is held by the leader, which says who lacks it.
func TestLeaderHoldsWhatNotAllKnow(t *testing.T) {
	said := map[string]feed.Program{}
	f := startFleet(t, 2, func(_ string, o *Options) {
		o.Fleet.Program = feed.Program{Version: "v", Level: 2}
		o.Fleet.Announced = func() map[string]feed.Program { return map[string]feed.Program{"n-1": said["n-1"], "n-2": said["n-2"]} }
	})
	leader := f.nodes["n-1"]
	f.leader(leader)
	try := func() error { return leader.c.allowed(&state.Command{Kind: state.Sweep, Level: 2}) }
	for _, tt := range []struct {
		n2   feed.Program
		want string
	}{
		{feed.Program{Version: "old"}, "n-2 (announces none)"},
		{feed.Program{Version: "old", Level: 1}, "n-2 (level 1)"},
		{feed.Program{Version: "new", Level: 2}, ""},
	} {
		said["n-2"] = tt.n2
		err := try()
		if tt.want == "" && err == nil {
			continue
		}
		if fault.CodeOf(err) != fault.Unavailable || !strings.Contains(fault.Detail(err), tt.want) || tt.want == "" {
			t.Errorf("%+v: %v, want %q", tt.n2, err, tt.want)
		}
	}
	if _, err := leader.c.submit(&state.Command{Kind: state.Sweep, Level: 3}); fault.CodeOf(err) != fault.Unavailable || leader.c.Halted() != nil {
		t.Errorf("a command of level 3 was written: %v", err)
	}
	if err := leader.c.allowed(&state.Command{Kind: state.Sweep}); err != nil {
		t.Errorf("a command of the first level is held: %v", err)
	}
	if got := levelWarning([]string{"n-1", "n-2"}, map[string]feed.Program{"n-1": {Level: 2}, "n-2": {Level: 1}}); !strings.Contains(got, "levels 1 to 2") {
		t.Errorf("the warning is %q", got)
	}
}
