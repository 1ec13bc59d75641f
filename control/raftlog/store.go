package raftlog

import (
	"encoding/binary"
	"errors"
	"fmt"
	"log/slog"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/hashicorp/raft"

	"edged/internal/disk"
	"edged/internal/fault"
)

// format is the version of everything below the store's directory.
const format = 1

// The first byte of a key says what it holds.
const (
	logPrefix    = 'l' // + index, 8 bytes big-endian
	stablePrefix = 's' // + raft's key
)

// Options says where the log lives.
type Options struct {
	Dir   string        // required
	FS    vfs.FS        // nil means the real filesystem; tests pass a crashable one
	Cache *pebble.Cache // nil means a private one
	Log   *slog.Logger  // nil discards
}

// Store is a raft.LogStore and a raft.StableStore. All methods but Close are safe for concurrent use. Errors are
// Unavailable, but for raft.ErrLogNotFound, which raft asks for by identity.
type Store struct{ db *pebble.DB }

var (
	_ raft.LogStore    = (*Store)(nil)
	_ raft.StableStore = (*Store)(nil)
)

// Open opens or makes the store in opt.Dir. A newer format is refused with a Conflict.
func Open(opt Options) (*Store, error) {
	if opt.Dir == "" {
		return nil, fault.New(fault.Invalid, "raftlog.Open", "Dir is missing")
	}
	if opt.FS == nil { // the format file stands on the real filesystem only
		if err := disk.Prepare(opt.Dir); err != nil {
			return nil, err
		}
		if _, err := disk.CheckFormat(opt.Dir, "raftlog", format); err != nil {
			return nil, err
		}
	}
	db, err := disk.OpenPebble(disk.PebbleOptions{Dir: opt.Dir + "/log", FS: opt.FS, Cache: opt.Cache, Log: opt.Log})
	if err != nil {
		return nil, err
	}
	return &Store{db: db}, nil
}

// Close frees the store; it is called after raft has shut down.
func (s *Store) Close() error { return wrap("raftlog.Close", s.db.Close()) }

func wrap(op string, err error) error { return fault.Wrap(fault.Unavailable, op, err) }

func logKey(index uint64) []byte {
	return binary.BigEndian.AppendUint64([]byte{logPrefix}, index)
}

func stableKey(key []byte) []byte { return append([]byte{stablePrefix}, key...) }

// FirstIndex returns the lowest index stored, 0 if there is none.
func (s *Store) FirstIndex() (uint64, error) { return s.edge((*pebble.Iterator).First) }

// LastIndex returns the highest index stored, 0 if there is none.
func (s *Store) LastIndex() (uint64, error) { return s.edge((*pebble.Iterator).Last) }

func (s *Store) edge(move func(*pebble.Iterator) bool) (uint64, error) {
	it, err := s.db.NewIter(&pebble.IterOptions{LowerBound: []byte{logPrefix}, UpperBound: []byte{logPrefix + 1}})
	if err != nil {
		return 0, wrap("raftlog.Index", err)
	}
	var index uint64
	if move(it) {
		if key := it.Key(); len(key) == 9 {
			index = binary.BigEndian.Uint64(key[1:])
		}
	}
	return index, wrap("raftlog.Index", it.Close())
}

// LastConfiguration returns the newest entry above an index that holds raft's configuration; ok is false if there is none. Of the other
// entries it looks at the type alone.
func (s *Store) LastConfiguration(above uint64) (l raft.Log, ok bool, err error) {
	const op = "raftlog.LastConfiguration"
	it, err := s.db.NewIter(&pebble.IterOptions{LowerBound: logKey(above + 1), UpperBound: []byte{logPrefix + 1}})
	if err != nil {
		return l, false, wrap(op, err)
	}
	for it.Last(); it.Valid() && !ok && err == nil; it.Prev() {
		var b []byte
		if b, err = it.ValueAndErr(); err == nil && len(b) > 1 && raft.LogType(b[1]) == raft.LogConfiguration {
			l.Index, ok = binary.BigEndian.Uint64(it.Key()[1:]), true
			err = readEntry(b, &l)
		}
	}
	return l, ok, wrap(op, errors.Join(err, it.Error(), it.Close()))
}

// GetLog fills l with the entry at index; raft.ErrLogNotFound if there is none. l owns its bytes.
func (s *Store) GetLog(index uint64, l *raft.Log) error {
	b, closer, err := s.db.Get(logKey(index))
	if errors.Is(err, pebble.ErrNotFound) {
		return raft.ErrLogNotFound
	}
	if err != nil {
		return wrap("raftlog.GetLog", err)
	}
	defer closer.Close()
	l.Index = index
	if err := readEntry(b, l); err != nil {
		return wrap("raftlog.GetLog", fmt.Errorf("entry %d: %w", index, err))
	}
	return nil
}

// StoreLog makes one entry durable.
func (s *Store) StoreLog(l *raft.Log) error { return s.StoreLogs([]*raft.Log{l}) }

// StoreLogs makes entries durable, all or none. An entry with an index that exists replaces that one.
func (s *Store) StoreLogs(logs []*raft.Log) error {
	batch := s.db.NewBatch()
	defer batch.Close()
	var value []byte
	for _, l := range logs {
		value = appendEntry(value[:0], l)
		if err := batch.Set(logKey(l.Index), value, nil); err != nil {
			return wrap("raftlog.StoreLogs", err)
		}
	}
	return wrap("raftlog.StoreLogs", batch.Commit(pebble.Sync))
}

// DeleteRange removes the entries lo to hi, both included, durably. The cost does not depend on their number.
func (s *Store) DeleteRange(lo, hi uint64) error {
	if lo > hi {
		return nil
	}
	end := []byte{logPrefix + 1}
	if hi+1 != 0 {
		end = logKey(hi + 1)
	}
	return wrap("raftlog.DeleteRange", s.db.DeleteRange(logKey(lo), end, pebble.Sync))
}

// Set makes raft's value under key durable.
func (s *Store) Set(key, val []byte) error {
	return wrap("raftlog.Set", s.db.Set(stableKey(key), val, pebble.Sync))
}

// Get returns a copy of the value under key; an empty slice and no error if there is none, as raft expects of a store
// that is not its own.
func (s *Store) Get(key []byte) ([]byte, error) {
	b, closer, err := s.db.Get(stableKey(key))
	if errors.Is(err, pebble.ErrNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, wrap("raftlog.Get", err)
	}
	defer closer.Close()
	return append([]byte{}, b...), nil
}

// SetUint64 makes a number durable under key.
func (s *Store) SetUint64(key []byte, val uint64) error {
	return s.Set(key, binary.BigEndian.AppendUint64(nil, val))
}

// GetUint64 returns the number under key, 0 if there is none.
func (s *Store) GetUint64(key []byte) (uint64, error) {
	b, err := s.Get(key)
	if err != nil || len(b) == 0 {
		return 0, err
	}
	if len(b) != 8 {
		return 0, wrap("raftlog.GetUint64", fmt.Errorf("value of %q has %d bytes", key, len(b)))
	}
	return binary.BigEndian.Uint64(b), nil
}
