package control

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"sync"
	"sync/atomic"

	"github.com/hashicorp/raft"

	"edged/control/form"
	"edged/control/raftlog"
	"edged/control/state"
)

// machine is the state as raft sees it.
type machine struct {
	state   *state.State
	metrics *Metrics
	log     *slog.Logger
	endings *endings
	audit   *recorder
	bundles *bundleQueue // nil on a node that has all that was ever acquired

	halt    halt          // set for good by what this program cannot carry out
	applied progress      // last command applied
	exact   sync.Mutex    // held while a command or a snapshot is applied and planned moves, and while a plan is derived: it is the one at planned
	planned atomic.Uint64 // last command that may have changed what a node serves

	changed chan struct{} // capacity 1: planned moved
	work    chan struct{} // capacity 1: an Operation waits for the runner
}

func newMachine(opt *Options, s *state.State, e *endings, a *recorder) *machine {
	return &machine{
		state: s, metrics: opt.Metrics, log: opt.Log, endings: e, audit: a,
		changed: make(chan struct{}, 1), work: make(chan struct{}, 1), halt: newHalt(),
	}
}

// Apply carries out one log entry. What cannot be read was never acknowledged to anyone: it is refused, not guessed. What a newer program
// wrote was: from there on nothing is carried out.
func (m *machine) Apply(l *raft.Log) any {
	if err := m.halt.reason(); err != nil {
		return err
	}
	c, err := state.DecodeCommand(l.Data)
	if errors.Is(err, state.ErrNewer) {
		m.halt.set(fmt.Errorf("command %d of the control log: %w", l.Index, err))
		return err
	}
	if err != nil {
		m.log.Error("log entry is unreadable", "index", l.Index, "err", err,
			"do", "run the version of the program that wrote the log; if that is this one, restore the node from a backup")
		return err
	}
	about := m.audit.about(m.state, c)
	m.exact.Lock()
	out := m.state.Apply(c)
	if out.Plan {
		m.planned.Store(l.Index)
	}
	m.exact.Unlock()
	m.audit.applied(l.Index, about, c, out)
	if n := m.metrics.commands[string(c.Kind)]; n != nil {
		n.Inc()
	}
	if out.Plan {
		signal(m.changed)
	}
	m.applied.set(l.Index)
	if op := out.Operation; op != nil && !out.Replayed {
		if !op.Status.Terminal() {
			signal(m.work)
			return out
		}
		m.endings.tell(op.ID)
		if m.bundles != nil && c.Kind == state.EndOperation && (c.Index != nil || op.Action == form.Delete) {
			m.bundles.add(op.Resource)
		}
		if n := m.metrics.operations[string(op.Status)]; n != nil {
			n.Inc()
		}
	}
	return out
}

func signal(ch chan struct{}) {
	select {
	case ch <- struct{}{}:
	default: // one is waiting already
	}
}

// Snapshot freezes the state; it is written while commands go on.
func (m *machine) Snapshot() (raft.FSMSnapshot, error) {
	if err := m.halt.reason(); err != nil { // it would stand for commands that were not carried out
		return nil, err
	}
	if err := m.audit.accepted.Sync(); err != nil { // the commands behind the snapshot are not applied again
		return nil, err
	}
	return frozen{m.state.Freeze()}, nil
}

// Restore replaces the state, at the start or because the leader's log does not reach back to where this voter is.
func (m *machine) Restore(r io.ReadCloser) error {
	defer r.Close()
	index := raftlog.IndexOf(r)
	m.exact.Lock()
	defer m.exact.Unlock()
	if err := m.state.Restore(r); err != nil {
		err = fmt.Errorf("restore control state: %w", err)
		if errors.Is(err, state.ErrNewer) {
			m.halt.set(err)
		}
		return err
	}
	m.planned.Store(index)
	m.applied.set(index)
	if m.bundles != nil {
		m.bundles.addAll()
	}
	signal(m.changed)
	signal(m.work)
	return nil
}

type frozen struct{ f *state.Frozen }

// Persist writes the frozen state and makes it durable, or leaves nothing.
func (f frozen) Persist(sink raft.SnapshotSink) error {
	if err := f.f.Write(sink); err != nil {
		_ = sink.Cancel() // the write's error is the one to tell
		return err
	}
	return sink.Close()
}

// Release frees nothing: the frozen state is garbage when it is forgotten.
func (f frozen) Release() {}
