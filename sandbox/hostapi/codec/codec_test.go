package codec

import (
	"bytes"
	"compress/flate"
	"compress/gzip"
	"compress/zlib"
	"errors"
	"io"
	"math/rand/v2"
	"strings"
	"testing"
)

// run feeds input in pieces of step bytes and reads into a buffer of room bytes.
func run(c Codec, input []byte, step, room int) (out []byte, err error) {
	buf := make([]byte, room)
	ended := false
	for {
		n, err := c.Read(buf)
		out = append(out, buf[:n]...)
		switch {
		case err == io.EOF:
			return out, nil
		case err == nil && n > 0:
		case err != ErrMore:
			return out, err
		case len(input) > 0:
			n := min(step, len(input))
			c.Feed(input[:n])
			input = input[n:]
		case ended:
			return out, errors.New("more is needed after the end")
		default:
			c.End()
			ended = true
		}
	}
}

// reference is what the standard library makes of compressed data.
func reference(f Format, in []byte) ([]byte, error) {
	src := bytes.NewReader(in)
	var r io.Reader
	var err error
	switch f {
	case Gzip:
		var z *gzip.Reader
		if z, err = gzip.NewReader(src); err == nil {
			z.Multistream(false)
			r = z
		}
	case Deflate:
		r, err = zlib.NewReader(src)
	default:
		r = flate.NewReader(src)
	}
	if err != nil {
		return nil, err
	}
	out, err := io.ReadAll(r)
	if err == nil && src.Len() > 0 {
		err = ErrTrailing
	}
	return out, err
}

func samples() [][]byte {
	r := rand.New(rand.NewPCG(1, 2))
	noise := make([]byte, 40_000)
	for i := range noise {
		noise[i] = byte(r.Uint32())
	}
	skewed := make([]byte, 40_000)
	for i := range skewed {
		skewed[i] = byte(r.ExpFloat64() * 20)
	}
	return [][]byte{nil, []byte("a"), []byte("expected output"), bytes.Repeat([]byte("abc"), 25_000), noise, skewed, make([]byte, 100_000)}
}

// What is compressed here the standard library can read, and the other way round, whatever the pieces.
func TestThereAndBack(t *testing.T) {
	for f := range numFormats {
		for _, want := range samples() {
			for _, pieces := range []struct{ step, room int }{{1 << 20, 1 << 16}, {1, 100}, {7, 1}, {1000, 64}} {
				if pieces.room*10_000 < len(want) {
					continue
				}
				packed, err := run(New(f, false), want, pieces.step, pieces.room)
				if err != nil {
					t.Fatal(err)
				}
				if got, err := reference(f, packed); err != nil || !bytes.Equal(got, want) {
					t.Fatalf("format %d, %d bytes: the library reads %d bytes, %v", f, len(want), len(got), err)
				}
				if got, err := run(New(f, true), packed, pieces.step, pieces.room); err != nil || !bytes.Equal(got, want) {
					t.Fatalf("format %d, %d bytes, %v: %d bytes, %v", f, len(want), pieces, len(got), err)
				}
			}
		}
	}
}

// Compression standard: data that is cut, followed by more, or wrong is an error.
func TestBadInput(t *testing.T) {
	text := []byte(strings.Repeat("expected output ", 40))
	for f := range numFormats {
		packed, _ := run(New(f, false), text, 1<<20, 1<<16)
		for n := range packed {
			if _, err := run(New(f, true), packed[:n], 1<<20, 1<<16); err != ErrTruncated {
				t.Errorf("format %d cut at %d of %d: %v", f, n, len(packed), err)
			}
		}
		if _, err := run(New(f, true), append(bytes.Clone(packed), 0), 5, 1<<16); err != ErrTrailing {
			t.Errorf("format %d with a byte more: %v", f, err)
		}
		for i := range packed {
			bad := bytes.Clone(packed)
			bad[i] ^= 0x55
			got, err := run(New(f, true), bad, 3, 1<<16)
			if want, wantErr := reference(f, bad); (err == nil) != (wantErr == nil) || err == nil && !bytes.Equal(got, want) {
				t.Errorf("format %d, byte %d changed: %v; the library: %v", f, i, err, wantErr)
			}
		}
	}
}

