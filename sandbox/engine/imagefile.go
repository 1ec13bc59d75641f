package engine

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"

	"github.com/cespare/xxhash/v2"

	"edged/internal/fault"
)

// An image file is a cache: it is made anew when it is damaged or another engine's. It begins with a fixed head,
//
//	magic [8]byte, checksum of all that follows [8]byte, engine digest [32]byte, length of the fields uint64
//
// followed by the fields in the order of appendFields and, from the next page on, the dense part as it lies in a guest's
// memory, with holes where that is zero. All numbers are little-endian.
//
// A loaded image stays in its file: guests map it, so that the kernel keeps in memory what is used. The file must not be
// written any more; deleting it does no harm.
const (
	imageMagic     = "edgimg\x00\x03" // the last byte is the format's version
	imageHeadSize  = 8 + 8 + 32 + 8
	maxImageNames  = 4096
	maxImageRoots  = 1024
	maxImageBytes  = 1 << 30
	maxImageFields = 48 << 20
	maxImageExtra  = 32 << 20
)

// ErrImage means that a file is no image for this engine: damaged, cut off, of another version or another engine.
var ErrImage = fault.New(fault.Invalid, "engine.LoadImage", "not an image of this engine")

// Save writes the image to path, whole or not at all, readable by its owner only. It is not synced: a file that a crash
// cut short is found out by LoadImage.
func (img *Image) Save(path string) error {
	const op = "engine.Image.Save"
	f, err := os.CreateTemp(filepath.Dir(path), ".image-*") // mode 0600
	if err != nil {
		return fault.Wrap(fault.Unavailable, op, err)
	}
	err = errors.Join(img.write(f), f.Close())
	if err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		return fault.Wrap(fault.Unavailable, op, errors.Join(err, os.Remove(f.Name())))
	}
	return nil
}

// write leaves holes for what is zero.
func (img *Image) write(f *os.File) error {
	p, page := img.pages, int64(pageSize)
	b := make([]byte, imageHeadSize, 4<<10)
	copy(b, imageMagic)
	copy(b[16:], img.engine.digest[:])
	b = img.appendFields(b)
	binary.LittleEndian.PutUint64(b[48:], uint64(len(b)-imageHeadSize))
	offset := (int64(len(b)) + page - 1) / page * page
	b = append(b, make([]byte, offset-int64(len(b)))...)
	sum := xxhash.New()
	sum.Write(b[16:])
	sum.Write(p.image)
	binary.LittleEndian.PutUint64(b[8:], sum.Sum64())
	if _, err := f.Write(b); err != nil {
		return err
	}
	for _, s := range p.spans {
		if _, err := f.WriteAt(p.image[s.from-p.first:s.to-p.first], offset+int64(s.from-p.first)); err != nil {
			return err
		}
	}
	return f.Truncate(offset + int64(len(p.image)))
}

func (img *Image) appendFields(b []byte) []byte {
	u64 := func(n uint64) { b = binary.LittleEndian.AppendUint64(b, n) }
	block := func(p []byte) { u64(uint64(len(p))); b = append(b, p...) }
	u64(img.size)
	u64(img.sp)
	for _, p := range img.known.addresses() {
		u64(uint64(*p))
	}
	for _, v := range img.known.values() {
		u64(uint64(*v))
	}
	u64(uint64(len(img.roots)))
	for _, v := range img.roots {
		u64(uint64(v))
	}
	names := img.moduleNames()
	u64(uint64(len(names)))
	for _, n := range names {
		block([]byte(n))
	}
	block(img.extra)
	u64(uint64(len(img.pages.tail)))
	for _, t := range img.pages.tail {
		u64(t.off)
		block(t.data)
	}
	u64(img.pages.first)
	u64(img.pages.dense)
	u64(uint64(len(img.pages.spans)))
	for _, s := range img.pages.spans {
		u64(s.from)
		u64(s.to)
	}
	return b
}

func (k *known) addresses() []*uint32 {
	return []*uint32{&k.runtime, &k.context, &k.scratch, &k.io}
}

func (k *known) values() []*Value {
	out := []*Value{&k.host}
	for i := range k.errors {
		out = append(out, &k.errors[i])
	}
	return out
}

// LoadImage reads an image that Save wrote. The error wraps ErrImage for a file that is none for this engine, and
// os.ErrNotExist where there is no file; then the caller builds the image anew.
func (e *Engine) LoadImage(path string) (*Image, error) {
	const op = "engine.LoadImage"
	f, err := os.Open(path)
	if err != nil {
		return nil, fault.Wrap(fault.Unavailable, op, err)
	}
	defer f.Close()
	img, err := e.decode(f)
	if err != nil {
		return nil, fault.Wrap(fault.Invalid, op, errors.Join(ErrImage, err))
	}
	return img, nil
}

