package codec

const windowBytes = 32 << 10

// What an inflater does next.
const (
	inflateHeader  = iota // the three bits before a block
	inflateSize           // the length of a stored block
	inflateStored         // its bytes
	inflateCounts         // how many codes of which kind a dynamic block has
	inflateLengths        // the lengths of the codes of the lengths of its codes
	inflateCodes          // the lengths of its codes
	inflateSymbols        // literals and matches
	inflateDone
)

// inflater decodes a deflate stream (RFC 1951). It can stop at every bit and at every byte of output.
type inflater struct {
	bits  *bitReader
	state int
	last  bool // this block is the last one

	literals, distances *huffman
	own                 [2]huffman // the codes of a dynamic block
	meta                huffman
	lengths             [286 + 32]uint8
	metaLengths         [19]uint8
	nLiteral, nDistance int
	nMeta, at           int

	window [windowBytes]byte
	wrote  int // bytes of output so far, wrapped beyond twice the window
	left   int // bytes of the match, or stored block, under way
	back   int // how far back the match is
}

// read writes output to dst. done means that the stream is over; without it n is less than len(dst) only when bits are
// missing.
func (f *inflater) read(dst []byte) (n int, done bool, err error) {
	for n < len(dst) {
		switch f.state {
		case inflateDone:
			return n, true, nil
		case inflateStored:
			n += f.copyStored(dst[n:])
		case inflateSymbols:
			var m int
			m, err = f.symbols(dst[n:])
			n += m
		default:
			err = f.header()
		}
		if err == nil && f.state == inflateStored && n < len(dst) && f.bits.empty() {
			err = ErrMore
		}
		if err == ErrMore {
			return n, false, nil
		}
		if err != nil {
			return n, false, err
		}
	}
	return n, f.state == inflateDone, nil
}

// header goes on with what comes before the content of a block.
func (f *inflater) header() error {
	switch f.state {
	case inflateHeader:
		if !f.bits.need(3) {
			return ErrMore
		}
		f.last = f.bits.take(1) == 1
		switch f.bits.take(2) {
		case 0:
			f.bits.align()
			f.state = inflateSize
		case 1:
			f.literals, f.distances, f.state = &fixedLiterals, &fixedDistances, inflateSymbols
		case 2:
			f.state = inflateCounts
		default:
			return ErrCorrupt
		}
	case inflateSize:
		if !f.bits.need(32) {
			return ErrMore
		}
		size, check := f.bits.take(16), f.bits.take(16)
		if size != ^check&0xffff {
			return ErrCorrupt
		}
		f.left, f.state = int(size), inflateStored
		if size == 0 {
			f.endBlock()
		}
	case inflateCounts:
		if !f.bits.need(14) {
			return ErrMore
		}
		f.nLiteral, f.nDistance, f.nMeta = int(f.bits.take(5))+257, int(f.bits.take(5))+1, int(f.bits.take(4))+4
		if f.nLiteral > 286 || f.nDistance > 30 {
			return ErrCorrupt
		}
		f.metaLengths, f.at, f.state = [19]uint8{}, 0, inflateLengths
	case inflateLengths:
		return f.readMeta()
	default:
		return f.readCodes()
	}
	return nil
}

func (f *inflater) endBlock() {
	f.state = inflateHeader
	if f.last {
		f.state = inflateDone
	}
}

// metaOrder is the order in which the lengths of the codes of lengths stand.
var metaOrder = [19]uint8{16, 17, 18, 0, 8, 7, 9, 6, 10, 5, 11, 4, 12, 3, 13, 2, 14, 1, 15}

func (f *inflater) readMeta() error {
	for ; f.at < f.nMeta; f.at++ {
		if !f.bits.need(3) {
			return ErrMore
		}
		f.metaLengths[metaOrder[f.at]] = uint8(f.bits.take(3))
	}
	if !f.meta.build(f.metaLengths[:]) {
		return ErrCorrupt
	}
	f.at, f.state = 0, inflateCodes
	return nil
}

