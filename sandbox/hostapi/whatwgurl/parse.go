package whatwgurl

import "strings"

// Parse parses input, relative to base if that is not nil. ok is false if the standard calls it a failure or the input
// is longer than MaxBytes. base is not changed and shares no memory that could change.
func Parse(input string, base *URL) (u *URL, ok bool) {
	if len(input) > MaxBytes {
		return nil, false
	}
	u = &URL{port: noPort}
	rest := withoutTabs(strings.Trim(input, c0AndSpace))
	scheme, after, found := cutScheme(rest)
	if !found {
		return u, u.parseSchemeless(rest, base)
	}
	u.scheme = scheme
	return u, u.parseAfterScheme(after, base)
}

// c0AndSpace is what is trimmed at both ends of an input.
const c0AndSpace = "\x00\x01\x02\x03\x04\x05\x06\x07\x08\x09\x0a\x0b\x0c\x0d\x0e\x0f" +
	"\x10\x11\x12\x13\x14\x15\x16\x17\x18\x19\x1a\x1b\x1c\x1d\x1e\x1f "

func withoutTabs(s string) string {
	if !strings.ContainsAny(s, "\t\n\r") {
		return s
	}
	b := make([]byte, 0, len(s))
	for i := 0; i < len(s); i++ {
		if c := s[i]; c != '\t' && c != '\n' && c != '\r' {
			b = append(b, c)
		}
	}
	return string(b)
}

// cutScheme splits off a scheme, lower-case, and its colon.
func cutScheme(s string) (scheme, after string, ok bool) {
	upper := false
	for i := 0; i < len(s); i++ {
		c := s[i]
		switch {
		case isAlpha(c):
			upper = upper || c < 'a'
		case i > 0 && (isDigit(c) || c == '+' || c == '-' || c == '.'):
		case i > 0 && c == ':':
			scheme = s[:i]
			if upper {
				scheme = strings.ToLower(scheme)
			}
			return scheme, s[i+1:], true
		default:
			return "", s, false
		}
	}
	return "", s, false
}

// at returns the byte at i, and 0 at the end, which no trimmed input has in a place where it matters.
func at(s string, i int) byte {
	if i < len(s) {
		return s[i]
	}
	return 0
}

func isSlash(c byte, special bool) bool { return c == '/' || special && c == '\\' }

func (u *URL) parseSchemeless(rest string, base *URL) bool {
	switch {
	case base == nil, base.opaque && !strings.HasPrefix(rest, "#"):
		return false
	case base.opaque:
		fragment := rest[1:]
		*u = *base
		u.setFragment(fragment)
		return true
	}
	u.scheme = base.scheme
	if u.scheme == "file" {
		return u.parseFile(rest, base)
	}
	return u.parseRelative(rest, base)
}

