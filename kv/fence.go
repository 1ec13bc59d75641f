package kv

import (
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/cockroachdb/pebble/v2"

	"edged/kv/replica"
)

// fenceKey holds the epoch under which a store was found to be older than what its members know of it. A store that was restored
// from a backup since has another epoch, and is free.
var fenceKey = []byte("mfence")

// fence stops all writing, for good: what this store says may contradict what it said before its disk went back in time. Reads
// go on.
func (s *Store) fence(why error) {
	l := s.ledger
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.broken != nil {
		return
	}
	err := l.db.Set(fenceKey, binary.BigEndian.AppendUint64(nil, uint64(l.epoch)), pebble.Sync)
	l.breakLocked(why)
	s.sayFenced(errors.Join(why, err))
}

// loadFence puts a fence up again that was up when the store was closed.
func (s *Store) loadFence() error {
	l := s.ledger
	v, err := get(s.db, fenceKey)
	if err != nil || v == nil {
		return err
	}
	if len(v) != 8 {
		return fmt.Errorf("fence has %d bytes", len(v))
	}
	if replica.Origin(binary.BigEndian.Uint64(v)) == l.epoch {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.breakLocked(replica.ErrRolledBack)
		s.sayFenced(replica.ErrRolledBack)
	}
	return nil
}

func (s *Store) sayFenced(why error) {
	s.opt.Log.Error("the disk of this store went back in time: writes are refused", "err", why,
		"do", "wipe its directory, or restore a backup into it")
}
