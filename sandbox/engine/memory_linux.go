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
		_ = unix.MunmapPtr(m.base, uintptr(m.max)) // cannot fail for a mapping of ours
		m.base, m.cur, m.from = nil, nil, nil
	}
}

// mapPages makes the first size bytes the image's and forgets all that was written before.
func (m *memory) mapPages(p *pages, size uint64) error {
	const prot = unix.PROT_READ | unix.PROT_WRITE
	const flags = unix.MAP_PRIVATE | unix.MAP_FIXED | unix.MAP_NORESERVE
	if stale := max(m.high, size); stale > p.dense {
		rest := unsafe.Add(m.base, p.dense)
		if _, err := unix.MmapPtr(-1, 0, rest, uintptr(stale-p.dense), prot, flags|unix.MAP_ANON); err != nil {
			return fmt.Errorf("clear guest memory: %w", err)
		}
	}
	if p.dense > 0 {
		if _, err := unix.MmapPtr(p.fd, 0, m.base, uintptr(p.dense), prot, flags); err != nil {
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

// pages are the contents of an image: a sealed, sparse memory file of the dense prefix, and the pages above it.
type pages struct {
	fd    int
	dense uint64
	image []byte // the file, mapped to read
	tail  []tailPage
	spans []span // what is not a hole: reading a hole would fill it
}

// newPages copies what it is given: the contents of a dense prefix of the given length, and the pages above it.
func newPages(content sparse, dense uint64, tail []tailPage) (p *pages, err error) {
	fd, err := unix.MemfdCreate("image", unix.MFD_CLOEXEC|unix.MFD_ALLOW_SEALING)
	if err != nil {
		return nil, fmt.Errorf("make an image: %w", err)
	}
	defer func() {
		if err != nil {
			_ = unix.Close(fd)
		}
	}()
	if err := unix.Ftruncate(fd, int64(dense)); err != nil {
		return nil, fmt.Errorf("size an image: %w", err)
	}
	p = &pages{fd: fd, dense: dense, tail: tail, spans: content.spans()}
	for _, r := range content {
		for b, off := r.data, int64(r.off); len(b) > 0; {
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
	if dense > 0 {
		if p.image, err = unix.Mmap(fd, 0, int(dense), unix.PROT_READ, unix.MAP_PRIVATE); err != nil {
			return nil, fmt.Errorf("map an image: %w", err)
		}
	}
	return p, nil
}

func (p *pages) close() {
	if p.image != nil {
		_ = unix.Munmap(p.image)
		p.image = nil
	}
	_ = unix.Close(p.fd)
}
