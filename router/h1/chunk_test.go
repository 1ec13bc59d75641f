package h1

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"net/http/httputil"
	"strings"
	"testing"
)

// decode runs the decoder with room and pieces of the given sizes.
func decode(in []byte, piece, room int) (out []byte, used int, err error) {
	var d Chunked
	dst := make([]byte, room)
	have := 0
	for {
		n, u, err := d.Decode(dst, in[used:have])
		out, used = append(out, dst[:n]...), used+u
		switch {
		case err != nil:
			return out, used, err
		case n == 0 && have == len(in):
			return out, used, nil
		case n == 0:
			have = min(have+piece, len(in))
		}
	}
}

func TestChunked(t *testing.T) {
	for in, want := range map[string]string{
		"0\r\n\r\nNEXT":                                               "",
		"5\r\nhello\r\n0\r\n\r\nNEXT":                                 "hello",
		"005;a=b;c=\"d\"\r\nhello\r\n000;x\r\n\r\nNEXT":               "hello",
		"A\r\n0123456789\r\n3\r\nabc\r\n0\r\nX: y\r\nZ: \r\n\r\nNEXT": "0123456789abc",
	} {
		for _, piece := range []int{1, 2, 7, 1000} {
			for _, room := range []int{1, 3, 1000} {
				out, used, err := decode([]byte(in), piece, room)
				if err != io.EOF || string(out) != want || in[used:] != "NEXT" {
					t.Errorf("%q (%d, %d): %q, rest %q, %v", in, piece, room, out, in[used:], err)
				}
			}
		}
	}
}

func TestChunkedRefuses(t *testing.T) {
	for _, in := range []string{
		"\r\n", "x\r\n", "-1\r\n", "+1\r\n", "0x1\r\n", " 1\r\n", "1 \r\n", ";a\r\n",
		"1\n", "1\r\r\n", "1\rX", "1\r\nab", "1\r\na\n", "1\r\na\rX",
		"1;\x00\r\n", "1;\n", "1;" + strings.Repeat("x", maxExtension+1),
		"1000000000000000\r\n", "0\r\n\rX", "0\r\n\n", "0\r\n X: y\r\n\r\n", "0\r\nX: \x00\r\n", "0\r\nX: y\rz",
		"0\r\n" + strings.Repeat("X: y\r\n", maxTrailer/6+1),
	} {
		if out, _, err := decode([]byte(in), 1000, 1000); !errors.Is(err, ErrBad) {
			t.Errorf("%q: %q, %v", in, out, err)
		}
	}
}

// Whatever we decode to its end, net/http's decoder decodes to the same bytes and ends at the same place; and the size of
// the pieces changes nothing.
func FuzzChunked(f *testing.F) {
	for _, s := range []string{"0\r\n\r\n", "5;x\r\nhello\r\n0\r\nA: b\r\n\r\nrest", "1\r\na\r\n2\r\nbc\r\n0\r\n\r\n", "ff\r\n"} {
		f.Add([]byte(s), byte(3))
	}
	f.Fuzz(func(t *testing.T, b []byte, size byte) {
		out, used, err := decode(b, 1<<20, 1<<20)
		again, usedAgain, errAgain := decode(b, int(size)+1, int(size)/2+1)
		if !bytes.Equal(out, again) || used != usedAgain || (err == nil) != (errAgain == nil) || (err == io.EOF) != (errAgain == io.EOF) {
			t.Fatalf("%q: %q %d %v in one piece, %q %d %v in pieces", b, out, used, err, again, usedAgain, errAgain)
		}
		if err != io.EOF {
			return
		}
		br := bufio.NewReader(bytes.NewReader(b))
		theirs, err := io.ReadAll(httputil.NewChunkedReader(br))
		if err != nil || !bytes.Equal(theirs, out) {
			t.Fatalf("%q: %q, net/http %q, %v", b, out, theirs, err)
		}
	})
}