func (u *URL) parseAfterScheme(rest string, base *URL) bool {
	_, special := special(u.scheme)
	switch {
	case u.scheme == "file":
		if base != nil && base.scheme != "file" {
			base = nil
		}
		return u.parseFile(rest, base)
	case special && base != nil && base.scheme == u.scheme && !strings.HasPrefix(rest, "//"):
		return u.parseRelative(rest, base)
	case special:
		return u.parseAuthority(strings.TrimLeft(rest, `/\`))
	case strings.HasPrefix(rest, "//"):
		return u.parseAuthority(rest[2:])
	case strings.HasPrefix(rest, "/"):
		u.parsePath(rest)
		return true
	}
	u.parseOpaque(rest)
	return true
}

// parseRelative is the relative state and the relative slash state.
func (u *URL) parseRelative(rest string, base *URL) bool {
	special := u.isSpecial()
	if isSlash(at(rest, 0), special) {
		switch c := at(rest, 1); {
		case special && isSlash(c, true):
			return u.parseAuthority(strings.TrimLeft(rest, `/\`))
		case c == '/':
			return u.parseAuthority(rest[2:])
		}
		u.copyAuthority(base)
		u.parsePath(rest)
		return true
	}
	u.copyAuthority(base)
	u.path = base.path
	u.continueFrom(rest, base)
	return true
}

func (u *URL) copyAuthority(base *URL) {
	u.username, u.password, u.host, u.hasHost, u.port = base.username, base.password, base.host, base.hasHost, base.port
}

// continueFrom takes a relative reference without leading slash; u.path is the base's.
func (u *URL) continueFrom(rest string, base *URL) {
	switch at(rest, 0) {
	case '?':
		u.parseQueryAndFragment(rest)
	case '#':
		u.query, u.hasQuery = base.query, base.hasQuery
		u.setFragment(rest[1:])
	case 0:
		if rest == "" {
			u.query, u.hasQuery = base.query, base.hasQuery
			return
		}
		fallthrough
	default:
		u.shortenPath()
		u.parsePath(rest)
	}
}

// parseFile is the file state and the file slash state. base is nil or a file URL.
func (u *URL) parseFile(rest string, base *URL) bool {
	u.host, u.hasHost = "", true
	if isSlash(at(rest, 0), true) {
		if isSlash(at(rest, 1), true) {
			return u.parseFileHost(rest[2:])
		}
		if base != nil {
			u.host = base.host
			if !startsWithDrive(rest[1:]) {
				u.path = driveOf(base.path)
			}
		}
		u.parsePath(rest)
		return true
	}
	if base == nil {
		u.parsePath(rest)
		return true
	}
	u.host, u.path = base.host, base.path
	if rest != "" && rest[0] != '?' && rest[0] != '#' && startsWithDrive(rest) {
		u.path = ""
		u.parsePath(rest)
		return true
	}
	u.continueFrom(rest, base)
	return true
}

func (u *URL) parseFileHost(rest string) bool {
	end := strings.IndexAny(rest, `/\?#`)
	if end < 0 {
		end = len(rest)
	}
	buffer := rest[:end]
	if isDrive(buffer) { // a path after all
		u.parsePath(rest)
		return true
	}
	if buffer != "" {
		host, ok := parseHost(buffer, true)
		if !ok {
			return false
		}
		if host == "localhost" {
			host = ""
		}
		u.host = host
	}
	u.parsePathStart(rest[end:])
	return true
}

// parseAuthority takes what follows the two slashes: credentials, host, port and all that comes after.
func (u *URL) parseAuthority(rest string) bool {
	stop := "/?#"
	special := u.isSpecial()
	if special {
		stop = `/\?#`
	}
	end := strings.IndexAny(rest, stop)
	if end < 0 {
		end = len(rest)
	}
	authority := rest[:end]
	if i := strings.LastIndexByte(authority, '@'); i >= 0 {
		user, password, _ := strings.Cut(authority[:i], ":")
		u.username, u.password = userSet.encode(user), userSet.encode(password)
		if authority = authority[i+1:]; authority == "" {
			return false
		}
	}
	if !u.parseHostAndPort(authority, special) {
		return false
	}
	u.parsePathStart(rest[end:])
	return true
}

func (u *URL) parseHostAndPort(authority string, special bool) bool {
	name, port, hasPort := cutPort(authority)
	if name == "" && (special || hasPort) {
		return false
	}
	host, ok := parseHost(name, special)
	if !ok {
		return false
	}
	u.host, u.hasHost = host, true
	if port == "" {
		return true
	}
	n, digits, ok := parsePort(port)
	if !ok || digits != len(port) {
		return false
	}
	u.setPort(n)
	return true
}

// cutPort splits at the first colon outside of brackets.
func cutPort(authority string) (host, port string, ok bool) {
	inside := false
	for i := 0; i < len(authority); i++ {
		switch authority[i] {
		case '[':
			inside = true
		case ']':
			inside = false
		case ':':
			if !inside {
				return authority[:i], authority[i+1:], true
			}
		}
	}
	return authority, "", false
}

// parsePort reads the leading digits of s; ok is false if their number is no port.
func parsePort(s string) (port, digits int, ok bool) {
	for digits < len(s) && isDigit(s[digits]) {
		if port = port*10 + int(s[digits]-'0'); port > 0xffff {
			return 0, digits, false
		}
		digits++
	}
	return port, digits, true
}
