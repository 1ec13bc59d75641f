package codec

// bitReader reads the bits of an input that arrives in pieces, lowest bit first. What was not taken stays for the next
// piece.
type bitReader struct {
	in   []byte // what has not gone into acc
	acc  uint64
	have uint // bits in acc
}

// fill brings as many bits into acc as there are, at most 64.
func (r *bitReader) fill() {
	for r.have <= 56 && len(r.in) > 0 {
		r.acc |= uint64(r.in[0]) << r.have
		r.in = r.in[1:]
		r.have += 8
	}
}

// need reports whether n bits, at most 57, can be taken.
func (r *bitReader) need(n uint) bool {
	if r.have < n {
		r.fill()
	}
	return r.have >= n
}

// take takes n bits, which must be there.
func (r *bitReader) take(n uint) uint32 {
	v := uint32(r.acc & (1<<n - 1))
	r.skip(n)
	return v
}

func (r *bitReader) skip(n uint) {
	r.acc >>= n
	r.have -= n
}

// align drops the bits up to the next byte of the input.
func (r *bitReader) align() { r.skip(r.have % 8) }

// empty reports whether nothing is left.
func (r *bitReader) empty() bool { return r.have == 0 && len(r.in) == 0 }
