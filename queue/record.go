package queue

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"strconv"
)

var errRecord = errors.New("unreadable record")

// entry is a waiting or leased message as the dispatcher knows it, all but its body.
type entry struct {
	position
	accepted int64  // Unix milliseconds
	size     uint32 // of the body
	attempts uint32 // deliveries so far, the running one included
	doubt    bool   // the last delivery's end is unknown: whether another is allowed is still to be decided
}

const doubtFlag = 1

func appendEntry(dst []byte, e entry) []byte {
	var flags byte
	if e.doubt {
		flags |= doubtFlag
	}
	dst = append(dst, flags)
	dst = binary.AppendUvarint(dst, uint64(e.attempts))
	dst = binary.AppendUvarint(dst, uint64(e.accepted))
	return binary.AppendUvarint(dst, uint64(e.size))
}

func readEntry(at position, b []byte) (entry, error) {
	if len(b) == 0 || b[0]&^doubtFlag != 0 {
		return entry{}, errRecord
	}
	e := entry{position: at, doubt: b[0]&doubtFlag != 0}
	r := reader{b[1:], true}
	e.attempts = uint32(r.uvarint(math.MaxUint32))
	e.accepted = int64(r.uvarint(math.MaxInt64))
	e.size = uint32(r.uvarint(MaxBody))
	return e, r.end()
}

// appendLease writes the messages of a batch, their attempts with this delivery counted.
func appendLease(dst []byte, entries []entry) []byte {
	dst = append(dst, 0)
	dst = binary.AppendUvarint(dst, uint64(len(entries)))
	for _, e := range entries {
		dst = binary.AppendUvarint(dst, e.seq)
		dst = binary.AppendUvarint(dst, uint64(e.attempts))
		dst = binary.AppendUvarint(dst, uint64(e.accepted))
		dst = binary.AppendUvarint(dst, uint64(e.size))
	}
	return dst
}

func readLease(b []byte) ([]entry, error) {
	if len(b) == 0 || b[0] != 0 {
		return nil, errRecord
	}
	r := reader{b[1:], true}
	entries := make([]entry, r.uvarint(MaxBatch))
	for i := range entries {
		e := &entries[i]
		e.seq = r.uvarint(math.MaxUint64)
		e.attempts = uint32(r.uvarint(math.MaxUint32))
		e.accepted = int64(r.uvarint(math.MaxInt64))
		e.size = uint32(r.uvarint(MaxBody))
	}
	return entries, r.end()
}

// message is what is stored of one message and never changes.
type message struct {
	accepted int64
	nonce    uint64 // makes the id unguessable, and unique even after a restore
	origin   string // UID of the queue that gave it up, for a dead letter; operators redrive by it
	body     []byte
}

const messageHead = 1 + 8 + 8 + 1

func (m message) encodedLen() int { return messageHead + len(m.origin) + len(m.body) }

// put writes the message into dst, which has exactly encodedLen bytes.
func (m message) put(dst []byte) {
	dst[0] = 0
	binary.BigEndian.PutUint64(dst[1:], uint64(m.accepted))
	binary.BigEndian.PutUint64(dst[9:], m.nonce)
	dst[17] = byte(len(m.origin))
	n := copy(dst[messageHead:], m.origin)
	copy(dst[messageHead+n:], m.body)
}

// readMessage returns the message in b; its body is a part of b.
func readMessage(b []byte) (message, error) {
	if len(b) < messageHead || b[0] != 0 || len(b)-messageHead < int(b[17]) || len(b)-messageHead-int(b[17]) > MaxBody {
		return message{}, errRecord
	}
	m := message{accepted: int64(binary.BigEndian.Uint64(b[1:])), nonce: binary.BigEndian.Uint64(b[9:])}
	if m.accepted < 0 {
		return message{}, errRecord
	}
	rest := b[messageHead:]
	m.origin, m.body = string(rest[:b[17]]), rest[b[17]:]
	return m, nil
}

// messageID is the id that the world sees: where the message is, and its nonce.
func messageID(seq, nonce uint64) string {
	var b [16]byte
	binary.BigEndian.PutUint64(b[:], seq)
	binary.BigEndian.PutUint64(b[8:], nonce)
	return fmt.Sprintf("%x", b[:])
}

// readID takes an id apart.
func readID(id string) (seq, nonce uint64, ok bool) {
	if len(id) != 32 {
		return 0, 0, false
	}
	seq, err := strconv.ParseUint(id[:16], 16, 64)
	if err != nil {
		return 0, 0, false
	}
	nonce, err = strconv.ParseUint(id[16:], 16, 64)
	return seq, nonce, err == nil
}

// reader takes bounded numbers from a record; the first fault makes it bad for good.
type reader struct {
	b  []byte
	ok bool
}

func (r *reader) uvarint(limit uint64) uint64 {
	v, n := binary.Uvarint(r.b)
	if !r.ok || n <= 0 || v > limit {
		r.ok = false
		return 0
	}
	r.b = r.b[n:]
	return v
}

func (r *reader) bytes(limit uint64) []byte {
	n := r.uvarint(limit)
	if !r.ok || n > uint64(len(r.b)) {
		r.ok = false
		return nil
	}
	out := r.b[:n]
	r.b = r.b[n:]
	return out
}

func (r *reader) end() error {
	if !r.ok || len(r.b) != 0 {
		return errRecord
	}
	return nil
}
