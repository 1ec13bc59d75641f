package table

import (
	"bytes"
	"unicode/utf8"
)

// AppendAssetKey appends the manifest path that a request path (as sent, without query) looks up, by the rules of
// static-assets §1. searchable is false if the path can match nothing, not even a single-page application's root; dst then
// holds rubbish. The path is first read as the worker's URL parser reads it: a backslash is a slash, and dot segments,
// also percent-encoded ones, are resolved.
func AppendAssetKey(dst, path []byte) (_ []byte, searchable bool) {
	start := len(dst)
	if len(path) == 0 {
		return append(dst, root...), true
	}
	if path[0] != '/' && path[0] != '\\' {
		return dst, false
	}
	// The resolved, still encoded path is built in dst and then decoded in place: decoding only ever shortens.
	dst = appendResolved(dst, path)
	resolved := dst[start:]
	kept := dst[:start]
	for first := true; ; first = false {
		resolved = resolved[1:] // its slash
		end := bytes.IndexByte(resolved, '/')
		last := end < 0
		if last {
			end = len(resolved)
		}
		if !first {
			kept = append(kept, '/')
		}
		if end == 0 {
			if !last {
				return dst, false // empty in the middle
			}
			return append(kept, root...), true
		}
		at := len(kept)
		var ok bool
		if kept, ok = appendDecoded(kept, resolved[:end]); !ok || !validSegment(kept[at:]) {
			return dst, false
		}
		if last {
			return kept, true
		}
		resolved = resolved[end:]
	}
}

// appendResolved appends the path with dot segments resolved, as the URL standard does: every segment that stays is
// preceded by a slash.
func appendResolved(dst, path []byte) []byte {
	start := len(dst)
	for len(path) > 0 {
		path = path[1:]
		end := bytes.IndexAny(path, `/\`)
		last := end < 0
		if last {
			end = len(path)
		}
		segment := path[:end]
		path = path[end:]
		switch dots(segment) {
		case 2:
			if i := bytes.LastIndexByte(dst[start:], '/'); i >= 0 {
				dst = dst[:start+i]
			}
			fallthrough
		case 1:
			if last {
				dst = append(dst, '/')
			}
		default:
			dst = append(dst, '/')
			dst = append(dst, segment...)
		}
	}
	return dst
}

// dots returns 1 or 2 if the segment is "." or "..", each dot perhaps written %2e, else 0.
func dots(segment []byte) (n int) {
	for len(segment) > 0 {
		switch {
		case segment[0] == '.':
			segment = segment[1:]
		case len(segment) >= 3 && segment[0] == '%' && segment[1] == '2' && segment[2]|0x20 == 'e':
			segment = segment[3:]
		default:
			return 0
		}
		if n++; n > 2 {
			return 0
		}
	}
	return n
}

// appendDecoded decodes percent escapes once; ok is false for an incomplete or non-hexadecimal one. dst may be the
// same memory as s, at or before it.
func appendDecoded(dst, s []byte) (_ []byte, ok bool) {
	for i := 0; i < len(s); i++ {
		c := s[i]
		if c == '%' {
			if i+2 >= len(s) {
				return dst, false
			}
			hi, okHi := unhex(s[i+1])
			lo, okLo := unhex(s[i+2])
			if !okHi || !okLo {
				return dst, false
			}
			c = hi<<4 | lo
			i += 2
		}
		dst = append(dst, c)
	}
	return dst, true
}

// validSegment holds what may be in a decoded segment: strict UTF-8 without slash, backslash and controls (C0, DEL, C1),
// not a dot segment.
func validSegment(s []byte) bool {
	if string(s) == "." || string(s) == ".." {
		return false
	}
	for len(s) > 0 {
		r, n := utf8.DecodeRune(s)
		switch {
		case r == utf8.RuneError && n == 1:
			return false
		case r == '/', r == '\\', r < 0x20, r >= 0x7f && r <= 0x9f:
			return false
		}
		s = s[n:]
	}
	return true
}

func unhex(c byte) (byte, bool) {
	switch {
	case c >= '0' && c <= '9':
		return c - '0', true
	case c|0x20 >= 'a' && c|0x20 <= 'f':
		return c | 0x20 - 'a' + 10, true
	}
	return 0, false
}
