package modgraph

import (
	"crypto/sha256"
	"encoding/binary"
	"hash"
)

// The media types that a bundle may carry (module-worker §2.1).
const (
	TypeJavaScript = "application/javascript+module"
	TypeText       = "text/plain"
	TypeBytes      = "application/octet-stream"
	TypeWasm       = "application/wasm"
	TypeSourceMap  = "application/source-map+json"
)

// A Module is one file of a bundle. Bytes must not change while a Graph refers to it.
type Module struct {
	Path      string // relative POSIX path as the manifest has it
	MediaType string
	Bytes     []byte
}

// A Graph is the checked set of a bundle's modules. Immutable; safe for concurrent use.
type Graph struct {
	entrypoint string
	modules    []Module
	byPath     map[string]*Module
	mapped     bool // there are source maps
}

// New checks a bundle as far as that needs no evaluation: every media type is known, paths are unique, the entrypoint is
// there and is JavaScript. The errors are ErrUnsupported and ErrNotFound, in this order of precedence. The graph keeps
// the modules' bytes without copying them.
func New(entrypoint string, modules []Module) (*Graph, error) {
	g := &Graph{entrypoint: entrypoint, modules: modules, byPath: make(map[string]*Module, len(modules))}
	for i := range modules {
		m := &modules[i]
		switch m.MediaType {
		case TypeJavaScript, TypeText, TypeBytes, TypeWasm, TypeSourceMap:
		default:
			return nil, ErrUnsupported.Newf("modgraph.New", "module %q has the media type %q", m.Path, m.MediaType)
		}
		if g.byPath[m.Path] != nil {
			return nil, ErrNotFound.Newf("modgraph.New", "module %q stands twice in the bundle", m.Path)
		}
		g.byPath[m.Path] = m
		g.mapped = g.mapped || m.MediaType == TypeSourceMap
	}
	main := g.byPath[entrypoint]
	if main == nil {
		return nil, ErrNotFound.Newf("modgraph.New", "the entrypoint %q is not in the bundle", entrypoint)
	}
	if main.MediaType != TypeJavaScript {
		return nil, ErrUnsupported.Newf("modgraph.New", "the entrypoint %q has the media type %q", entrypoint, main.MediaType)
	}
	return g, nil
}

// Entrypoint returns the path of the main module.
func (g *Graph) Entrypoint() string { return g.entrypoint }

// Digest identifies the graph: entrypoint and every module's path, media type and bytes, in bundle order. It reads all
// bytes: 128 MiB take about a tenth of a second.
func (g *Graph) Digest() (sum [sha256.Size]byte) {
	h := sha256.New()
	field(h, []byte(g.entrypoint))
	for i := range g.modules {
		field(h, []byte(g.modules[i].Path))
		field(h, []byte(g.modules[i].MediaType))
		field(h, g.modules[i].Bytes)
	}
	h.Sum(sum[:0])
	return sum
}

// field writes b behind its length, so that no two lists of fields hash alike.
func field(h hash.Hash, b []byte) {
	var n [8]byte
	binary.LittleEndian.PutUint64(n[:], uint64(len(b)))
	h.Write(n[:])
	h.Write(b)
}
