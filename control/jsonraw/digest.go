package jsonraw

import (
	"crypto/sha256"
	"encoding/binary"
	"hash"
)

// Fingerprint returns a digest of the value that b spells, checking b like Check: two documents have the same
// fingerprint exactly if they are equal by host-api §7.4 (whitespace, order of members and spelling of strings and
// numbers do not matter; order in arrays, and presence against absence, do). A number whose exponent does not fit
// Decimal is refused as Invalid.
func Fingerprint(b []byte) ([32]byte, error) {
	h := sha256.New()
	s := scanner{b: b}
	var sum [32]byte
	if err := s.document(h); err != nil {
		return sum, err
	}
	h.Sum(sum[:0])
	return sum, nil
}

// Equal reports whether a and b spell the same value, in the sense of Fingerprint. The error is that of the first
// document that is not acceptable.
func Equal(a, b []byte) (bool, error) {
	x, err := Fingerprint(a)
	if err != nil {
		return false, err
	}
	y, err := Fingerprint(b)
	return x == y, err
}

// A container is digested apart and enters its parent as a tag and 32 bytes, so that the members of an object can be
// put in order without copying what is below them: sorting spans of text would cost length times depth.

// hasher returns a clean hash for the container at the present depth (slot 0) or for one member's value in it (slot 1);
// nil if outer is nil, which means that nothing is digested.
func (s *scanner) hasher(outer hash.Hash, slot int) hash.Hash {
	if outer == nil {
		return nil
	}
	at := 2*s.depth + slot
	for len(s.hashers) <= at {
		s.hashers = append(s.hashers, sha256.New())
	}
	h := s.hashers[at]
	h.Reset()
	return h
}

func (s *scanner) digestInner(h hash.Hash, tag byte, inner hash.Hash) {
	if h == nil {
		return
	}
	s.scratch = inner.Sum(append(s.scratch[:0], tag))
	h.Write(s.scratch)
}

// digestMembers enters an object's members, which are in order of name.
func (s *scanner) digestMembers(inner hash.Hash, ms []member) {
	if inner == nil {
		return
	}
	for i := range ms {
		s.scratch = binary.AppendUvarint(s.scratch[:0], uint64(len(ms[i].name)))
		s.scratch = append(s.scratch, ms[i].name...)
		s.scratch = append(s.scratch, ms[i].sum[:]...)
		inner.Write(s.scratch)
	}
}

func (s *scanner) digestText(h hash.Hash, start, end int, escaped bool) {
	text := s.decoded(start, end, escaped)
	var head [1 + binary.MaxVarintLen64]byte
	head[0] = 's'
	h.Write(binary.AppendUvarint(head[:1], uint64(len(text))))
	h.Write(text)
}

func (s *scanner) digestDecimal(h hash.Hash, d Decimal) {
	s.scratch = append(s.scratch[:0], 'd', 0)
	if d.negative {
		s.scratch[1] = 1
	}
	s.scratch = binary.AppendVarint(s.scratch, d.exponent)
	s.scratch = binary.AppendUvarint(s.scratch, uint64(len(d.digits)))
	s.scratch = append(s.scratch, d.digits...)
	h.Write(s.scratch)
}
