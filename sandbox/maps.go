package sandbox

import (
	"sync"

	"edged/sandbox/modgraph"
	"edged/sandbox/sourcemap"
)

// maxMapBytes bounds the source maps that a version may have parsed.
const maxMapBytes = 32 << 20

// maps are the source maps of a version, parsed when a stack with a module's name is first written to its log. The zero
// value has none. Safe for concurrent use.
type maps struct {
	graph *modgraph.Graph

	mu     sync.Mutex // guards the fields below, and makes sure that a map is parsed once
	parsed map[string]*sourcemap.Map
	bytes  int
}

// rewrite gives the stacks in a text the positions that their author knows.
func (m *maps) rewrite(text string) string {
	if m.graph == nil || !m.graph.HasSourceMaps() {
		return text
	}
	return sourcemap.Rewrite(text, m.find)
}

// find returns the map of a module, nil if it has none that can be used.
func (m *maps) find(path string) *sourcemap.Map {
	m.mu.Lock()
	defer m.mu.Unlock()
	if found, known := m.parsed[path]; known {
		return found
	}
	b := m.graph.SourceMap(path)
	if b == nil || m.bytes+len(b) > maxMapBytes {
		return nil
	}
	m.bytes += len(b)
	parsed, err := sourcemap.Parse(b)
	if err != nil {
		parsed = nil // the stack then shows the bundle's own positions
	}
	if m.parsed == nil {
		m.parsed = make(map[string]*sourcemap.Map)
	}
	m.parsed[path] = parsed
	return parsed
}
