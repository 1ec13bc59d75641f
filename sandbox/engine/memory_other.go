//go:build !(linux && (amd64 || arm64))

package engine

// pageSize is only a unit of bookkeeping here.
const pageSize = 4096

// memory is the linear memory of one guest on the Go heap. It moves when it grows.
type memory struct {
	max  uint64
	cur  []byte
	from *pages
}

func newMemory(limit uint64) (*memory, error) { return &memory{max: limit}, nil }

func (m *memory) view() []byte { return m.cur }

// Reallocate makes the memory larger, at another place; nil if that is more than allowed.
func (m *memory) Reallocate(size uint64) []byte {
	if size > m.max {
		return nil
	}
	if size > uint64(cap(m.cur)) {
		grown := make([]byte, size)
		copy(grown, m.cur)
		m.cur = grown
	}
	m.cur = m.cur[:size]
	return m.cur
}

// Free forgets the memory.
func (m *memory) Free() { m.cur = nil }

func (m *memory) mapPages(p *pages, size uint64) error {
	m.from = p
	m.copyAll(size)
	return nil
}

// pages are the contents of an image.
type pages struct {
	dense uint64
	image []byte
	tail  []tailPage
	spans []span
}

// newPages copies what it is given: the contents of a dense prefix of the given length, and the pages above it.
func newPages(content sparse, dense uint64, tail []tailPage) (*pages, error) {
	p := &pages{dense: dense, image: make([]byte, dense), tail: tail, spans: content.spans()}
	for _, r := range content {
		copy(p.image[r.off:], r.data)
	}
	return p, nil
}

func (p *pages) close() { p.image = nil }
