package codec

import "math/bits"

const maxCodeBits = 15

// huffman is a decoding table with an entry for every value of the next width bits: symbol<<4 | length of its code. A
// length of 0 marks what is no code.
type huffman struct {
	table []uint16
	width uint
}

// build makes the table from the length of every symbol's code, 0 for symbols without one. It reports whether the
// lengths are those of a complete code; as zlib does, it takes a single code of one bit, and no code at all, too.
func (h *huffman) build(lengths []uint8) bool {
	var count [maxCodeBits + 1]int
	width := 0
	for _, n := range lengths {
		count[n]++
		width = max(width, int(n))
	}
	h.width = uint(width)
	if width == 0 {
		h.table = append(h.table[:0], 0)
		return true
	}
	var next [maxCodeBits + 1]int
	code := 0
	count[0] = 0
	for n := 1; n <= width; n++ {
		code = (code + count[n-1]) << 1
		next[n] = code
	}
	if last := next[width] + count[width]; last != 1<<width && (last != 1 || width != 1) {
		return false
	}
	if size := 1 << width; cap(h.table) >= size {
		h.table = h.table[:size]
		clear(h.table)
	} else {
		h.table = make([]uint16, size)
	}
	for symbol, n := range lengths {
		if n == 0 {
			continue
		}
		if next[n] >= 1<<n {
			return false // more codes of this length than there are
		}
		code := bits.Reverse16(uint16(next[n])) >> (16 - n)
		next[n]++
		entry := uint16(symbol)<<4 | uint16(n)
		for i := int(code); i < len(h.table); i += 1 << n {
			h.table[i] = entry
		}
	}
	return true
}

// look returns the entry for the next bits.
func (h *huffman) look(acc uint64) (symbol int, length uint) {
	e := h.table[acc&(1<<h.width-1)]
	return int(e >> 4), uint(e & 15)
}

// The codes of a block with fixed ones.
var fixedLiterals, fixedDistances = func() (l, d huffman) {
	var lengths [288]uint8
	for i := range lengths {
		switch {
		case i < 144:
			lengths[i] = 8
		case i < 256:
			lengths[i] = 9
		case i < 280:
			lengths[i] = 7
		default:
			lengths[i] = 8
		}
	}
	l.build(lengths[:])
	for i := range 32 {
		lengths[i] = 5
	}
	d.build(lengths[:32])
	return l, d
}()
