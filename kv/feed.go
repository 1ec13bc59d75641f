package kv

import (
	"encoding/binary"
	"errors"

	"github.com/cockroachdb/pebble/v2"

	"edged/kv/replica"
)

// feedUnit appends one unit of this store's feed to dst: up to most records behind the feeder's position, then a mark. The
// view must be durable. end says that the mark is a live one.
func (l *ledger) feedUnit(v view, f *replica.Feeder, dst []byte, most int) (out []byte, sent int, end bool, err error) {
	pos, full := f.Pos(), false
	err = scan(v.snap, []byte{prefixChange}, numKey(nil, prefixChange, pos+1), func(k, place []byte) (bool, error) {
		if len(k) != 9 {
			return false, errors.New("feed entry is malformed")
		}
		lseq := binary.BigEndian.Uint64(k[1:])
		n := len(dst)
		var err error
		if dst, err = l.appendChange(v.snap, f, dst, lseq, place); err != nil {
			return false, err
		}
		pos = lseq
		if len(dst) > n {
			sent++
			full = f.Sent(len(dst)-n) || sent >= most
		}
		return !full, nil
	})
	if err != nil {
		return dst, sent, false, err
	}
	var m replica.Mark
	if full {
		m = f.Pause(pos)
	} else {
		m = f.End(v.head, v.vector)
	}
	m.Now, m.Head = l.now(), v.clock
	return replica.AppendMark(dst, m), sent, m.Live, nil
}

// appendChange appends the frame of the record that a feed entry leads to, nothing if the client does not need it.
func (l *ledger) appendChange(r pebble.Reader, f *replica.Feeder, dst []byte, lseq uint64, place []byte) ([]byte, error) {
	uid, key, ok := splitPlace(place)
	if !ok {
		return dst, errors.New("feed entry is malformed")
	}
	if sp := l.space(string(uid)); sp != nil && sp.dead() {
		return dst, nil
	}
	v, closer, err := r.Get(prefixed(make([]byte, 0, 1+len(place)), prefixRecord, place))
	if errors.Is(err, pebble.ErrNotFound) {
		return dst, nil // its namespace was deleted
	}
	if err != nil {
		return dst, err
	}
	defer closer.Close()
	rec, err := replica.ParseRecord(v)
	if err != nil || rec.LSeq != lseq || !f.Wants(rec.Version) {
		return dst, err
	}
	return replica.AppendChange(dst, string(uid), string(key), v), nil
}

// readState is how far a peer's feed was read.
type readState struct {
	pos    uint64
	liveMs int64 // the peer's clock at its last live mark that was applied; 0 means there was none
}

func (s readState) append(dst []byte) []byte {
	dst = binary.BigEndian.AppendUint64(dst, s.pos)
	return binary.BigEndian.AppendUint64(dst, uint64(s.liveMs))
}

// readOf returns how far the feed of a peer was read.
func (l *ledger) readOf(peer replica.Origin) (s readState, err error) {
	v, err := get(l.db, numKey(nil, prefixRead, uint64(peer)))
	if err != nil || v == nil {
		return s, err
	}
	if len(v) != 16 {
		return s, errors.New("read position is malformed")
	}
	return readState{binary.BigEndian.Uint64(v), int64(binary.BigEndian.Uint64(v[8:]))}, nil
}
