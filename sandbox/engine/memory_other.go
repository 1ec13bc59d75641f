//go:build !(linux && (amd64 || arm64))

package engine

import (
	"fmt"
	"os"
)

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

// pages are the contents of an image: its dense part [first, dense), and the pages above it. Below it all is zero.
type pages struct {
	first, dense uint64
	image        []byte // the dense part
	tail         []tailPage
	spans        []span // what is not zero
}

// newPages copies what it is given: the contents of the dense part, and the pages above it.
func newPages(content sparse, tail []tailPage) (*pages, error) {
	p := &pages{first: content.start(), dense: content.end(), tail: tail, spans: content.spans()}
	p.image = make([]byte, p.dense-p.first)
	for _, r := range content {
		copy(p.image[r.off-p.first:], r.data)
	}
	return p, nil
}

// filePages are pages whose dense part, [first, dense), stands at offset in a file.
func filePages(f *os.File, offset int64, first, dense uint64, spans []span, tail []tailPage) (*pages, error) {
	p := &pages{first: first, dense: dense, image: make([]byte, dense-first), spans: spans, tail: tail}
	if _, err := f.ReadAt(p.image, offset); err != nil {
		return nil, fmt.Errorf("read an image: %w", err)
	}
	return p, nil
}

func (p *pages) pageOut() {}

func (p *pages) close() { p.image = nil }
