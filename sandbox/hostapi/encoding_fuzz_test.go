package hostapi

import (
	"bytes"
	"testing"
	"unicode/utf8"
)

// Text does not depend on where its bytes were cut into chunks, and whatever comes in, UTF-8 comes out.
func FuzzDecode(f *testing.F) {
	names := []string{"utf-8", "utf-16le", "utf-16be", "shift_jis", "euc-jp", "iso-2022-jp", "euc-kr", "big5", "gbk", "gb18030", "windows-1252", "iso-8859-8-i"}
	f.Add([]byte("\xef\xbb\xbfa\xf0\x9f\x98\x80\xe2\x82"), uint8(0), uint16(2), true)
	f.Add([]byte("\xff\xfe\x3d\xd8\x00\xde\x3d"), uint8(1), uint16(3), false)
	f.Add([]byte("\x1b$B$\"\x1b(J\x5c\x1b$"), uint8(5), uint16(2), false)
	f.Add([]byte("\x81\x30\x81\x30\x81\x30\xfe"), uint8(9), uint16(1), true)
	f.Fuzz(func(t *testing.T, src []byte, which uint8, cut uint16, fatal bool) {
		name := names[int(which)%len(names)]
		d := decoderOf(name)
		var flags int32
		if fatal {
			flags = flagFatal
		}
		whole, ok := decodeChunk(name, d, src, flags, nil)
		if !utf8.Valid(whole) {
			t.Fatalf("%s: %q is not UTF-8", name, whole)
		}
		state := make([]byte, stateBytes)
		var pieces []byte
		fine := true
		for rest := src; fine; {
			n := min(int(cut)%7+1, len(rest))
			last := n == len(rest)
			f := flags | flagStream
			if last {
				f = flags
			}
			var text []byte
			if text, fine = decodeChunk(name, d, rest[:n], f, state); last {
				pieces = append(pieces, text...)
				break
			}
			pieces = append(pieces, text...)
			rest = rest[n:]
		}
		if ok != fine || ok && !bytes.Equal(pieces, whole) {
			t.Fatalf("%s %q: whole %q %v, in pieces %q %v", name, src, whole, ok, pieces, fine)
		}
		// The state between two chunks comes from the guest: any bytes must do.
		if len(src) >= stateBytes {
			decodeChunk(name, d, src, flagStream, bytes.Clone(src[:stateBytes]))
		}
	})
}
