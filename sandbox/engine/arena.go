package engine

import (
	"encoding/binary"

	"edged/sandbox/engine/abi"
)

// The engine hands out small blocks from arenas: about 4 KB for each size, taken apart into blocks on a free list. In a
// heap that has been in use the free blocks lie wherever something was freed, so that an invocation writes one page or
// two for every size it asks for, and each written page is one that its reset copies back. Pack therefore puts
// small arenas of our own at the head of the free lists, for all sizes side by side on the desk, between the buffers
// that are written anyway. What they do not hold comes from the engine's own arenas as before.
//
// What follows is how this build lays out an arena. learnArenas checks all of it at start; without it nothing is lost
// but speed.
const (
	arenaNext   = 4  // of the arena in the free list of its size; the list's links come first: previous, next
	arenaAll    = 8  // its links in the list of all arenas of that size
	arenaSize   = 16 // number of the size, a byte
	arenaUsed   = 18 // blocks in use; an arena that has none left is freed
	arenaCount  = 20 // blocks at all; an arena that has so many in use leaves the free list
	arenaFirst  = 22 // number of the first free block
	arenaBlocks = 24 // where they begin

	blockNext = 0 // number of the next free block, two bytes; of a block in use its own number
	blockSize = 2 // number of the size, a byte

	noBlock      = 0xffff
	listHead     = 8       // bytes of a list's head in the runtime: last, first
	arenaBytes   = 4 << 10 // that an arena of the engine's own fills as far as whole blocks go
	maxArenas    = 1 << 16 // of one size, while looking; the sizes of this memory allow no more
	phantomBlock = 1       // of each arena of ours, in use for ever: the engine must not free what it did not allocate
)

// blockSizes are the sizes, header included.
var blockSizes = [...]uint32{16, 24, 32, 40, 48, 56, 64, 72, 80, 88, 96, 104, 112, 120, 128,
	144, 160, 176, 192, 208, 224, 240, 256, 288, 320, 352, 384, 416, 448, 480, 512}

// The desk is one block of guest memory: what every invocation writes, on as few pages as it fits. Arenas, then the
// scratch block, of which mostly the beginning is used, on the first; more arenas and the beginning of the I/O buffer on
// the second.
const (
	deskPage    = 4 << 10
	deskScratch = 3700 &^ 7
	deskMore    = deskScratch + scratchBytes
	deskIO      = 7300 &^ 7
	deskBytes   = deskIO + ioBytes
)

// bootPad is allocated before everything else and moves it: the runtime's head and some objects that every invocation
// touches then lie within a page and do not cross into a second one. Found by trying; another value costs up to four pages
// per invocation and nothing else.
const bootPad = 2816

// How many blocks of each size lie on the desk: on the first page what a small handler needs and some more, on the
// second strings of the length of header fields and URLs.
var (
	deskBlocks = [len(blockSizes)]uint16{8, 14, 4, 7, 22, 2, 4, 2, 6, 3, 1, 1}
	moreBlocks = [len(blockSizes)]uint16{12: 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1}
)

// makeDesk allocates the desk and reports whether there was memory for it.
func (in *Instance) makeDesk() bool {
	p := in.malloc(deskBytes + deskPage)
	p = (p + deskPage - 1) &^ (deskPage - 1)
	b, ok := in.bytesAt(p, deskBytes)
	if p == 0 || !ok {
		return false
	}
	clear(b)
	in.known.scratch, in.known.io = p+deskScratch, p+deskIO
	return true
}

// Pack collects garbage and makes what is allocated from then on lie side by side, as far as the space that was set
// aside for it goes. It is called once, when all is built but what every invocation uses: what that writes then lies on
// few pages. The Snapshot that follows collects no garbage, which would shuffle the engine's lists of objects.
func (in *Instance) Pack() {
	in.op(abi.RunGC, uint64(in.known.runtime))
	in.packed = true
	desk := in.known.scratch - deskScratch
	for _, part := range []struct {
		from, to uint32
		blocks   *[len(blockSizes)]uint16
	}{{desk, in.known.scratch, &deskBlocks}, {desk + deskMore, in.known.io, &moreBlocks}} {
		b, ok := in.bytesAt(part.from, part.to-part.from)
		if !ok || !in.engine.arenas || !isZero(b) {
			return
		}
		at := uint32(0)
		for size, n := range part.blocks {
			need := arenaBlocks + uint32(n)*blockSizes[size]
			if n == 0 || at+need > uint32(len(b)) {
				continue
			}
			writeArena(b[at:at+need], size, n)
			in.linkArena(part.from+at, in.freeList(size))
			at += need
		}
	}
}