// decode trusts nothing: a checksum finds damage, and bounds are checked all the same.
func (e *Engine) decode(f *os.File) (*Image, error) {
	st, err := f.Stat()
	if err != nil {
		return nil, err
	}
	head := make([]byte, imageHeadSize)
	if _, err := f.ReadAt(head, 0); err != nil || string(head[:8]) != imageMagic {
		return nil, errors.Join(errors.New("no image, or another format"), err)
	}
	size, fields := st.Size(), binary.LittleEndian.Uint64(head[48:])
	switch {
	case size > maxImageBytes || fields > maxImageFields || uint64(size) < imageHeadSize+fields:
		return nil, errors.New("cut off, or too large")
	case !bytes.Equal(head[16:48], e.digest[:]):
		return nil, errors.New("another engine's")
	}
	sum, err := checksum(f, size)
	if err != nil {
		return nil, err
	}
	if sum != binary.LittleEndian.Uint64(head[8:]) {
		return nil, errors.New("damaged")
	}
	b := make([]byte, fields)
	if _, err := f.ReadAt(b, imageHeadSize); err != nil {
		return nil, err
	}
	return e.decodeFields(&imageReader{b: b}, f, size)
}

// checksum reads with a buffer: through a mapping the whole file would become resident.
func checksum(f *os.File, size int64) (uint64, error) {
	sum := xxhash.New()
	_, err := io.CopyBuffer(sum, io.NewSectionReader(f, 16, size-16), make([]byte, 64<<10))
	return sum.Sum64(), err
}

func (e *Engine) decodeFields(r *imageReader, f *os.File, fileSize int64) (*Image, error) {
	img := &Image{engine: e, loaded: map[string]struct{}{}}
	img.size = r.u64()
	if img.size > uint64(e.opt.MaxMemoryBytes) || img.size%pageBytes != 0 {
		return nil, errors.New("its memory is larger than this engine allows")
	}
	img.sp = r.upTo(img.size)
	for _, p := range img.known.addresses() {
		*p = uint32(r.upTo(img.size))
	}
	for _, v := range img.known.values() {
		*v = Value(r.u64())
	}
	for range r.upTo(maxImageRoots) {
		img.roots = append(img.roots, Value(r.u64()))
	}
	for range r.upTo(maxImageNames) {
		img.loaded[string(r.block(maxModuleName))] = struct{}{}
	}
	img.extra = slices.Clone(r.block(maxImageExtra))
	var tail []tailPage
	for range r.upTo(maxTailPages) {
		t := tailPage{off: r.upTo(img.size)}
		t.data = slices.Clone(r.block(uint64(pageSize)))
		if t.off+uint64(len(t.data)) > img.size || t.off%uint64(pageSize) != 0 || len(t.data) != pageSize {
			return nil, errors.New("a page lies outside its memory")
		}
		tail = append(tail, t)
	}
	first, dense := r.upTo(img.size), r.upTo(img.size)
	var spans []span
	last := first
	for range r.upTo(img.size / uint64(pageSize)) {
		s := span{r.upTo(dense), r.upTo(dense)}
		if s.from < last || s.to < s.from {
			return nil, errors.New("its spans make no sense")
		}
		spans, last = append(spans, s), s.to
	}
	page := uint64(pageSize)
	offset := fileSize - int64(dense-first)
	if r.bad || len(r.b) != 0 || first > dense || first%page != 0 || dense%page != 0 || offset < imageHeadSize || offset%int64(page) != 0 {
		return nil, errors.New("its fields make no sense")
	}
	p, err := filePages(f, offset, first, dense, spans, tail)
	if err != nil {
		return nil, err
	}
	img.pages = p
	img.refs.Store(1)
	return img, nil
}

// imageReader reads fields; once one is bad all are zero.
type imageReader struct {
	b   []byte
	bad bool
}

func (r *imageReader) u64() uint64 {
	if r.bad || len(r.b) < 8 {
		r.bad = true
		return 0
	}
	n := binary.LittleEndian.Uint64(r.b)
	r.b = r.b[8:]
	return n
}

// upTo reads a number that must not be larger than limit.
func (r *imageReader) upTo(limit uint64) uint64 {
	n := r.u64()
	if n > limit {
		r.bad = true
		return 0
	}
	return n
}

// block reads a counted block, a part of what the reader was given.
func (r *imageReader) block(limit uint64) []byte {
	n := r.upTo(limit)
	if r.bad || n > uint64(len(r.b)) {
		r.bad = true
		return nil
	}
	b := r.b[:n:n]
	r.b = r.b[n:]
	return b
}
