package whatwgurl

import "strconv"

// parseIPv6 parses what stands between the brackets.
func parseIPv6(s string) (addr [8]uint16, ok bool) {
	piece, compress, i := 0, -1, 0
	if at(s, 0) == ':' {
		if at(s, 1) != ':' {
			return addr, false
		}
		i, piece, compress = 2, 1, 1
	}
	for i < len(s) {
		if piece == 8 {
			return addr, false
		}
		if s[i] == ':' {
			if compress >= 0 {
				return addr, false
			}
			i++
			piece++
			compress = piece
			continue
		}
		start, value := i, 0
		for i < len(s) && i-start < 4 && unhex(s[i]) >= 0 {
			value = value<<4 | unhex(s[i])
			i++
		}
		switch {
		case i < len(s) && s[i] == '.':
			if i == start || piece > 6 || !parseIPv6Tail(s[start:], addr[piece:]) {
				return addr, false
			}
			piece += 2
			i = len(s)
			continue
		case i < len(s) && s[i] == ':':
			if i++; i == len(s) {
				return addr, false
			}
		case i < len(s):
			return addr, false
		}
		addr[piece] = uint16(value)
		piece++
	}
	return expandIPv6(addr, piece, compress)
}

// expandIPv6 moves the pieces behind the compression to the end.
func expandIPv6(addr [8]uint16, piece, compress int) ([8]uint16, bool) {
	if compress < 0 {
		return addr, piece == 8
	}
	for swaps, last := piece-compress, 7; last != 0 && swaps > 0; last, swaps = last-1, swaps-1 {
		from := compress + swaps - 1
		addr[last], addr[from] = addr[from], addr[last]
	}
	return addr, true
}

// parseIPv6Tail parses an IPv4 address into the first two pieces of dst.
func parseIPv6Tail(s string, dst []uint16) bool {
	for n := range 4 {
		if n > 0 {
			if at(s, 0) != '.' {
				return false
			}
			s = s[1:]
		}
		value, digits := 0, 0
		for digits < len(s) && isDigit(s[digits]) {
			if digits > 0 && value == 0 {
				return false // a leading zero
			}
			if value = value*10 + int(s[digits]-'0'); value > 255 {
				return false
			}
			digits++
		}
		if digits == 0 {
			return false
		}
		dst[n/2] = dst[n/2]<<8 | uint16(value)
		s = s[digits:]
	}
	return s == ""
}

// appendIPv6 appends the address in its shortest form, in brackets.
func appendIPv6(dst []byte, addr [8]uint16) []byte {
	start, length := longestZeros(addr)
	dst = append(dst, '[')
	for i := 0; i < 8; i++ {
		if i == start {
			dst = append(dst, ':')
			if i == 0 {
				dst = append(dst, ':')
			}
			i += length - 1
			continue
		}
		dst = strconv.AppendUint(dst, uint64(addr[i]), 16)
		if i < 7 {
			dst = append(dst, ':')
		}
	}
	return append(dst, ']')
}

// longestZeros finds the first longest run of two or more zero pieces; start is -1 if there is none.
func longestZeros(addr [8]uint16) (start, length int) {
	start = -1
	for i := 0; i < 8; i++ {
		n := 0
		for i+n < 8 && addr[i+n] == 0 {
			n++
		}
		if n > 1 && n > length {
			start, length = i, n
		}
		i += n
	}
	return start, length
}
