package artifact

import (
	"context"
	"crypto/sha256"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/cockroachdb/pebble/v2"

	"edged/internal/disk"
	"edged/internal/fault"
	"edged/internal/faultpoint"
)

// Blob is the stored bytes of one digest, open for reading. It stays readable, unchanged, until Close, also if the blob
// is collected meanwhile.
type Blob struct {
	*os.File       // read-only
	Size     int64 // bytes
}

// Open opens the blob with digest for the node's own use: it does not ask who holds it. The error is NotFound if the
// node does not have it. The caller closes the blob.
func (s *Store) Open(digest Digest) (*Blob, error) {
	f, err := os.Open(s.blobPath(digest))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fault.New(fault.NotFound, "artifact.Open", "no such artifact")
	}
	if err != nil {
		return nil, unavailable("artifact.Open", err)
	}
	info, err := f.Stat()
	if err != nil {
		f.Close()
		return nil, unavailable("artifact.Open", err)
	}
	return &Blob{File: f, Size: info.Size()}, nil
}

// Holds reports whether tenant holds the blob with digest.
func (s *Store) Holds(tenant string, digest Digest) (bool, error) {
	if err := checkNames(tenant); err != nil {
		return false, err
	}
	_, closer, err := s.db.Get(holdingKey(digest, tenant))
	if errors.Is(err, pebble.ErrNotFound) {
		return false, nil
	}
	if err != nil {
		return false, unavailable("artifact.Holds", err)
	}
	return true, unavailable("artifact.Holds", closer.Close())
}

// Put stores what body holds for tenant and makes it durable. fresh says whether the tenant did not hold it before. The
// errors: ErrDigest if the bytes do not have the digest, ErrQuota if
// the tenant may hold no more, TooLarge beyond MaxBlobBytes, Canceled if body fails. Memory
// use does not depend on the size.
func (s *Store) Put(ctx context.Context, tenant string, digest Digest, body io.Reader) (fresh bool, err error) {
	if err := checkNames(tenant); err != nil {
		return false, err
	}
	in, err := s.receive(ctx, body, MaxBlobBytes)
	if err != nil {
		return false, err
	}
	defer in.discard()
	if in.digest != digest {
		return false, ErrDigest.Newf("artifact.Put", "the bytes have the SHA-256 %s", in.digest)
	}
	mu := s.stripe(digest)
	mu.Lock()
	defer mu.Unlock()
	held, err := s.Holds(tenant, digest)
	if err != nil {
		return false, err
	}
	if !held {
		if err := s.usage.add(tenant, in.size); err != nil {
			return false, err
		}
	}
	if err = in.place(); err == nil {
		err = unavailable("artifact.Put", s.db.Set(holdingKey(digest, tenant), encodeTime(time.Now()), pebble.Sync))
	}
	if err != nil && !held {
		s.usage.sub(tenant, in.size)
	}
	return !held, err
}

func (s *Store) stripe(d Digest) *sync.Mutex { return &s.stripes[int(d[0])%len(s.stripes)] }

func (s *Store) blobPath(d Digest) string { return filepath.Join(s.blobDir(), d.String()) }

// incoming is a blob that has arrived but has no name yet.
type incoming struct {
	store  *Store
	path   string // of the temporary file, "" once placed
	digest Digest
	size   int64
}

var errBlobTooLarge = fault.New(fault.TooLarge, "artifact.receive", "an artifact has at most 16777216 bytes")

// receive copies body into a temporary file of at most limit bytes, digests it and makes it durable. Each of tees sees
// the same bytes and may refuse them.
func (s *Store) receive(ctx context.Context, body io.Reader, limit int64, tees ...io.Writer) (*incoming, error) {
	if err := s.opt.Space.Check(); err != nil {
		return nil, err
	}
	f, err := os.CreateTemp(s.tempDir(), "")
	if err != nil {
		return nil, unavailable("artifact.receive", err)
	}
	in := &incoming{store: s, path: f.Name()}
	sum := sha256.New()
	w := io.MultiWriter(append([]io.Writer{sum, diskWriter{f}}, tees...)...)
	in.size, err = copyBounded(ctx, w, body, limit)
	if err == nil {
		sum.Sum(in.digest[:0])
		err = unavailable("artifact.receive", f.Sync())
	}
	if cerr := f.Close(); err == nil {
		err = unavailable("artifact.receive", cerr)
	}
	if err != nil {
		in.discard()
		return nil, err
	}
	return in, nil
}

// diskWriter marks write errors as this node's, apart from those of the reader.
type diskWriter struct{ f *os.File }

func (w diskWriter) Write(p []byte) (int, error) {
	n, err := w.f.Write(p)
	return n, unavailable("artifact.receive", err)
}

// copyBounded copies at most limit bytes. A reader's error that has no code becomes Canceled: the sender gave up.
func copyBounded(ctx context.Context, w io.Writer, r io.Reader, limit int64) (int64, error) {
	buf := make([]byte, 32<<10)
	var total int64
	for {
		if err := ctx.Err(); err != nil {
			return total, err
		}
		n, err := r.Read(buf)
		if total+int64(n) > limit {
			return total, errBlobTooLarge
		}
		if n > 0 {
			total += int64(n)
			if _, werr := w.Write(buf[:n]); werr != nil {
				return total, werr
			}
		}
		if err == io.EOF {
			return total, nil
		}
		if err != nil {
			if fault.CodeOf(err) == fault.Internal {
				err = fault.Wrap(fault.Canceled, "artifact.receive", err)
			}
			return total, err
		}
	}
}

// place gives the blob its name, durably; the caller holds its stripe. A blob that is there already is replaced by the
// same bytes, which were just verified: that heals a file that rotted.
func (in *incoming) place() error {
	if err := os.Rename(in.path, in.store.blobPath(in.digest)); err != nil {
		return unavailable("artifact.place", err)
	}
	in.path = ""
	faultpoint.Hit("artifact.placed")
	return disk.SyncDir(in.store.blobDir())
}

// discard removes the temporary file unless it was placed.
func (in *incoming) discard() {
	if in.path == "" {
		return
	}
	if err := os.Remove(in.path); err != nil {
		in.store.opt.Log.Warn("temporary artifact stays until the next start", "err", err)
	}
	in.path = ""
}
