package state

import "strings"

// key joins parts so that equal parts give equal keys, different ones different keys, and all keys with the same first
// parts stand together. Parts are opaque bytes.
func key(parts ...string) string {
	var b strings.Builder
	for _, p := range parts {
		if strings.IndexByte(p, 0) >= 0 {
			p = strings.ReplaceAll(p, "\x00", "\x00\xff")
		}
		b.WriteString(p)
		b.WriteString("\x00\x01")
	}
	return b.String()
}
