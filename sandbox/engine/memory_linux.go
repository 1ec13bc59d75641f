//go:build linux && (amd64 || arm64)

package engine

import (
	"fmt"
	"os"
	"unsafe"

	"golang.org/x/sys/unix"
)

// pageSize is the system's page: what can be mapped and what the kernel reports as written.
var pageSize = os.Getpagesize()

// memory is the linear memory of one guest: an address reservation of its largest size, so that it never moves, whose
// start may map an image copy-on-write. Untouched pages cost nothing.
type memory struct {
	base unsafe.Pointer
	max  uint64
	cur  []byte // what the guest has now
	high uint64 // most that it ever had
	from *pages // mapped over the start; nil: none

	scanner *scanner // made by the first reset
}

func newMemory(limit uint64) (*memory, error) {
	m := &memory{max: limit}
	base, err := unix.MmapPtr(-1, 0, nil, uintptr(limit), unix.PROT_READ|unix.PROT_WRITE,
		unix.MAP_PRIVATE|unix.MAP_ANON|unix.MAP_NORESERVE)
	if err != nil {
		return nil, fmt.Errorf("reserve guest memory: %w", err)
	}
	m.base = base
	m.noHugePages()
	return m, nil
}

// With huge pages one written byte would cost 2 MiB to copy back. A kernel without them refuses the advice, which is as
// good.
func (m *memory) noHugePages() { _ = unix.Madvise(m.all(), unix.MADV_NOHUGEPAGE) }

func (m *memory) all() []byte { return unsafe.Slice((*byte)(m.base), m.max) }

// view returns the guest's memory as large as it is now.
func (m *memory) view() []byte { return m.cur }

// Reallocate makes the memory larger in place; nil if that is more than was reserved.
func (m *memory) Reallocate(size uint64) []byte {
	if m.base == nil || size > m.max {
		return nil
	}
	m.cur = m.all()[:size]
	m.high = max(m.high, size)
	return m.cur
}

// Free gives the addresses back. Idempotent.
func (m *memory) Free() {
	if m.base != nil {
		m.giveBack(0, uint64(len(m.cur)))          // if that fails, the next call does it all
		_ = unix.MunmapPtr(m.base, uintptr(m.max)) // cannot fail for a mapping of ours
		m.base, m.cur, m.from = nil, nil, nil
	}
}

// mapPages makes the first size bytes the image's and forgets all that was written before.
func (m *memory) mapPages(p *pages, size uint64) error {
	if err := m.zero(0, p.first); err != nil {
		return err
	}
	if err := m.zero(p.dense, max(m.high, size)); err != nil {
		return err
	}
	if p.dense > p.first {
		at, n := unsafe.Add(m.base, p.first), uintptr(p.dense-p.first)
		if _, err := unix.MmapPtr(p.fd, p.offset, at, n, mapProt, mapFlags); err != nil {
			return fmt.Errorf("map the image: %w", err)
		}
	}
	m.noHugePages()
	m.high = size
	m.from = p
	for _, t := range p.tail {
		copy(m.cur[t.off:], t.data)
	}
	return nil
}

const (
	mapProt  = unix.PROT_READ | unix.PROT_WRITE
	mapFlags = unix.MAP_PRIVATE | unix.MAP_FIXED | unix.MAP_NORESERVE
)

// zero forgets what [from, to) held.
func (m *memory) zero(from, to uint64) error {
	if from >= to {
		return nil
	}
	if _, err := unix.MmapPtr(-1, 0, unsafe.Add(m.base, from), uintptr(to-from), mapProt, mapFlags|unix.MAP_ANON); err != nil {
		return fmt.Errorf("clear guest memory: %w", err)
	}
	return nil
}

// pages are the contents of an image: a file of its dense part [first, dense), and the pages above it. Below it all is
// zero.
type pages struct {
	fd           int
	offset       int64 // of the dense part in the file
	first, dense uint64
	image        []byte // the dense part, mapped to read
	tail         []tailPage
	spans        []span // what is not zero
}

// newPages copies what it is given, the contents of the dense part and the pages above it, into a sealed, sparse memory file.
func newPages(content sparse, tail []tailPage) (p *pages, err error) {
	fd, err := unix.MemfdCreate("image", unix.MFD_CLOEXEC|unix.MFD_ALLOW_SEALING)
	if err != nil {
		return nil, fmt.Errorf("make an image: %w", err)
	}
	defer func() {
		if err != nil {
			_ = unix.Close(fd)
		}
	}()
	p = &pages{fd: fd, first: content.start(), dense: content.end(), tail: tail, spans: content.spans()}
	if err := unix.Ftruncate(fd, int64(p.dense-p.first)); err != nil {
		return nil, fmt.Errorf("size an image: %w", err)
	}
	for _, r := range content {
		for b, off := r.data, int64(r.off-p.first); len(b) > 0; {
			n, err := unix.Pwrite(fd, b, off)
			if err != nil {
				return nil, fmt.Errorf("fill an image: %w", err)
			}
			b, off = b[n:], off+int64(n)
		}
	}
	const seals = unix.F_SEAL_WRITE | unix.F_SEAL_GROW | unix.F_SEAL_SHRINK | unix.F_SEAL_SEAL
	if _, err := unix.FcntlInt(uintptr(fd), unix.F_ADD_SEALS, seals); err != nil {
		return nil, fmt.Errorf("seal an image: %w", err)
	}
	return p, p.view()
}

// filePages are pages whose dense part, [first, dense), stands at offset in a file that nobody changes: the page cache
// holds it, and only while it is in use. It does not keep f.
func filePages(f *os.File, offset int64, first, dense uint64, spans []span, tail []tailPage) (*pages, error) {
	fd, err := unix.FcntlInt(f.Fd(), unix.F_DUPFD_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("keep an image's file: %w", err)
	}
	p := &pages{fd: fd, offset: offset, first: first, dense: dense, spans: spans, tail: tail}
	if err := p.view(); err != nil {
		_ = unix.Close(fd)
		return nil, err
	}
	return p, nil
}

func (p *pages) view() (err error) {
	if p.dense == p.first {
		return nil
	}
	if p.image, err = unix.Mmap(p.fd, p.offset, int(p.dense-p.first), unix.PROT_READ, unix.MAP_PRIVATE); err != nil {
		return fmt.Errorf("map an image: %w", err)
	}
	return nil
}

// pageOut forgets which pages of the view were read. They are the file's: nothing is lost.
func (p *pages) pageOut() {
	if p.image != nil {
		_ = unix.Madvise(p.image, unix.MADV_DONTNEED) // advice
	}
}

func (p *pages) close() {
	if p.image != nil {
		_ = unix.Munmap(p.image)
		p.image = nil
	}
	_ = unix.Close(p.fd)
}
