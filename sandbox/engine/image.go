package engine

import (
	"crypto/rand"
	"encoding/binary"
	"maps"
	"slices"
	"sync"
	"sync/atomic"

	"edged/internal/fault"
	"edged/sandbox/event"
)

// Image is the memory of a built instance, shared by all that were cloned from it. It is immutable and safe for
// concurrent use. Instances keep it alive: Close gives up the owner's reference only.
type Image struct {
	engine *Engine
	pages  *pages
	size   uint64 // bytes of guest memory
	sp     uint64 // the stack pointer at rest
	known  known
	roots  []Value
	loaded map[string]struct{} // names of the modules in it
	extra  []byte              // the companion's
	refs   atomic.Int64

	decode  sync.Once // guards decoded
	decoded any
	closed  atomic.Bool
}

// tailPage is a page that is not zero although a wide gap of zeros lies below: the allocator's fences at the top of the
// heap.
type tailPage struct {
	off  uint64
	data []byte
}

const (
	maxTailPages = 8
	tailGap      = 1 << 20 // zero bytes that part the dense memory from tail pages
)

// Roots returns the values given to Snapshot, borrowed, in their order. The caller must not change the slice.
func (img *Image) Roots() []Value { return img.roots }

// MemoryBytes returns the size of a clone's memory; most of it is never touched.
func (img *Image) MemoryBytes() int64 { return int64(img.size) }

// ResidentBytes returns the memory that the image itself occupies.
func (img *Image) ResidentBytes() int64 {
	n := int64(len(img.pages.tail) * pageSize)
	for _, s := range img.pages.spans {
		n += int64(s.to - s.from)
	}
	return n
}

// Close gives up the owner's reference. The memory is freed when the last instance of it is closed or maps another
// image. Idempotent.
func (img *Image) Close() {
	if img.closed.CompareAndSwap(false, true) {
		img.release()
	}
}

// PageOut gives back the memory through which resets read the image; the next ones get it again page by page. It may be called
// at any time by the holder of a reference.
func (img *Image) PageOut() { img.pages.pageOut() }

func (img *Image) retain() { img.refs.Add(1) }

func (img *Image) release() {
	if img.refs.Add(-1) == 0 {
		img.pages.close()
	}
}

func (img *Image) hasModule(name string) bool {
	_, ok := img.loaded[name]
	return ok
}

// capture copies the memory of in. Values of the guest stay valid: a clone has them at the same places.
func (e *Engine) capture(in *Instance, roots []Value) (*Image, error) {
	mem := in.mem.view()
	touched := []span{{0, uint64(len(mem))}}
	if e.reset == ResetScan || e.reset == ResetRead { // reading what was never touched would map it, page by page
		var err error
		if touched, err = in.mem.written(&e.table, e.reset); err != nil {
			return nil, err
		}
		if in.image != nil { // a clone also has what its own image gave it
			touched = union(touched, in.image.pages.spans)
		}
	}
	var content sparse
	for _, s := range touched {
		if s.from = max(s.from, in.deadStack()); s.from < s.to {
			content = content.add(mem, s)
		}
	}
	content, tail := content.split()
	p, err := newPages(content, tail)
	if err != nil {
		return nil, err
	}
	img := &Image{engine: e, pages: p, size: uint64(len(mem)), sp: in.sp.Get(), known: in.known,
		roots: slices.Clone(roots), loaded: map[string]struct{}{}}
	if in.image != nil {
		maps.Copy(img.loaded, in.image.loaded)
	}
	for name := range in.loaded {
		img.loaded[name] = struct{}{}
	}
	img.refs.Store(1)
	return img, nil
}

func isZero(b []byte) bool {
	for len(b) >= 32 {
		if binary.LittleEndian.Uint64(b)|binary.LittleEndian.Uint64(b[8:])|
			binary.LittleEndian.Uint64(b[16:])|binary.LittleEndian.Uint64(b[24:]) != 0 {
			return false
		}
		b = b[32:]
	}
	for _, c := range b {
		if c != 0 {
			return false
		}
	}
	return true
}

// Clone makes a pristine instance of img. Safe for concurrent use. Errors: Unavailable without memory.
func (e *Engine) Clone(img *Image) (*Instance, error) {
	const op = "engine.Clone"
	if img.engine.digest != e.digest {
		return nil, fault.New(fault.Internal, op, "the image belongs to another engine")
	}
	in, err := e.blank()
	if err != nil {
		return nil, err
	}
	if err := in.adopt(img); err != nil {
		in.Close()
		return nil, fault.Wrap(fault.Unavailable, op, err)
	}
	return in, nil
}

