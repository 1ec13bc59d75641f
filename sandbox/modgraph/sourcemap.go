package modgraph

import (
	"bytes"
	"strings"
)

// maxMapLink is how much of a module's end is searched for the name of its source map.
const maxMapLink = 8 << 10

// HasSourceMaps reports whether the bundle carries any source map.
func (g *Graph) HasSourceMaps() bool { return g.mapped }

// SourceMap returns the source map of the JavaScript module at path: the entry that its last comment
// "//# sourceMappingURL=" names, resolved like an import, or else the entry whose path is the module's with ".map" behind
// it. nil if neither is a source map of the bundle. The slice is the entry's own bytes.
func (g *Graph) SourceMap(path string) []byte {
	m := g.byPath[path]
	if !g.mapped || m == nil || m.MediaType != TypeJavaScript {
		return nil
	}
	if link := mapLink(m.Bytes); link != "" {
		if !strings.HasPrefix(link, "/") {
			link = "./" + link
		}
		if target, why := join(path, link); why == "" {
			if b := g.sourceMapAt(target); b != nil {
				return b
			}
		}
	}
	return g.sourceMapAt(path + ".map")
}

func (g *Graph) sourceMapAt(path string) []byte {
	if m := g.byPath[path]; m != nil && m.MediaType == TypeSourceMap {
		return m.Bytes
	}
	return nil
}

// mapLink returns what the last sourceMappingURL comment says.
func mapLink(src []byte) string {
	src = src[max(0, len(src)-maxMapLink):]
	i := bytes.LastIndex(src, []byte("//# sourceMappingURL="))
	if i < 0 {
		return ""
	}
	link := src[i+len("//# sourceMappingURL="):]
	if end := bytes.IndexAny(link, "\r\n\t '\""); end >= 0 {
		link = link[:end]
	}
	return string(link)
}
