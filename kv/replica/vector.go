package replica

import (
	"encoding/binary"
	"fmt"
	"maps"
	"slices"
)

// MaxOrigins bounds a vector: disks that ever belonged to one fleet.
const MaxOrigins = 4096

var errVector = fmt.Errorf("vector is %w", ErrMalformed)

// Vector says, per origin, up to which sequence number everything that origin wrote is here or dominated by what is here.
type Vector map[Origin]uint64

// Covers reports whether the write seq of origin o is here or dominated.
func (v Vector) Covers(o Origin, seq uint64) bool { return seq <= v[o] }

// Dominates reports whether v covers all that w covers.
func (v Vector) Dominates(w Vector) bool {
	for o, seq := range w {
		if v[o] < seq {
			return false
		}
	}
	return true
}

// Merge raises v to cover what w covers.
func (v Vector) Merge(w Vector) {
	for o, seq := range w {
		v[o] = max(v[o], seq)
	}
}

// Clone returns a copy, never nil.
func (v Vector) Clone() Vector {
	out := make(Vector, len(v))
	maps.Copy(out, v)
	return out
}

// Append appends the encoding: a count, then pairs in order of origin. Equal vectors have equal encodings.
func (v Vector) Append(dst []byte) []byte {
	dst = binary.BigEndian.AppendUint32(dst, uint32(len(v)))
	for _, o := range slices.Sorted(maps.Keys(v)) {
		dst = binary.BigEndian.AppendUint64(dst, uint64(o))
		dst = binary.BigEndian.AppendUint64(dst, v[o])
	}
	return dst
}

// ParseVector reads exactly one encoding; origins must ascend, as Append writes them.
func ParseVector(b []byte) (Vector, error) {
	if len(b) < 4 {
		return nil, errVector
	}
	n := binary.BigEndian.Uint32(b)
	b = b[4:]
	if n > MaxOrigins || len(b) != int(n)*16 {
		return nil, errVector
	}
	v := make(Vector, n)
	var last Origin
	for ; len(b) > 0; b = b[16:] {
		o, seq := Origin(binary.BigEndian.Uint64(b)), binary.BigEndian.Uint64(b[8:])
		if o <= last || seq == 0 {
			return nil, errVector
		}
		last, v[o] = o, seq
	}
	return v, nil
}