// A gzip header may have every field there is.
func TestGzipHeader(t *testing.T) {
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	w.Name, w.Comment, w.Extra = "name", "comment", []byte("extra")
	w.Write([]byte("text"))
	w.Close()
	packed := b.Bytes()
	for step := 1; step < 9; step++ {
		if got, err := run(New(Gzip, true), packed, step, 10); err != nil || string(got) != "text" {
			t.Errorf("in pieces of %d: %q, %v", step, got, err)
		}
	}
}

// A decoder holds no output: a thousandfold expansion is taken piece by piece.
func TestBombCostsNoMemory(t *testing.T) {
	packed, _ := run(New(Gzip, false), make([]byte, 16<<20), 1<<20, 1<<16)
	d := New(Gzip, true)
	buf := make([]byte, 64<<10)
	d.Feed(packed)
	total := 0
	allocs := testing.AllocsPerRun(100, func() {
		n, _ := d.Read(buf)
		total += n
	})
	if allocs > 1 || total < 100*len(buf) {
		t.Errorf("%v allocations a piece; %d bytes", allocs, total)
	}
}

func FuzzDecoder(f *testing.F) {
	for format := range numFormats {
		for _, s := range samples()[:4] {
			packed, _ := run(New(format, false), s[:min(len(s), 3000)], 1<<20, 1<<16)
			f.Add(packed, uint8(format), uint8(3))
		}
	}
	f.Fuzz(func(t *testing.T, in []byte, format, step uint8) {
		form := Format(format) % numFormats
		if form == Gzip && len(in) > 3 && in[3]&0xe0 != 0 {
			return // flags that RFC 1952 reserves: an error here, not in the library
		}
		out, err := run(New(form, true), in, int(step)+1, 1<<16)
		want, wantErr := reference(form, in)
		if (err == nil) != (wantErr == nil) {
			t.Fatalf("%v; the library: %v", err, wantErr)
		}
		if err == nil && !bytes.Equal(out, want) {
			t.Fatal("other bytes than the library's")
		}
	})
}

func BenchmarkDecode(b *testing.B) {
	text := bytes.Repeat([]byte("a line of text that is like many others, but 12345 not quite\n"), 5000)
	packed, _ := run(New(Gzip, false), text, 1<<20, 1<<16)
	b.SetBytes(int64(len(text)))
	for b.Loop() {
		run(New(Gzip, true), packed, 64<<10, 64<<10)
	}
}

// An encoder that was used before, to its end or not, writes what a new one does.
func TestPool(t *testing.T) {
	var p Pool
	for f := range numFormats {
		for _, text := range samples() {
			want, _ := run(New(f, false), text, 1000, 1<<16)
			for range 2 {
				c := p.New(f, false)
				got, err := run(c, text, 1000, 1<<16)
				if err != nil || !bytes.Equal(got, want) {
					t.Fatalf("format %d, %d bytes: other output than a new encoder's, %v", f, len(text), err)
				}
				p.Release(c)
				half := p.New(f, false)
				half.Feed([]byte("of somebody else"))
				p.Release(half)
			}
		}
		if _, ok := p.New(f, true).(*Decoder); !ok {
			t.Error("a decoder was asked for")
		}
	}
}

// What a short text costs: most of it is the encoder itself.
func BenchmarkEncodeShort(b *testing.B) {
	text := bytes.Repeat([]byte("a line of text that is like many others\n"), 50)
	var p Pool
	for _, bb := range []struct {
		name  string
		fresh func() Codec
	}{{"new", func() Codec { return New(Gzip, false) }}, {"pool", func() Codec { return p.New(Gzip, false) }}} {
		b.Run(bb.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				c := bb.fresh()
				run(c, text, 64<<10, 4<<10)
				p.Release(c)
			}
		})
	}
}
