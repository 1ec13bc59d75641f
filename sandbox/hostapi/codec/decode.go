package codec

import (
	"hash"
	"hash/adler32"
	"hash/crc32"
	"io"
)

// What a decoder does next.
const (
	decodeHead = iota // the bytes at the start that are always there
	decodeExtraSize
	decodeExtra
	decodeName
	decodeComment
	decodeHeadSum
	decodeBody
	decodeTail
	decodeEnd
)

// Flags of a gzip header.
const (
	gzipSum = 1 << (1 + iota)
	gzipExtra
	gzipName
	gzipComment
)

// Decoder decompresses.
type Decoder struct {
	format Format
	bits   bitReader
	body   inflater
	state  int
	ended  bool
	err    error // final

	head  [10]byte // as much of the head or the tail as has been read
	got   int
	skip  int
	sum   hash.Hash32 // of the output; nil for DeflateRaw
	front hash.Hash32 // of a gzip header
	size  uint32
}

func newDecoder(f Format) *Decoder {
	d := &Decoder{format: f}
	d.body.bits = &d.bits
	switch f {
	case Gzip:
		d.sum, d.front = crc32.NewIEEE(), crc32.NewIEEE()
	case Deflate:
		d.sum = adler32.New()
	default:
		d.state = decodeBody
	}
	return d
}

// Feed gives the next compressed bytes.
func (d *Decoder) Feed(p []byte) { d.bits.in = append(append([]byte(nil), d.bits.in...), p...) }

// End says that there are no more.
func (d *Decoder) End() { d.ended = true }

// Read decompresses.
func (d *Decoder) Read(dst []byte) (n int, err error) {
	if d.err != nil {
		return 0, d.err
	}
	n, err = d.read(dst)
	if n > 0 {
		if d.sum != nil {
			d.sum.Write(dst[:n]) // never fails
		}
		d.size += uint32(n)
		if err == ErrMore {
			return n, nil
		}
	}
	switch {
	case err == ErrMore && d.ended:
		err = ErrTruncated
	case err == ErrMore, err == nil && n > 0:
		return n, err
	}
	d.err = err
	if n > 0 {
		return n, nil // the error comes with the next call
	}
	return 0, err
}

func (d *Decoder) read(dst []byte) (n int, err error) {
	for {
		switch d.state {
		case decodeBody:
			m, done, err := d.body.read(dst)
			if done {
				d.bits.align()
				d.got, d.state = 0, decodeTail
			}
			switch {
			case m > 0 || err != nil:
				return m, err
			case !done:
				return 0, ErrMore
			}
		case decodeTail:
			if err := d.tail(); err != nil {
				return 0, err
			}
			d.state = decodeEnd
		case decodeEnd:
			if !d.bits.empty() {
				return 0, ErrTrailing
			}
			if d.ended {
				return 0, io.EOF
			}
			return 0, ErrMore
		default:
			if err := d.header(); err != nil {
				return 0, err
			}
		}
	}
}

// next takes one byte.
func (d *Decoder) next() (c byte, err error) {
	if !d.bits.need(8) {
		return 0, ErrMore
	}
	return byte(d.bits.take(8)), nil
}

// collect takes bytes until n of them are in d.head.
func (d *Decoder) collect(n int) error {
	for d.got < n {
		c, err := d.next()
		if err != nil {
			return err
		}
		d.head[d.got] = c
		d.got++
	}
	return nil
}

// header goes on with what is before the deflate stream.
func (d *Decoder) header() error {
	if d.format == Deflate {
		if err := d.collect(2); err != nil {
			return err
		}
		if h := d.head; h[0]&0x0f != 8 || h[0]>>4 > 7 || (uint(h[0])<<8|uint(h[1]))%31 != 0 || h[1]&0x20 != 0 {
			return ErrCorrupt
		}
		d.state = decodeBody
		return nil
	}
	switch d.state {
	case decodeHead:
		if err := d.collect(10); err != nil {
			return err
		}
		if d.head[0] != 0x1f || d.head[1] != 0x8b || d.head[2] != 8 || d.head[3]&0xe0 != 0 {
			return ErrCorrupt
		}
		d.front.Write(d.head[:10])
		d.skip = int(d.head[3]) // the flags, from here on
		d.got, d.state = 0, decodeExtraSize
	case decodeExtraSize:
		if d.skip&gzipExtra != 0 {
			if err := d.collect(2); err != nil {
				return err
			}
			d.front.Write(d.head[:2])
			d.size = uint32(d.head[0]) | uint32(d.head[1])<<8
		}
		d.state = decodeExtra
	case decodeExtra:
		for ; d.size > 0; d.size-- {
			if err := d.eat(); err != nil {
				return err
			}
		}
		d.state = decodeName
	case decodeName, decodeComment:
		if flag := map[int]int{decodeName: gzipName, decodeComment: gzipComment}[d.state]; d.skip&flag != 0 {
			for d.head[9] = 1; d.head[9] != 0; {
				if err := d.eat(); err != nil {
					return err
				}
			}
		}
		d.got, d.state = 0, d.state+1
	default:
		if d.skip&gzipSum != 0 {
			if err := d.collect(2); err != nil {
				return err
			}
			if uint16(d.front.Sum32()) != uint16(d.head[0])|uint16(d.head[1])<<8 {
				return ErrCorrupt
			}
		}
		d.state = decodeBody
	}
	return nil
}

// eat takes a byte of the header that nobody wants, and leaves it where the caller may look at it.
func (d *Decoder) eat() error {
	c, err := d.next()
	if err == nil {
		d.head[9] = c
		d.front.Write(d.head[9:])
	}
	return err
}

// tail checks what is behind the deflate stream.
func (d *Decoder) tail() error {
	switch d.format {
	case Gzip:
		if err := d.collect(8); err != nil {
			return err
		}
		if little32(d.head[:]) != d.sum.Sum32() || little32(d.head[4:]) != d.size {
			return ErrCorrupt
		}
	case Deflate:
		if err := d.collect(4); err != nil {
			return err
		}
		if h := d.head; uint32(h[0])<<24|uint32(h[1])<<16|uint32(h[2])<<8|uint32(h[3]) != d.sum.Sum32() {
			return ErrCorrupt
		}
	}
	return nil
}

func little32(b []byte) uint32 {
	return uint32(b[0]) | uint32(b[1])<<8 | uint32(b[2])<<16 | uint32(b[3])<<24
}
