package replica

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
)

// The kinds of frames in a feed. A frame is len u32 | kind u8 | body; len counts kind and body.
const (
	FrameRecord = 1 // one change
	FramePos    = 2 // all up to here may be applied
	FrameLive   = 3 // the same, and the sender's vector holds for all that was sent
)

// MaxFrameBytes bounds a frame: a record with its key, or a mark with a full vector.
const MaxFrameBytes = 1 + 1 + MaxUIDBytes + 2 + MaxKeyBytes + MaxRecordBytes

// Bounds of a unit between two marks. A sender stays below, a receiver refuses more.
const (
	MaxChunkRecords = 1024
	MaxChunkBytes   = 1 << 20
)

// ErrMalformed is in the error of whatever cannot be read: frames, records, vectors.
var ErrMalformed = errors.New("malformed")

var errFrame = fmt.Errorf("frame is %w", ErrMalformed)

// Change is one record with its place: what a feed carries.
type Change struct {
	UID    string // namespace
	Key    string
	Record Record
}

// Mark ends a unit of a feed.
type Mark struct {
	Prev, Next uint64 // the unit holds what the sender has after Prev up to and with Next, in its own feed's numbers
	Count      uint32 // records in the unit
	Live       bool   // Next was the end of the feed and Vector is from the same instant
	Now        int64  // the sender's wall clock, Unix milliseconds
	Head       HLC    // the newest time the sender knows
	Vector     Vector // with Live
}

// AppendChange appends a record frame around an encoded record.
func AppendChange(dst []byte, uid, key string, record []byte) []byte {
	n := 1 + 1 + len(uid) + 2 + len(key) + len(record)
	dst = binary.BigEndian.AppendUint32(dst, uint32(n))
	dst = append(dst, FrameRecord, byte(len(uid)))
	dst = append(dst, uid...)
	dst = binary.BigEndian.AppendUint16(dst, uint16(len(key)))
	dst = append(dst, key...)
	return append(dst, record...)
}

const markBytes = 8 + 8 + 4 + 8 + 8

// AppendMark appends a mark's frame.
func AppendMark(dst []byte, m Mark) []byte {
	kind, n := byte(FramePos), 1+markBytes
	if m.Live {
		kind, n = FrameLive, n+4+16*len(m.Vector)
	}
	be := binary.BigEndian
	dst = be.AppendUint32(dst, uint32(n))
	dst = append(dst, kind)
	dst = be.AppendUint64(dst, m.Prev)
	dst = be.AppendUint64(dst, m.Next)
	dst = be.AppendUint32(dst, m.Count)
	dst = be.AppendUint64(dst, uint64(m.Now))
	dst = be.AppendUint64(dst, uint64(m.Head))
	if m.Live {
		dst = m.Vector.Append(dst)
	}
	return dst
}

// ReadFrame reads one frame into a slice of its own and returns its kind and body. A stream that ends between frames gives
// io.EOF, inside one io.ErrUnexpectedEOF. A length over the bound is refused before anything is allocated.
func ReadFrame(r *bufio.Reader) (kind byte, body []byte, err error) {
	var head [5]byte
	if _, err := io.ReadFull(r, head[:4]); err != nil {
		return 0, nil, err
	}
	n := binary.BigEndian.Uint32(head[:])
	if n < 1 || n > MaxFrameBytes {
		return 0, nil, fmt.Errorf("%w: %d bytes", errFrame, n)
	}
	if kind, err = r.ReadByte(); err == nil {
		body = make([]byte, n-1)
		_, err = io.ReadFull(r, body)
	}
	if errors.Is(err, io.EOF) {
		err = io.ErrUnexpectedEOF
	}
	return kind, body, err
}

// ParseChange reads the body of a record frame. The record's slices alias body.
func ParseChange(body []byte) (Change, error) {
	var c Change
	uid, rest, ok := cut(body, 1, MaxUIDBytes)
	if !ok {
		return c, errFrame
	}
	key, rest, ok := cut(rest, 2, MaxKeyBytes)
	if !ok {
		return c, errFrame
	}
	rec, err := ParseRecord(rest)
	if err != nil {
		return c, err
	}
	if rec.LSeq == 0 {
		return c, errFrame
	}
	return Change{UID: string(uid), Key: string(key), Record: rec}, nil
}

// cut takes a string of 1 to most bytes behind a length of lenBytes bytes.
func cut(b []byte, lenBytes, most int) (s, rest []byte, ok bool) {
	if len(b) < lenBytes {
		return nil, nil, false
	}
	n := int(b[0])
	if lenBytes == 2 {
		n = int(binary.BigEndian.Uint16(b))
	}
	b = b[lenBytes:]
	if n < 1 || n > most || n > len(b) {
		return nil, nil, false
	}
	return b[:n], b[n:], true
}

// ParseMark reads the body of a position or live frame.
func ParseMark(kind byte, body []byte) (Mark, error) {
	if len(body) < markBytes || kind != FramePos && kind != FrameLive {
		return Mark{}, errFrame
	}
	be := binary.BigEndian
	m := Mark{
		Prev: be.Uint64(body), Next: be.Uint64(body[8:]), Count: be.Uint32(body[16:]),
		Now: int64(be.Uint64(body[20:])), Head: HLC(be.Uint64(body[28:])), Live: kind == FrameLive,
	}
	body = body[markBytes:]
	if m.Prev > m.Next || m.Now < 0 {
		return m, errFrame
	}
	if !m.Live {
		if len(body) != 0 {
			return m, errFrame
		}
		return m, nil
	}
	var err error
	m.Vector, err = ParseVector(body)
	return m, err
}
