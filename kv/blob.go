package kv

import (
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"strconv"
	"sync"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/zeebo/blake3"

	"edged/kv/replica"
)

type digest = [replica.DigestBytes]byte

// blobs keeps values that are too large for the store as files named by their BLAKE3 digest. A file is complete and durable
// before a record names it; it is removed some time after the last record that named it is durably gone.
type blobs struct {
	fs  vfs.FS
	dir string

	mu      sync.Mutex
	pins    map[digest]int // files that a write in progress relies on
	orphans []orphan       // perhaps unused, oldest first
	temps   uint64
	holds   int // backups in progress: nothing is removed
}

// orphan is a file that lost a user in the batch staged.
type orphan struct {
	digest digest
	staged uint64
	sinceM int64
}

// maxOrphans bounds the list; what does not fit is found by the scan at the next start.
const maxOrphans = 1 << 16

// writeCategory tells Pebble's disk statistics whose writes these are.
const writeCategory vfs.DiskWriteCategory = "kv-blob"

var errTooLarge = ErrValueTooLarge.New("kv.Put", "a value has up to 26214400 bytes")

func openBlobs(fs vfs.FS, dir string) (*blobs, error) {
	b := &blobs{fs: fs, dir: dir, pins: map[digest]int{}}
	for _, sub := range []string{b.tempDir(), b.partDir()} {
		if err := fs.MkdirAll(sub, 0o700); err != nil {
			return nil, err
		}
	}
	left, err := fs.List(b.tempDir())
	if err != nil {
		return nil, err
	}
	for _, name := range left { // writes that a crash cut off
		if err := fs.Remove(fs.PathJoin(b.tempDir(), name)); err != nil {
			return nil, err
		}
	}
	return b, errors.Join(b.syncDir(dir), b.syncDir(fs.PathDir(dir)))
}

func (b *blobs) tempDir() string { return b.fs.PathJoin(b.dir, "tmp") }
func (b *blobs) partDir() string { return b.fs.PathJoin(b.dir, "part") }

func (b *blobs) folder(d digest) string { return b.fs.PathJoin(b.dir, hex.EncodeToString(d[:1])) }

func (b *blobs) path(d digest) string { return b.fs.PathJoin(b.folder(d), hex.EncodeToString(d[:])) }

func (b *blobs) syncDir(dir string) error { return syncDir(b.fs, dir) }

func syncDir(fs vfs.FS, dir string) error {
	f, err := fs.OpenDir(dir)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}

// ingest streams r into a durable file and pins it; the caller unpins it once a record names it or will not. Over limit bytes
// it stops with value_too_large. Memory does not depend on the size.
func (b *blobs) ingest(r io.Reader, limit int64) (d digest, size int64, err error) {
	b.mu.Lock()
	b.temps++
	temp := b.fs.PathJoin(b.tempDir(), strconv.FormatUint(b.temps, 10))
	b.mu.Unlock()
	f, err := b.fs.Create(temp, writeCategory)
	if err != nil {
		return d, 0, err
	}
	h := blake3.New()
	size, err = io.CopyBuffer(struct{ io.Writer }{io.MultiWriter(f, h)}, struct{ io.Reader }{io.LimitReader(r, limit+1)}, make([]byte, 64<<10))
	if err == nil && size > limit {
		err = errTooLarge
	}
	if err == nil {
		err = f.Sync()
	}
	err = errors.Join(err, f.Close())
	if err == nil {
		h.Sum(d[:0])
		b.pin(d)
		if err = b.settle(temp, d); err != nil {
			b.unpin(d)
		}
	}
	if err != nil {
		return d, 0, errors.Join(err, b.fs.Remove(temp))
	}
	return d, size, nil
}

// settle gives a complete, synced file its name, durably.
func (b *blobs) settle(temp string, d digest) error {
	folder := b.folder(d)
	if _, err := b.fs.Stat(folder); err != nil {
		if err := b.fs.MkdirAll(folder, 0o700); err != nil {
			return err
		}
		if err := b.syncDir(b.dir); err != nil {
			return err
		}
	}
	if err := b.fs.Rename(temp, b.path(d)); err != nil {
		return err
	}
	return b.syncDir(folder)
}

func (b *blobs) pin(d digest) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.pins[d]++
}

func (b *blobs) unpin(d digest) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.pins[d]--; b.pins[d] <= 0 {
		delete(b.pins, d)
	}
}

// has reports whether the file of a digest is here, with this size.
func (b *blobs) has(d digest, size uint64) bool {
	info, err := b.fs.Stat(b.path(d))
	return err == nil && uint64(info.Size()) == size
}

// open returns a reader of a file that checks the digest as it goes: a damaged file gives an error at its end, never a
// silent wrong value. The file stays readable after it was removed.
func (b *blobs) open(d digest, size uint64) (*blobReader, error) {
	f, err := b.fs.Open(b.path(d), vfs.SequentialReadsOption)
	if err != nil {
		return nil, err
	}
	return &blobReader{file: f, hash: blake3.New(), left: int64(size), want: d}, nil
}

type blobReader struct {
	file vfs.File
	hash *blake3.Hasher
	left int64
	want digest
}

var errDamaged = errors.New("value file is damaged")

// Read implements io.Reader.
func (r *blobReader) Read(p []byte) (int, error) {
	if r.left == 0 {
		return 0, r.end()
	}
	if int64(len(p)) > r.left {
		p = p[:r.left]
	}
	n, err := r.file.Read(p)
	r.hash.Write(p[:n])
	r.left -= int64(n)
	if errors.Is(err, io.EOF) && r.left > 0 {
		err = fmt.Errorf("%w: %d bytes are missing", errDamaged, r.left)
	} else if errors.Is(err, io.EOF) {
		err = nil
	}
	if err == nil && r.left == 0 {
		if e := r.end(); e != io.EOF {
			err = e
		}
	}
	return n, err
}

func (r *blobReader) end() error {
	var got digest
	if r.hash.Sum(got[:0]); got != r.want {
		return errDamaged
	}
	return io.EOF
}

// Close implements io.Closer.
func (r *blobReader) Close() error { return r.file.Close() }