// freeList is where the runtime keeps the head of a size's list of arenas with free blocks.
func (in *Instance) freeList(size int) uint32 {
	return in.allList(size) + uint32(len(blockSizes))*listHead
}

func (in *Instance) allList(size int) uint32 {
	return in.known.runtime + abi.ArenaLists + uint32(size)*listHead
}

// writeArena makes an arena of n free blocks.
func writeArena(b []byte, size int, n uint16) {
	le := binary.LittleEndian
	b[arenaSize] = byte(size)
	le.PutUint16(b[arenaUsed:], phantomBlock)
	le.PutUint16(b[arenaCount:], n+phantomBlock)
	le.PutUint16(b[arenaFirst:], 0)
	for i := range n {
		block := b[arenaBlocks+uint32(i)*blockSizes[size]:]
		le.PutUint16(block[blockNext:], i+1)
		if i == n-1 {
			le.PutUint16(block[blockNext:], noBlock)
		}
		block[blockSize] = byte(size)
	}
}

// linkArena makes an arena the first of a free list.
func (in *Instance) linkArena(arena, head uint32) {
	first, _ := in.u32At(head + arenaNext)
	in.putU32(arena, head)
	in.putU32(arena+arenaNext, first)
	in.putU32(first, arena)
	in.putU32(head+arenaNext, arena)
}

func (in *Instance) putU32(p, v uint32) {
	if b, ok := in.bytesAt(p, 4); ok {
		binary.LittleEndian.PutUint32(b, v)
	}
}

// learnArenas reports whether every arena of a fresh instance is as we think, and sets what depends on it.
func (e *Engine) learnArenas(in *Instance) {
	e.arenas = true
	found := 0
	for size := range blockSizes {
		all := in.walk(in.allList(size), arenaAll, func(arena uint32) bool {
			found++
			return in.soundArena(arena, size)
		})
		free := in.walk(in.freeList(size), 0, func(arena uint32) bool {
			b, ok := in.bytesAt(arena, arenaBlocks)
			return ok && int(b[arenaSize]) == size && u16(b[arenaUsed:]) < u16(b[arenaCount:])
		})
		e.arenas = e.arenas && all && free
	}
	e.arenas = e.arenas && found > len(blockSizes)
}

// walk goes through a list of arenas, whose links lie at an offset in each, and reports whether it is closed and all of
// it is sound.
func (in *Instance) walk(head, links uint32, sound func(arena uint32) bool) bool {
	at := head
	for range maxArenas {
		next, ok1 := in.u32At(at + arenaNext)
		back, ok2 := in.u32At(next)
		if !ok1 || !ok2 || back != at {
			return false
		}
		if next == head {
			return true
		}
		if at = next; !sound(at - links) {
			return false
		}
	}
	return false
}

// soundArena reports whether an arena is full of blocks of that size and its free list has all that are not in use.
func (in *Instance) soundArena(arena uint32, size int) bool {
	bytes := blockSizes[size]
	blocks := (arenaBytes - arenaBlocks) / bytes
	b, ok := in.bytesAt(arena, arenaBlocks+blocks*bytes)
	if !ok || int(b[arenaSize]) != size || uint32(u16(b[arenaCount:])) != blocks {
		return false
	}
	free := uint32(0)
	for i := u16(b[arenaFirst:]); i != noBlock; free++ {
		if uint32(i) >= blocks || free == blocks {
			return false
		}
		i = u16(b[arenaBlocks+uint32(i)*bytes+blockNext:])
	}
	for i := range blocks {
		if int(b[arenaBlocks+i*bytes+blockSize]) != size {
			return false
		}
	}
	return free+uint32(u16(b[arenaUsed:])) == blocks
}

func u16(b []byte) uint16 { return binary.LittleEndian.Uint16(b) }
