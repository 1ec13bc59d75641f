//go:build linux && (amd64 || arm64)

package engine

import (
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"unsafe"

	"golang.org/x/sys/unix"
)

// The PAGEMAP_SCAN ioctl: number, page categories and structures as the kernel defines them.
const (
	ioctlPagemapScan = 0xc0606610
	pageIsFile       = 1 << 2
	pageIsPresent    = 1 << 3
	pageIsSwapped    = 1 << 4
	pageIsZero       = 1 << 5 // the shared page of zeros: read, never written
)

type pageRegion struct{ start, end, categories uint64 }

type scanRequest struct {
	size, flags, start, end, walkEnd, vec, vecLen, maxPages,
	inverted, mask, anyOf, returned uint64
}

// scanner holds what a reset of one memory needs between its system calls. It lives on the heap: the kernel gets
// addresses into it.
type scanner struct {
	request scanRequest
	regions [128]pageRegion
	entries []byte
	found   []span

	complete bool // found names every private page, but for what a watch sees
	usage    unix.Rusage
	unknown  int64
}

// pageTable is the process's own page table, open for reading.
type pageTable struct{ file *os.File }

func (t *pageTable) open() error {
	f, err := os.Open("/proc/self/pagemap")
	if err != nil {
		return fmt.Errorf("open the page table: %w", err)
	}
	t.file = f
	return nil
}

func (t *pageTable) close() error {
	if t.file == nil {
		return nil
	}
	return t.file.Close()
}

// written lists the pages that were written since the memory was mapped: those present that are neither a file's nor the
// shared page of zeros. The list is in rising order and good until the next call.
func (m *memory) written(t *pageTable, how ResetMethod) ([]span, error) {
	if t.file == nil {
		return nil, errors.New("the page table is not open")
	}
	if m.scanner == nil {
		m.scanner = &scanner{}
	}
	m.scanner.found = m.scanner.found[:0]
	m.scanner.complete = false
	var err error
	if how == ResetRead {
		err = m.scanner.read(t.file, m)
	} else {
		err = m.scanner.scan(t.file.Fd(), m)
	}
	m.scanner.complete = err == nil
	return m.scanner.found, err
}

func (s *scanner) add(from, to uint64) {
	if n := len(s.found); n > 0 && s.found[n-1].to == from {
		s.found[n-1].to = to
	} else {
		s.found = append(s.found, span{from, to})
	}
}

func (s *scanner) scan(table uintptr, m *memory) error {
	base := uint64(uintptr(m.base))
	for at, end := base, base+uint64(len(m.cur)); at < end; {
		s.request = scanRequest{
			size: uint64(unsafe.Sizeof(s.request)), start: at, end: end,
			vec: uint64(uintptr(unsafe.Pointer(&s.regions[0]))), vecLen: uint64(len(s.regions)),
			inverted: pageIsFile | pageIsZero, mask: pageIsFile | pageIsZero,
			anyOf: pageIsPresent | pageIsSwapped, returned: pageIsPresent,
		}
		n, _, errno := unix.RawSyscall(unix.SYS_IOCTL, table, ioctlPagemapScan, uintptr(unsafe.Pointer(&s.request)))
		if errno != 0 {
			return fmt.Errorf("scan pages: %w", errno)
		}
		if n > uintptr(len(s.regions)) || s.request.walkEnd <= at || s.request.walkEnd > end {
			return errors.New("scan pages: the kernel's answer makes no sense")
		}
		for _, r := range s.regions[:n] {
			if r.start < at || r.end > end || r.start >= r.end {
				return errors.New("scan pages: a region lies outside the memory")
			}
			s.add(r.start-base, r.end-base)
		}
		at = s.request.walkEnd
	}
	return nil
}

// Bits of an entry of the page table.
const (
	entryFile    = 1 << 61 // the page is a file's or shared
	entrySwapped = 1 << 62
	entryPresent = 1 << 63
	entryBytes   = 8
)

func (s *scanner) read(table *os.File, m *memory) error {
	const batch = 2048 // entries read at once: 8 MiB of guest memory
	if s.entries == nil {
		s.entries = make([]byte, batch*entryBytes)
	}
	page := uint64(pageSize)
	first := uint64(uintptr(m.base)) / page
	for i, n := uint64(0), uint64(len(m.cur))/page; i < n; i += batch {
		count := min(batch, n-i)
		entries := s.entries[:count*entryBytes]
		if _, err := table.ReadAt(entries, int64((first+i)*entryBytes)); err != nil {
			return fmt.Errorf("read the page table: %w", err)
		}
		for j := uint64(0); j < count; j++ {
			from := j
			for j < count && entryWritten(entries[j*entryBytes:]) {
				j++
			}
			if j > from {
				s.add((i+from)*page, (i+j)*page)
			}
		}
	}
	return nil
}

func entryWritten(entry []byte) bool {
	e := binary.LittleEndian.Uint64(entry)
	return e&entryFile == 0 && e&(entryPresent|entrySwapped) != 0
}

// giveBack drops the private pages of [from, to): they are the image's, or zero, when they are next touched. It goes in steps: while the
// kernel frees, it holds a lock of the whole process, and every other thread that maps or scans pages waits.
func (m *memory) giveBack(from, to uint64) bool {
	const step = 1 << 20
	for ; from < to; from = min(from+step, to) {
		if unix.Madvise(m.cur[from:min(from+step, to)], unix.MADV_DONTNEED) != nil {
			return false
		}
	}
	return true
}
