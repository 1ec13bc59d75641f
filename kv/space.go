package kv

import (
	"encoding/binary"
	"fmt"
	"maps"
	"sync"
	"sync/atomic"

	"edged/internal/fault"
	"edged/kv/replica"
)

// state is where a namespace is in its life. It only goes up.
type state uint32

const (
	stateUnknown state = 0 // a peer sent records before this node was told of the namespace
	stateLive    state = 1
	stateDying   state = 2 // deleted; its data is being removed
	stateDead    state = 3 // deleted; the name is kept so that late records are dropped
)

// space is what is kept in memory per namespace.
type space struct {
	uid     string
	state   atomic.Uint32
	epoch   atomic.Uint64 // of the home
	records atomic.Int64  // live ones
	bytes   atomic.Int64
	newest  atomic.Uint64 // HLC of the newest write that is here

	mu   sync.Mutex
	from map[replica.Origin]replica.HLC // newest per origin since start; guarded by mu
}

func (s *space) is() state { return state(s.state.Load()) }

func (s *space) dead() bool { return s.is() >= stateDying }

// see notes a version that is here now. Called under ledger.mu.
func (s *space) see(v replica.Version) {
	if uint64(v.HLC) > s.newest.Load() {
		s.newest.Store(uint64(v.HLC))
	}
	s.mu.Lock()
	if s.from == nil {
		s.from = map[replica.Origin]replica.HLC{}
	}
	s.from[v.Origin] = max(s.from[v.Origin], v.HLC)
	s.mu.Unlock()
}

func (s *space) watermarks() map[replica.Origin]replica.HLC {
	s.mu.Lock()
	defer s.mu.Unlock()
	return maps.Clone(s.from)
}

func (s *space) usage() []byte {
	be := binary.BigEndian
	b := be.AppendUint64(make([]byte, 0, 24), uint64(s.records.Load()))
	b = be.AppendUint64(b, uint64(s.bytes.Load()))
	return be.AppendUint64(b, s.newest.Load())
}

func (s *space) stored() []byte {
	return binary.BigEndian.AppendUint64([]byte{byte(s.is())}, s.epoch.Load())
}

func (l *ledger) loadSpaces() error {
	be := binary.BigEndian
	err := scan(l.db, []byte{prefixSpace}, nil, func(k, v []byte) (bool, error) {
		if len(v) != 9 {
			return false, fmt.Errorf("namespace entry has %d bytes", len(v))
		}
		s := l.spaceLocked(string(k[1:]))
		s.state.Store(uint32(v[0]))
		s.epoch.Store(be.Uint64(v[1:]))
		return true, nil
	})
	if err != nil {
		return err
	}
	return scan(l.db, []byte{prefixUsage}, nil, func(k, v []byte) (bool, error) {
		if len(v) != 24 {
			return false, fmt.Errorf("usage entry has %d bytes", len(v))
		}
		s := l.spaceLocked(string(k[1:]))
		s.records.Store(int64(be.Uint64(v)))
		s.bytes.Store(int64(be.Uint64(v[8:])))
		s.newest.Store(be.Uint64(v[16:]))
		return true, nil
	})
}

// space returns a namespace's record, nil for one that was never heard of.
func (l *ledger) space(uid string) *space {
	if s, ok := l.spaces.Load(uid); ok {
		return s.(*space)
	}
	return nil
}

// spaceLocked returns a namespace's record and makes one for a new name.
func (l *ledger) spaceLocked(uid string) *space {
	if s := l.space(uid); s != nil {
		return s
	}
	s := &space{uid: uid}
	l.spaces.Store(uid, s)
	return s
}

func (t *tx) setState(s *space, to state) error {
	s.state.Store(uint32(to))
	t.keyBuf = append(append(t.keyBuf[:0], prefixSpace), s.uid...)
	return t.b.Set(t.keyBuf, s.stored(), nil)
}

// createSpace makes a namespace live. It may have been made before, under the same or an older epoch of its home.
func (t *tx) createSpace(uid string, epoch uint64) error {
	s := t.l.spaceLocked(uid)
	switch {
	case s.dead():
		return fault.Newf(fault.Conflict, "kv.Create", "namespace %s was deleted; a deleted one never comes back", uid)
	case s.is() == stateLive && epoch < s.epoch.Load():
		return fault.Newf(fault.Conflict, "kv.Create", "namespace %s has home epoch %d, this call names the older %d", uid, s.epoch.Load(), epoch)
	case s.is() == stateLive && epoch == s.epoch.Load():
		return nil
	}
	s.epoch.Store(epoch)
	return t.setState(s, stateLive)
}

// deleteSpace marks a namespace deleted and drops its records; what points to them is swept later.
func (t *tx) deleteSpace(uid string) error {
	s := t.l.spaceLocked(uid)
	if s.dead() {
		return nil
	}
	prefix := prefixed(nil, prefixRecord, appendPlace(nil, uid, ""))
	if err := t.b.DeleteRange(prefix, after(prefix), nil); err != nil {
		return err
	}
	s.records.Store(0)
	s.bytes.Store(0)
	s.newest.Store(0)
	t.keyBuf = append(append(t.keyBuf[:0], prefixUsage), uid...)
	if err := t.b.Delete(t.keyBuf, nil); err != nil {
		return err
	}
	delete(t.touched, s)
	return t.setState(s, stateDying)
}
