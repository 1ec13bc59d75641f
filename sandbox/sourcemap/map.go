package sourcemap

import (
	"encoding/json"
	"errors"
	"sort"
	"strings"
)

// MaxBytes bounds the JSON of a map.
const MaxBytes = 16 << 20

// maxSource bounds the name of a source that is shown.
const maxSource = 512

// Map is a parsed source map. Immutable; safe for concurrent use.
type Map struct {
	root     string
	sources  []string
	mappings string
	marks    []cursor // one every few hundred mappings, in order
}

// Position is a place in a source. Line and Column count from 1.
type Position struct {
	Source       string
	Line, Column int
}

var errMap = errors.New("sourcemap: not a source map of version 3")

// Parse reads a map. b is not kept.
func Parse(b []byte) (*Map, error) {
	if len(b) > MaxBytes {
		return nil, errors.New("sourcemap: too large")
	}
	var doc struct {
		Version    int             `json:"version"`
		SourceRoot string          `json:"sourceRoot"`
		Sources    []*string       `json:"sources"`
		Mappings   *string         `json:"mappings"`
		Sections   json.RawMessage `json:"sections"`
	}
	if err := json.Unmarshal(b, &doc); err != nil || doc.Version != 3 || doc.Mappings == nil || doc.Sections != nil {
		return nil, errMap
	}
	m := &Map{root: doc.SourceRoot, mappings: *doc.Mappings}
	for _, s := range doc.Sources {
		name := ""
		if s != nil {
			name = *s
		}
		m.sources = append(m.sources, name)
	}
	return m, m.mark()
}

// mark notes where to begin to read, and reads everything once to see that it is well formed.
func (m *Map) mark() error {
	const every = 512
	var c cursor
	for n := 0; ; n++ {
		if n%every == 0 {
			m.marks = append(m.marks, c)
		}
		ok, err := c.next(m.mappings)
		if err != nil {
			return err
		}
		if !ok {
			return nil
		}
	}
}

// Find returns where a place in the generated code, counted from 1, came from; false if the map does not say.
func (m *Map) Find(line, column int) (p Position, ok bool) {
	line--
	column--
	// The last mark that is not behind the place; what it stands before may still be.
	i := sort.Search(len(m.marks), func(i int) bool { return m.marks[i].behind(line, column) }) - 1
	if i < 0 || line < 0 || column < 0 {
		return p, false
	}
	c := m.marks[i]
	found := c
	for {
		more, err := c.next(m.mappings)
		if err != nil || !more || c.behind(line, column) {
			break
		}
		found = c
	}
	if found.line != line || !found.mapped || found.source < 0 || found.source >= len(m.sources) {
		return p, false
	}
	return Position{Source: m.name(found.source), Line: found.fromLine + 1, Column: found.fromColumn + 1}, true
}

func (m *Map) name(source int) string {
	name := m.sources[source]
	if m.root != "" && !strings.HasPrefix(name, "/") && !strings.Contains(name, "://") {
		name = strings.TrimSuffix(m.root, "/") + "/" + name
	}
	name = strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f {
			return -1
		}
		return r
	}, name)
	return strings.ToValidUTF8(name[:min(len(name), maxSource)], "")
}
