package whatwgurl

import (
	"strconv"
	"strings"
	"unicode/utf8"

	"golang.org/x/net/idna"
)

// parseHost is the host parser; special hosts are domains or IPv4 addresses, others are opaque.
func parseHost(input string, special bool) (host string, ok bool) {
	if strings.HasPrefix(input, "[") {
		if !strings.HasSuffix(input, "]") {
			return "", false
		}
		addr, ok := parseIPv6(input[1 : len(input)-1])
		if !ok {
			return "", false
		}
		return string(appendIPv6(nil, addr)), true
	}
	if !special {
		if strings.ContainsAny(input, forbiddenHost) {
			return "", false
		}
		return c0Set.encode(input), true
	}
	domain := input
	if strings.IndexByte(domain, '%') >= 0 {
		domain = string(AppendPercentDecoded(nil, domain))
	}
	domain, ok = toASCII(strings.ToValidUTF8(domain, "\uFFFD"))
	if !ok || domain == "" || !plainDomain(domain) {
		return "", false
	}
	if endsInNumber(domain) {
		return parseIPv4(domain)
	}
	return domain, true
}

const forbiddenHost = "\x00\t\n\r #/:<>?@[\\]^|"

// plainDomain reports whether a domain has no forbidden domain code point.
func plainDomain(s string) bool {
	for i := 0; i < len(s); i++ {
		if c := s[i]; c <= 0x20 || c >= 0x7f || c == '%' || strings.IndexByte(forbiddenHost, c) >= 0 {
			return false
		}
	}
	return true
}

// unicodeDomain is UTS 46 processing with the standard's flags for beStrict false.
var unicodeDomain = idna.New(idna.MapForLookup(), idna.BidiRule(), idna.CheckJoiners(true), idna.CheckHyphens(false),
	idna.StrictDomainName(false), idna.Transitional(false), idna.VerifyDNSLength(false))

// toASCII is the standard's domain to ASCII: ASCII is only lower-cased, also where a label is no valid Punycode.
func toASCII(domain string) (string, bool) {
	for i := 0; i < len(domain); i++ {
		if domain[i] >= utf8.RuneSelf {
			ascii, err := unicodeDomain.ToASCII(strings.Map(newerMapping, domain))
			return ascii, err == nil
		}
	}
	return strings.ToLower(domain), true
}

// newerMapping does the mappings that Unicode 15.1 and 16 gave to characters which the table of x/net/idna still
// refuses or maps otherwise: it can go once that table is of Unicode 16.
func newerMapping(r rune) rune {
	switch {
	case r < 0x04c0:
		return r
	case r >= 0x10a0 && r <= 0x10c5: // Georgian capitals
		return r - 0x10a0 + 0x2d00
	case r >= 0x206a && r <= 0x206f, r == 0x115f, r == 0x1160, r == 0x17b4, r == 0x17b5, r == 0x180e, r == 0x3164, r == 0xffa0:
		return -1 // ignored
	}
	switch r {
	case 0x04c0: // palochka
		return 0x04cf
	case 0x1e9e: // sharp s
		return 0x00df
	case 0x2132: // turned F
		return 0x214e
	case 0x2183: // reversed C
		return 0x2184
	case 0x2f868: // compatibility ideograph
		return 0x36fc
	}
	return r
}

// endsInNumber reports whether the last label, a final dot aside, is a number: such a domain must be an IPv4 address.
func endsInNumber(domain string) bool {
	domain = strings.TrimSuffix(domain, ".")
	last := domain[strings.LastIndexByte(domain, '.')+1:]
	if last == "" {
		return false
	}
	digits := true
	for i := 0; i < len(last); i++ {
		digits = digits && isDigit(last[i])
	}
	if digits {
		return true
	}
	_, ok := parseIPv4Number(last)
	return ok
}

func parseIPv4(domain string) (string, bool) {
	parts := strings.Split(strings.TrimSuffix(domain, "."), ".")
	if len(parts) > 4 {
		return "", false
	}
	var addr uint64
	for i, part := range parts {
		n, ok := parseIPv4Number(part)
		if !ok {
			return "", false
		}
		if i < len(parts)-1 {
			if n > 255 {
				return "", false
			}
			addr |= n << (8 * (3 - i))
			continue
		}
		if n >= 1<<(8*(5-len(parts))) {
			return "", false
		}
		addr |= n
	}
	b := make([]byte, 0, len("255.255.255.255"))
	for shift := 24; shift >= 0; shift -= 8 {
		b = strconv.AppendUint(b, addr>>shift&255, 10)
		if shift > 0 {
			b = append(b, '.')
		}
	}
	return string(b), true
}

// parseIPv4Number reads a decimal, octal (0…) or hexadecimal (0x…) number. What is above 32 bits comes out as more
// than any address has room for.
func parseIPv4Number(s string) (uint64, bool) {
	if s == "" {
		return 0, false
	}
	base := uint64(10)
	switch {
	case len(s) >= 2 && s[0] == '0' && s[1]|0x20 == 'x':
		s, base = s[2:], 16
	case len(s) >= 2 && s[0] == '0':
		s, base = s[1:], 8
	}
	var n uint64
	for i := 0; i < len(s); i++ {
		d := unhex(s[i])
		if d < 0 || uint64(d) >= base {
			return 0, false
		}
		if n = n*base + uint64(d); n > 1<<40 {
			n = 1 << 40
		}
	}
	return n, true
}
