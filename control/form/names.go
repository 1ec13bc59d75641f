package form

import "strings"

// IsName reports whether s has the grammar of ids, UIDs, Spaces and names: [A-Za-z0-9][A-Za-z0-9._-]{0,127}.
func IsName(s string) bool {
	if len(s) == 0 || len(s) > 128 || !alnum(s[0]) {
		return false
	}
	for i := 1; i < len(s); i++ {
		if c := s[i]; !alnum(c) && c != '.' && c != '_' && c != '-' {
			return false
		}
	}
	return true
}

// isVarName: [A-Za-z][A-Za-z0-9._-]{0,63}.
func isVarName(s string) bool {
	if len(s) == 0 || len(s) > 64 || !alpha(s[0]) {
		return false
	}
	for i := 1; i < len(s); i++ {
		if c := s[i]; !alnum(c) && c != '.' && c != '_' && c != '-' {
			return false
		}
	}
	return true
}

// isBindingName: [A-Za-z_$][A-Za-z0-9_$]{0,63}.
func isBindingName(s string) bool {
	if len(s) == 0 || len(s) > 64 || digit(s[0]) {
		return false
	}
	for i := range len(s) {
		if c := s[i]; !alnum(c) && c != '_' && c != '$' {
			return false
		}
	}
	return true
}

// isSensitiveName: [A-Z][A-Z0-9_]{0,63}.
func isSensitiveName(s string) bool {
	if len(s) == 0 || len(s) > 64 || s[0] < 'A' || s[0] > 'Z' {
		return false
	}
	for i := 1; i < len(s); i++ {
		if c := s[i]; (c < 'A' || c > 'Z') && !digit(c) && c != '_' {
			return false
		}
	}
	return true
}

// CanonicalHost returns the canonical form of a claimable host name: lower-case, one trailing dot dropped. reason says
// why the name cannot be claimed, "" when it can. Nothing is ever converted (CL-1, CL-2).
func CanonicalHost(s string) (host, reason string) {
	for i := range len(s) {
		if s[i] >= 0x80 {
			return "", "is not ASCII"
		}
	}
	host = strings.ToLower(strings.TrimSuffix(s, "."))
	if len(host) > 253 {
		return "", "is longer than 253 characters"
	}
	labels := strings.Split(host, ".")
	for _, l := range labels {
		switch {
		case l == "":
			return "", "has an empty label"
		case l == "*":
			return "", "is a wildcard"
		case len(l) > 63:
			return "", "has a label longer than 63 characters"
		case !isLabel(l):
			return "", "has a label that is not letters, digits and inner hyphens"
		}
	}
	if len(labels) < 2 {
		return "", "has a single label"
	}
	// A name whose last label is a number is read as an IPv4 address by URL parsers (1.2.3.4, 1.2.3, a.0x7f).
	if numeric(labels[len(labels)-1]) {
		return "", "is an IP address"
	}
	return host, ""
}

func isLabel(l string) bool {
	for i := range len(l) {
		if !alnum(l[i]) && (l[i] != '-' || i == 0 || i == len(l)-1) {
			return false
		}
	}
	return true
}

func numeric(l string) bool {
	if strings.HasPrefix(l, "0x") {
		return strings.Trim(l[2:], "0123456789abcdef") == ""
	}
	return strings.Trim(l, "0123456789") == ""
}

func isHex256(s string) bool {
	return len(s) == 64 && strings.Trim(s, "0123456789abcdef") == ""
}

// maxURL bounds every URL of the API, in characters.
const maxURL = 8192

// isArtifactURL: absolute HTTPS URL, ASCII, up to 8192 characters, no userinfo, query or fragment.
func isArtifactURL(s string) bool {
	return len(s) <= maxURL && IsFormURL(s)
}

// IsFormURL reports whether s is an ASCII absolute HTTPS URL with a host and without userinfo, query and fragment. It
// is the grammar of Form identities; the whole string is the identity.
func IsFormURL(s string) bool {
	const scheme = "https://"
	if len(s) > maxURL || len(s) <= len(scheme) || !strings.EqualFold(s[:len(scheme)], scheme) {
		return false
	}
	for i := range len(s) {
		if c := s[i]; c <= 0x20 || c >= 0x7f || c == '\\' || c == '?' || c == '#' || c == '"' || c == '<' || c == '>' || c == '^' || c == '`' || c == '{' || c == '|' || c == '}' {
			return false
		}
		if s[i] == '%' && (i+2 >= len(s) || !hexDigit(s[i+1]) || !hexDigit(s[i+2])) {
			return false
		}
	}
	authority, _, _ := strings.Cut(s[len(scheme):], "/")
	if authority == "" || strings.Contains(authority, "@") {
		return false
	}
	return validAuthority(authority)
}

// validAuthority accepts host, host:port and [IPv6] forms without resolving anything.
func validAuthority(a string) bool {
	host, port := a, ""
	if strings.HasPrefix(a, "[") {
		end := strings.IndexByte(a, ']')
		if end < 0 || end == 1 {
			return false
		}
		host, port = a[1:end], a[end+1:]
		if strings.Trim(host, "0123456789abcdefABCDEF:.") != "" {
			return false
		}
	} else {
		if i := strings.IndexByte(a, ':'); i >= 0 {
			host, port = a[:i], a[i:]
		}
		if host == "" || strings.ContainsAny(host, "[]:") {
			return false
		}
	}
	if port == "" {
		return true
	}
	return port[0] == ':' && len(port) <= 6 && strings.Trim(port[1:], "0123456789") == ""
}

func digit(c byte) bool    { return c >= '0' && c <= '9' }
func alpha(c byte) bool    { return c|0x20 >= 'a' && c|0x20 <= 'z' }
func alnum(c byte) bool    { return alpha(c) || digit(c) }
func hexDigit(c byte) bool { return digit(c) || c|0x20 >= 'a' && c|0x20 <= 'f' }
