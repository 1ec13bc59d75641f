package proxyproto

import (
	"bytes"
	"encoding/binary"
	"errors"
	"net/netip"
)

// MaxHeader is the size of the largest header that is accepted; extensions beyond it are refused.
const MaxHeader = 1024

// ErrMalformed is returned for bytes that begin like a PROXY header and are none.
var ErrMalformed = errors.New("malformed PROXY header")

const (
	prefix1 = "PROXY "
	prefix2 = "\r\n\r\n\x00\r\nQUIT\n"
	maxV1   = 107
	minV2   = 16
)

// Parse looks for a PROXY header at the start of b. more is true if the bytes so far do not decide. Otherwise n is the
// header's length, 0 if b starts with something else, and source is the address of the client that it names; the zero
// address if it names none (a health check of the proxy itself, or a family other than IP).
func Parse(b []byte) (source netip.Addr, n int, more bool, err error) {
	switch {
	case begins(b, prefix2):
		return parse2(b)
	case begins(b, prefix1):
		return parse1(b)
	}
	return source, 0, false, nil
}

// begins reports whether b starts with prefix, as far as it reaches.
func begins(b []byte, prefix string) bool {
	n := min(len(b), len(prefix))
	return string(b[:n]) == prefix[:n]
}

func parse1(b []byte) (source netip.Addr, n int, more bool, err error) {
	end := bytes.Index(b[:min(len(b), maxV1)], []byte("\r\n"))
	if end < 0 {
		if len(b) >= maxV1 {
			return source, 0, false, ErrMalformed
		}
		return source, 0, true, nil
	}
	n = end + 2
	words := bytes.Split(b[len(prefix1):end], []byte(" "))
	if string(words[0]) == "UNKNOWN" {
		return source, n, false, nil
	}
	if len(words) != 5 || string(words[0]) != "TCP4" && string(words[0]) != "TCP6" {
		return source, 0, false, ErrMalformed
	}
	source, err = netip.ParseAddr(string(words[1]))
	if err != nil || source.Zone() != "" || source.Is4() != (string(words[0]) == "TCP4") {
		return netip.Addr{}, 0, false, ErrMalformed
	}
	return source.Unmap(), n, false, nil
}

func parse2(b []byte) (source netip.Addr, n int, more bool, err error) {
	if len(b) < minV2 {
		return source, 0, true, nil
	}
	command, family := b[12], b[13]
	n = minV2 + int(binary.BigEndian.Uint16(b[14:]))
	if command>>4 != 2 || command&0xf > 1 || n > MaxHeader {
		return source, 0, false, ErrMalformed
	}
	if len(b) < n {
		return source, 0, true, nil
	}
	if command&0xf == 0 {
		return source, n, false, nil // LOCAL: the proxy speaks for itself
	}
	switch address := b[minV2:n]; family {
	case 0x11: // IPv4 over TCP
		if len(address) < 12 {
			return source, 0, false, ErrMalformed
		}
		source = netip.AddrFrom4([4]byte(address))
	case 0x21: // IPv6 over TCP
		if len(address) < 36 {
			return source, 0, false, ErrMalformed
		}
		source = netip.AddrFrom16([16]byte(address)).Unmap()
	}
	return source, n, false, nil
}
