package whatwgurl

import "strings"

// parsePathStart takes what follows an authority: nothing, or a path, a query, a fragment.
func (u *URL) parsePathStart(rest string) {
	if rest == "" && !u.isSpecial() {
		return
	}
	if c := at(rest, 0); (c == '?' || c == '#') && !u.isSpecial() {
		u.parseQueryAndFragment(rest)
		return
	}
	u.parsePath(rest)
}

// parsePath takes a path, with or without its first slash, up to query and fragment, and those too. The new segments
// come behind those that u.path has.
func (u *URL) parsePath(rest string) {
	end := strings.IndexAny(rest, "?#")
	if end < 0 {
		end = len(rest)
	}
	u.appendPath(rest[:end])
	u.parseQueryAndFragment(rest[end:])
}

// appendPath adds the segments of text to the path: the path state.
func (u *URL) appendPath(text string) {
	special := u.isSpecial()
	if isSlash(at(text, 0), special) {
		text = text[1:]
	}
	if u.path == "" && plainPath(text, special) && !(u.scheme == "file" && startsWithDrive(text)) {
		u.path = "/" + text
		return
	}
	path := []byte(u.path)
	for {
		end := 0
		for end < len(text) && !isSlash(text[end], special) {
			end++
		}
		last := end == len(text)
		segment := text[:end]
		switch {
		case isDoubleDot(segment):
			path = shorten(path, u.scheme)
			if last {
				path = append(path, '/')
			}
		case isSingleDot(segment):
			if last {
				path = append(path, '/')
			}
		case u.scheme == "file" && len(path) == 0 && isDrive(segment):
			path = append(path, '/', segment[0], ':')
		default:
			path = pathSet.append(append(path, '/'), segment, 0)
		}
		if last {
			u.path = string(path)
			return
		}
		text = text[end+1:]
	}
}

// plainPath reports whether a path serialises as itself: nothing to encode, no dots that mean a directory, no
// backslash that means a slash. It may say no where yes would be right.
func plainPath(text string, special bool) bool {
	start := true // of a segment
	for i := 0; i < len(text); i++ {
		c := text[i]
		if c >= 0x80 || pathSet[c] || special && c == '\\' || start && (c == '.' || c == '%') {
			return false
		}
		start = c == '/'
	}
	return true
}

func (u *URL) shortenPath() { u.path = string(shorten([]byte(u.path), u.scheme)) }

// shorten removes the last segment, unless that is the drive of a file URL.
func shorten(path []byte, scheme string) []byte {
	if scheme == "file" && len(path) == 3 && isAlpha(path[1]) && path[2] == ':' {
		return path
	}
	for i := len(path) - 1; i >= 0; i-- {
		if path[i] == '/' {
			return path[:i]
		}
	}
	return path[:0]
}

func isSingleDot(s string) bool { return s == "." || len(s) == 3 && strings.EqualFold(s, "%2e") }

func isDoubleDot(s string) bool {
	switch len(s) {
	case 2:
		return s == ".."
	case 4:
		return strings.EqualFold(s, ".%2e") || strings.EqualFold(s, "%2e.")
	case 6:
		return strings.EqualFold(s, "%2e%2e")
	}
	return false
}

// isDrive reports whether s is a Windows drive letter: a letter and a colon or bar.
func isDrive(s string) bool { return len(s) == 2 && isAlpha(s[0]) && (s[1] == ':' || s[1] == '|') }

func startsWithDrive(s string) bool {
	return len(s) >= 2 && isDrive(s[:2]) && (len(s) == 2 || strings.IndexByte(`/\?#`, s[2]) >= 0)
}

// driveOf returns the drive that a path begins with, as a path; "" if there is none.
func driveOf(path string) string {
	if len(path) >= 3 && isAlpha(path[1]) && path[2] == ':' && (len(path) == 3 || path[3] == '/') {
		return path[:3]
	}
	return ""
}

func (u *URL) parseQueryAndFragment(rest string) {
	query, fragment, hasFragment := strings.Cut(rest, "#")
	if query != "" { // it begins with its question mark
		u.setQuery(query[1:])
	}
	if hasFragment {
		u.setFragment(fragment)
	}
}

func (u *URL) setQuery(text string) {
	s := querySet
	if u.isSpecial() {
		s = specialSet
	}
	u.query, u.hasQuery = s.encode(text), true
}

func (u *URL) setFragment(text string) { u.fragment, u.hasFragment = fragmentSet.encode(text), true }

func (u *URL) parseOpaque(rest string) {
	end := strings.IndexAny(rest, "?#")
	if end < 0 {
		end = len(rest)
	}
	u.opaque = true
	u.path = c0Set.encode(rest[:end])
	if end < len(rest) && strings.HasSuffix(u.path, " ") {
		u.path = u.path[:len(u.path)-1] + "%20" // a space at the end would not survive being parsed again
	}
	u.parseQueryAndFragment(rest[end:])
}

// OpaquePath returns what a URL's opaque path becomes of text: up to where a query or fragment would begin.
func OpaquePath(text string) string {
	if len(text) > MaxBytes {
		return ""
	}
	var u URL
	u.parseOpaque(withoutTabs(text))
	return u.path
}
