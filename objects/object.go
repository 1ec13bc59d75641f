package objects

import (
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"os"
)

// errDamaged is the end of reading where bytes are not what was stored.
var errDamaged = errors.New("body is damaged")

// Object is an open object: what is known of it, and a reader of the range that was asked for. Read and WriteTo compare every block
// of 1 MiB that lies in the range with its checksum and fail before they hand out its end, unless its whole file was compared within
// the last hour. Small bodies are guarded by the checksums of Pebble. Not safe for concurrent use; it has to be closed, also after an
// error.
type Object struct {
	Info
	Partial bool  // a range was asked for
	Range   Range // what is served

	s        *Store
	head     *head
	pos, end int64  // of the body; what is left to read
	inline   []byte // what is left of an inline body
	closed   bool

	src    source // the open file, nil if none is
	name   id
	start  int64 // where the file begins in the body
	length int64 // of the file
	blob   *blob // its record while it is compared, else nil
	crc    uint32
	sound  bool // the block was read from its beginning
	whole  bool // so were all before it
	always bool // it is compared even if it was lately: this is a scrub
}

// Read implements io.Reader.
func (o *Object) Read(p []byte) (int, error) {
	switch {
	case o.closed:
		return 0, os.ErrClosed
	case o.pos == o.end:
		return 0, io.EOF
	case len(p) == 0:
		return 0, nil
	}
	if o.head.kind == inlineBody {
		n := copy(p, o.inline)
		o.inline = o.inline[n:]
		o.advance(n)
		return n, nil
	}
	n, err := o.read(p)
	if err != nil {
		return 0, o.fail(err)
	}
	o.advance(n)
	return n, nil
}

func (o *Object) advance(n int) {
	o.pos += int64(n)
	o.s.opt.Metrics.served.Add(float64(n))
}

func (o *Object) fail(err error) error {
	if errors.Is(err, errDamaged) || errors.Is(err, os.ErrNotExist) {
		o.s.opt.Metrics.damaged.Inc()
		o.s.opt.Log.Error("an object is damaged", "err", err, "do", "put the object again, or restore the bucket from a backup")
	}
	return unavailable("objects.Get", err)
}

// read fills p from the file at pos, no further than its end, and checks the blocks that it completes.
func (o *Object) read(p []byte) (int, error) {
	if err := o.seek(); err != nil {
		return 0, err
	}
	left := min(o.end, o.start+o.length) - o.pos
	if int64(len(p)) > left {
		p = p[:left]
	}
	n, err := o.src.ReadAt(p, o.pos-o.start)
	if n == 0 && errors.Is(err, io.EOF) {
		return 0, fmt.Errorf("%w: its file is short", errDamaged)
	}
	if err != nil && !errors.Is(err, io.EOF) {
		return 0, err
	}
	return n, o.check(p[:n])
}

// seek opens the file that holds pos, if it is not open.
func (o *Object) seek() error {
	if o.src != nil && o.pos < o.start+o.length {
		return nil
	}
	if err := o.leave(); err != nil {
		return err
	}
	var i int
	i, o.start, o.length = o.head.at(o.pos)
	o.name = o.head.blobs[i]
	if err := o.compare(); err != nil {
		return err
	}
	var err error
	o.src, err = o.s.files.open(o.name)
	return err
}

// compare loads the checksums of a file that is to be compared with them.
func (o *Object) compare() error {
	o.blob, o.crc, o.sound, o.whole = nil, 0, false, o.pos == o.start
	if !o.always && o.s.checked.lately(o.name, o.s.opt.clock()) {
		return nil
	}
	v, err := o.s.get(blobKey(o.name))
	if err != nil {
		return err
	}
	b, err := readBlob(v)
	if err == nil && b.size != o.length {
		err = fmt.Errorf("%w: a file of %d bytes should have %d", errDamaged, b.size, o.length)
	}
	o.blob = b
	return err
}

// leave closes the open file.
func (o *Object) leave() error {
	if o.src == nil {
		return nil
	}
	err := o.src.Close()
	o.src = nil
	return err
}

// check takes p, which was read at pos, into the running checksum, and compares it at the end of a block.
func (o *Object) check(p []byte) error {
	if o.blob == nil {
		return nil
	}
	at := o.pos - o.start
	for len(p) > 0 {
		block := at / blockBytes
		if at%blockBytes == 0 {
			o.crc, o.sound = 0, true
		}
		end := min((block+1)*blockBytes, o.length)
		n := min(int64(len(p)), end-at)
		if o.sound {
			o.crc = crc32.Update(o.crc, castagnoli, p[:n])
			if at+n == end && o.crc != o.blob.crcs[block] {
				return fmt.Errorf("%w: block %d of file %s", errDamaged, block, o.name)
			}
		}
		at += n
		p = p[n:]
	}
	if at == o.length && o.whole {
		o.s.checked.mark(o.name, o.s.opt.clock())
	}
	return nil
}

// WriteTo implements io.WriterTo, with 256 KiB of memory.
func (o *Object) WriteTo(w io.Writer) (written int64, err error) {
	if o.closed {
		return 0, os.ErrClosed
	}
	if o.head.kind == inlineBody {
		n, err := w.Write(o.inline)
		o.inline = o.inline[n:]
		o.advance(n)
		return int64(n), err
	}
	s := scratches.Get().(*scratch)
	defer scratches.Put(s)
	for o.pos < o.end {
		n, err := o.Read(s.buf)
		if err != nil {
			return written, err
		}
		m, err := w.Write(s.buf[:n])
		written += int64(m)
		if err != nil {
			return written, err
		}
	}
	return written, nil
}

// File returns the operating system's file that holds all that is left to read, where that is so: n bytes from off, so that they
// can be sent without being copied. Checksums are not compared then. The file stays the object's and is valid until Close; its
// offset is the caller's. What is read there is not counted as read here.
func (o *Object) File() (f *os.File, off, n int64, ok bool) {
	if o.closed || o.head.kind == inlineBody || o.pos == o.end {
		return nil, 0, 0, false
	}
	if err := o.seek(); err != nil {
		return nil, 0, 0, false // reading tells it
	}
	f = asFile(o.src)
	if f == nil || o.end > o.start+o.length {
		return nil, 0, 0, false
	}
	return f, o.pos - o.start, o.end - o.pos, true
}

// Close frees the object. Calls after the first do nothing.
func (o *Object) Close() error {
	if o.closed {
		return nil
	}
	o.closed = true
	if o.head.kind != inlineBody {
		o.s.garbage.release(o.head.gen)
	}
	return o.leave()
}

// joinClose closes c, keeping an earlier error.
func joinClose(err error, c io.Closer) error { return errors.Join(err, c.Close()) }
