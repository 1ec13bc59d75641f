package replica

import (
	"encoding/binary"
	"fmt"
)

// The sizes that the contract fixes (kv §3) and those that follow from them.
const (
	MaxKeyBytes    = 467
	MaxValueBytes  = 26214400
	MaxMetaBytes   = 1024
	MaxInlineBytes = 128 << 10 // larger values are files; measured crossover
	MaxUIDBytes    = 128
	DigestBytes    = 32
)

// Flags say what a record holds.
type Flags uint8

// The flags. Append only.
const (
	Deleted Flags = 1 << iota // a tombstone: the key was deleted
	Blob                      // the value is a file; the record holds digest and size
	Meta                      // metadata follows
	Expires                   // an instant follows, after which the record counts as a tombstone
	Gone                      // the instant has passed here and the value was dropped
	flagsEnd
)

var errRecord = fmt.Errorf("record is %w", ErrMalformed)

// Record is what a store holds for one key. Its slices belong to whoever made the record.
type Record struct {
	Version
	LSeq    uint64 // position in this store's feed; every store has its own
	Flags   Flags
	Expires int64  // Unix milliseconds, with flag Expires
	Meta    []byte // canonical JSON, with flag Meta
	Value   []byte // nil for tombstones and blobs
	Digest  [DigestBytes]byte
	Size    uint64 // bytes of the value, inline or not
}

// Dead reports whether the record is a tombstone or counts as one for good.
func (r *Record) Dead() bool { return r.Flags&(Deleted|Gone) != 0 }

// DeadSince returns when a dead record died, in Unix milliseconds.
func (r *Record) DeadSince() int64 {
	if r.Flags&Gone != 0 {
		return r.Expires
	}
	return r.HLC.Millis()
}

const fixedBytes = 1 + 4*8

// Append appends the encoding:
//
//	flags u8 | hlc u64 | origin u64 | seq u64 | lseq u64 | [expires u64] | [metadata u16 + bytes] | value, or digest + size u64
func (r *Record) Append(dst []byte) []byte {
	be := binary.BigEndian
	dst = append(dst, byte(r.Flags))
	dst = be.AppendUint64(dst, uint64(r.HLC))
	dst = be.AppendUint64(dst, uint64(r.Origin))
	dst = be.AppendUint64(dst, r.Seq)
	dst = be.AppendUint64(dst, r.LSeq)
	if r.Flags&Expires != 0 {
		dst = be.AppendUint64(dst, uint64(r.Expires))
	}
	if r.Flags&Meta != 0 {
		dst = be.AppendUint16(dst, uint16(len(r.Meta)))
		dst = append(dst, r.Meta...)
	}
	if r.Flags&Blob != 0 {
		dst = append(dst, r.Digest[:]...)
		return be.AppendUint64(dst, r.Size)
	}
	return append(dst, r.Value...)
}

// ParseRecord reads one encoding that fills b. The record's slices alias b. It never panics and allocates nothing.
func ParseRecord(b []byte) (Record, error) {
	var r Record
	if len(b) < fixedBytes || len(b) > MaxRecordBytes {
		return r, errRecord
	}
	be := binary.BigEndian
	r.Flags = Flags(b[0])
	r.HLC, r.Origin = HLC(be.Uint64(b[1:])), Origin(be.Uint64(b[9:]))
	r.Seq, r.LSeq = be.Uint64(b[17:]), be.Uint64(b[25:])
	b = b[fixedBytes:]
	if r.Flags >= flagsEnd || r.HLC == 0 || r.Origin == 0 || r.Seq == 0 {
		return r, errRecord
	}
	if r.Flags&Expires != 0 {
		if len(b) < 8 {
			return r, errRecord
		}
		if r.Expires, b = int64(be.Uint64(b)), b[8:]; r.Expires <= 0 {
			return r, errRecord
		}
	}
	if r.Flags&Meta != 0 {
		if len(b) < 2 {
			return r, errRecord
		}
		n := int(be.Uint16(b))
		if b = b[2:]; n > MaxMetaBytes || n > len(b) {
			return r, errRecord
		}
		r.Meta, b = b[:n:n], b[n:]
	}
	return r, r.parseValue(b)
}

// MaxRecordBytes bounds an encoded record.
const MaxRecordBytes = fixedBytes + 8 + 2 + MaxMetaBytes + MaxInlineBytes

func (r *Record) parseValue(b []byte) error {
	dead := r.Flags & (Deleted | Gone)
	switch {
	case dead == Deleted|Gone, dead == Deleted && r.Flags != Deleted, dead == Gone && r.Flags != Gone|Expires:
		return errRecord
	case dead != 0:
		if len(b) != 0 {
			return errRecord
		}
	case r.Flags&Blob != 0:
		if len(b) != DigestBytes+8 {
			return errRecord
		}
		copy(r.Digest[:], b)
		r.Size = binary.BigEndian.Uint64(b[DigestBytes:])
		if r.Size <= MaxInlineBytes || r.Size > MaxValueBytes {
			return errRecord
		}
	default:
		if len(b) > MaxInlineBytes {
			return errRecord
		}
		r.Value, r.Size = b, uint64(len(b))
	}
	return nil
}