func (f *inflater) readCodes() error {
	for total := f.nLiteral + f.nDistance; f.at < total; {
		f.bits.fill()
		symbol, size := f.meta.look(f.bits.acc)
		if size == 0 && f.bits.have >= f.meta.width {
			return ErrCorrupt
		}
		extra, base := uint(0), 1
		switch symbol {
		case 16:
			extra, base = 2, 3
		case 17:
			extra, base = 3, 3
		case 18:
			extra, base = 7, 11
		}
		if size == 0 || f.bits.have < size+extra {
			return ErrMore
		}
		f.bits.skip(size)
		repeat, value := base+int(f.bits.take(extra)), uint8(symbol)
		if symbol >= 16 {
			value = 0
			if symbol == 16 {
				if f.at == 0 {
					return ErrCorrupt
				}
				value = f.lengths[f.at-1]
			}
		}
		if f.at+repeat > total {
			return ErrCorrupt
		}
		for range repeat {
			f.lengths[f.at] = value
			f.at++
		}
	}
	f.literals, f.distances = &f.own[0], &f.own[1]
	if f.lengths[endOfBlock] == 0 || !f.literals.build(f.lengths[:f.nLiteral]) || !f.distances.build(f.lengths[f.nLiteral:f.nLiteral+f.nDistance]) {
		return ErrCorrupt
	}
	f.state = inflateSymbols
	return nil
}

const endOfBlock = 256

var (
	lengthBase = [29]uint16{3, 4, 5, 6, 7, 8, 9, 10, 11, 13, 15, 17, 19, 23, 27, 31, 35, 43, 51, 59, 67, 83, 99, 115, 131, 163, 195, 227, 258}
	lengthBits = [29]uint8{0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2, 2, 3, 3, 3, 3, 4, 4, 4, 4, 5, 5, 5, 5, 0}
	distBase   = [30]uint16{1, 2, 3, 4, 5, 7, 9, 13, 17, 25, 33, 49, 65, 97, 129, 193, 257, 385, 513, 769, 1025, 1537, 2049, 3073, 4097, 6145, 8193, 12289, 16385, 24577}
	distBits   = [30]uint8{0, 0, 0, 0, 1, 1, 2, 2, 3, 3, 4, 4, 5, 5, 6, 6, 7, 7, 8, 8, 9, 9, 10, 10, 11, 11, 12, 12, 13, 13}
)

// symbols decodes literals and matches until dst is full, the block ends or bits are missing.
func (f *inflater) symbols(dst []byte) (n int, err error) {
	for {
		n += f.copyMatch(dst[n:])
		if n == len(dst) {
			return n, nil
		}
		f.bits.fill() // 48 bits are the most that a match takes
		symbol, size := f.literals.look(f.bits.acc)
		switch {
		case size == 0 && f.bits.have >= f.literals.width:
			return n, ErrCorrupt
		case size == 0 || size > f.bits.have:
			return n, ErrMore
		case symbol < endOfBlock:
			f.bits.skip(size)
			dst[n] = byte(symbol)
			f.put(byte(symbol))
			n++
		case symbol == endOfBlock:
			f.bits.skip(size)
			f.endBlock()
			return n, nil
		default:
			if err := f.match(symbol-endOfBlock-1, size); err != nil {
				return n, err
			}
		}
	}
}

// match reads the rest of a match, of which nothing has been taken yet.
func (f *inflater) match(symbol int, size uint) error {
	if symbol >= len(lengthBase) {
		return ErrCorrupt
	}
	size1 := size + uint(lengthBits[symbol])
	if f.bits.have < size1 {
		return ErrMore
	}
	acc := f.bits.acc >> size1
	code, size2 := f.distances.look(acc)
	if size2 == 0 && f.bits.have-size1 >= f.distances.width || size2 > 0 && code >= len(distBase) {
		return ErrCorrupt
	}
	if size2 == 0 || f.bits.have < size1+size2+uint(distBits[code]) {
		return ErrMore
	}
	f.bits.skip(size)
	left := int(lengthBase[symbol]) + int(f.bits.take(uint(lengthBits[symbol])))
	f.bits.skip(size2)
	f.back = int(distBase[code]) + int(f.bits.take(uint(distBits[code])))
	if f.back > f.wrote {
		return ErrCorrupt
	}
	f.left = left
	return nil
}

func (f *inflater) put(c byte) {
	f.window[f.wrote%windowBytes] = c
	if f.wrote++; f.wrote == 2*windowBytes {
		f.wrote = windowBytes
	}
}

func (f *inflater) copyMatch(dst []byte) int {
	n := min(f.left, len(dst))
	f.left -= n
	for i := range n {
		c := f.window[(f.wrote-f.back)%windowBytes]
		dst[i] = c
		f.put(c)
	}
	return n
}

func (f *inflater) copyStored(dst []byte) int {
	n := 0
	for n < len(dst) && f.left > 0 {
		var c byte
		switch {
		case f.bits.have >= 8:
			c = byte(f.bits.take(8))
		case len(f.bits.in) > 0:
			c, f.bits.in = f.bits.in[0], f.bits.in[1:]
		default:
			return n
		}
		dst[n] = c
		f.put(c)
		n++
		f.left--
	}
	if f.left == 0 {
		f.endBlock()
	}
	return n
}
