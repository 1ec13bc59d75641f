package raftlog

import (
	"encoding/binary"
	"errors"
	"time"

	"github.com/hashicorp/raft"
)

// An entry's value is: version, type, term, append time in Unix nanoseconds (0: none), length of the extensions, the
// extensions, the data. Its index is its key.
const (
	entryVersion = 1
	entryHead    = 1 + 1 + 8 + 8 + 4
)

var errEntry = errors.New("a log entry is damaged or from a newer program")

func appendEntry(dst []byte, l *raft.Log) []byte {
	dst = append(dst, entryVersion, byte(l.Type))
	dst = binary.BigEndian.AppendUint64(dst, l.Term)
	var at int64
	if !l.AppendedAt.IsZero() {
		at = l.AppendedAt.UnixNano()
	}
	dst = binary.BigEndian.AppendUint64(dst, uint64(at))
	dst = binary.BigEndian.AppendUint32(dst, uint32(len(l.Extensions)))
	dst = append(dst, l.Extensions...)
	return append(dst, l.Data...)
}

// readEntry fills all of l but its index from b, which it copies.
func readEntry(b []byte, l *raft.Log) error {
	if len(b) < entryHead || b[0] != entryVersion {
		return errEntry
	}
	l.Type = raft.LogType(b[1])
	l.Term = binary.BigEndian.Uint64(b[2:])
	l.AppendedAt = time.Time{}
	if at := int64(binary.BigEndian.Uint64(b[10:])); at != 0 {
		l.AppendedAt = time.Unix(0, at)
	}
	n := binary.BigEndian.Uint32(b[18:])
	rest := b[entryHead:]
	if uint64(n) > uint64(len(rest)) {
		return errEntry
	}
	l.Extensions = clone(rest[:n])
	l.Data = clone(rest[n:])
	return nil
}

// clone returns a copy of b, nil for an empty one.
func clone(b []byte) []byte {
	if len(b) == 0 {
		return nil
	}
	return append([]byte(nil), b...)
}