// Free returns how much of its memory a pristine clone has never used: what an invocation may still take.
func (img *Image) Free() int64 { return int64(img.size - min(img.size, img.pages.dense)) }

// Remap turns a live instance into a pristine one of another image. Errors: ErrGrown if its memory is larger than img's;
// after any error the instance must be closed.
func (in *Instance) Remap(img *Image) error {
	const op = "engine.Remap"
	switch {
	case in.closed || in.broken || in.image == nil || in.depth != 0:
		return fault.New(fault.Internal, op, "the instance is closed, broken, running or no clone")
	case img.engine.digest != in.engine.digest:
		return fault.New(fault.Internal, op, "the image belongs to another engine")
	}
	if err := in.adopt(img); err != nil {
		return fault.Wrap(fault.CodeOf(err), op, err)
	}
	in.User, in.Loader, in.OnRejection = nil, nil, nil
	return nil
}

// adopt gives in the image's memory and state. The reference to the image that it had before goes at the end, when
// nothing maps it any more.
func (in *Instance) adopt(img *Image) error {
	if uint64(len(in.mem.view())) > img.size {
		return ErrGrown
	}
	if missing := img.size - uint64(len(in.mem.view())); missing > 0 {
		if _, ok := in.module.Memory().Grow(uint32(missing / pageBytes)); !ok {
			return event.ErrMemory
		}
	}
	in.Unwatch()
	if err := in.mem.mapPages(img.pages, img.size); err != nil {
		return err
	}
	old := in.image
	img.retain()
	in.image = img
	if old != nil {
		old.release()
	}
	in.known = img.known
	in.loaded = nil
	in.pristine()
	return nil
}

// pristine sets everything that is not memory.
func (in *Instance) pristine() {
	in.setCounters(in.image.sp)
	in.failure, in.modErr = nil, nil
	in.limits = limits{budget: defaultCPU}
	in.stopped.Store(nil)
	if len(in.loaded) > 0 {
		clear(in.loaded)
	} else if in.loaded == nil {
		in.loaded = map[string]uint32{}
	}
	in.reseed()
	if in.companion != nil {
		in.companion.Restored()
	}
}

func randomState() uint64 {
	for {
		var b [8]byte
		rand.Read(b[:]) // never fails
		if n := binary.LittleEndian.Uint64(b[:]); n != 0 {
			return n // the generator would stay at zero for ever
		}
	}
}

func (img *Image) moduleNames() []string { return slices.Sorted(maps.Keys(img.loaded)) }

// run is a stretch of whole pages of which the first and last are not zero.
type run struct {
	off  uint64
	data []byte
}

// span is where a run lies in an image.
type span struct{ from, to uint64 }

// sparse is a memory without its zero pages, in rising order.
type sparse []run

// add appends what is not zero in one span of whole pages, as views of mem.
func (s sparse) add(mem []byte, in span) sparse {
	page := uint64(pageSize)
	for off := in.from; off < in.to; off += page {
		if isZero(mem[off : off+page]) {
			continue
		}
		if n := len(s); n > 0 && s[n-1].end() == off {
			s[n-1].data = mem[s[n-1].off : off+page]
		} else {
			s = append(s, run{off, mem[off : off+page]})
		}
	}
	return s
}

func (r run) end() uint64 { return r.off + uint64(len(r.data)) }

// start and end return where the first run begins and the last one ends.
func (s sparse) start() uint64 {
	if len(s) == 0 {
		return 0
	}
	return s[0].off
}

func (s sparse) end() uint64 {
	if len(s) == 0 {
		return 0
	}
	return s[len(s)-1].end()
}

// split cuts off the few lone pages above the widest gaps, as copies.
func (s sparse) split() (dense sparse, tail []tailPage) {
	cut, above := len(s), 0
	for i := len(s) - 1; i > 0; i-- {
		if above += len(s[i].data) / pageSize; above > maxTailPages {
			break
		}
		if s[i].off-s[i-1].end() >= tailGap {
			cut = i
		}
	}
	for _, r := range s[cut:] {
		for b, off := r.data, r.off; len(b) > 0; b, off = b[pageSize:], off+uint64(pageSize) {
			tail = append(tail, tailPage{off, slices.Clone(b[:pageSize])})
		}
	}
	return s[:cut], tail
}

func (s sparse) spans() (out []span) {
	for _, r := range s {
		out = append(out, span{r.off, r.end()})
	}
	return out
}
