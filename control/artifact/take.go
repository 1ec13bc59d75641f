package artifact

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"time"

	"edged/internal/fault"
)

// Take stores what body gives as the blob with this digest and size, for the node's own use, and returns when it is durable. Nobody
// holds it by that: Sweep collects it after Grace unless it is pinned, held or referred to. The errors: ErrDigest if the bytes are
// not those of the digest, TooLarge for more than size bytes or a size over MaxBlobBytes, those of body.
func (s *Store) Take(ctx context.Context, digest Digest, size int64, body io.Reader) error {
	if size < 0 || size > MaxBlobBytes {
		return errBlobTooLarge
	}
	in, err := s.receive(ctx, body, size)
	if err != nil {
		return err
	}
	defer in.discard()
	if in.digest != digest || in.size != size {
		return ErrDigest.Newf("artifact.Take", "%d bytes came, with the SHA-256 %s", in.size, in.digest)
	}
	mu := s.stripe(digest)
	mu.Lock()
	defer mu.Unlock()
	return in.place()
}

// Has reports whether the node has a blob of this digest and size. Its bytes are not read.
func (s *Store) Has(digest Digest, size int64) bool {
	info, err := os.Stat(s.blobPath(digest))
	return err == nil && info.Size() == size
}

// Pin keeps a blob, that is there or that will come, from being collected until Unpin. Pins are counted, and not kept over a restart:
// whoever needs blobs pins them before the first Sweep.
func (s *Store) Pin(digest Digest) {
	mu := s.stripe(digest)
	mu.Lock() // a sweep has removed it by now, or sees the pin
	defer mu.Unlock()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.pins[digest]++
}

// Unpin takes one Pin back. A blob that nothing needs any more is collected from Grace later on.
func (s *Store) Unpin(digest Digest) error {
	mu := s.stripe(digest)
	mu.Lock()
	defer mu.Unlock()
	s.mu.Lock()
	s.pins[digest]--
	last := s.pins[digest] <= 0
	if last {
		delete(s.pins, digest)
	}
	s.mu.Unlock()
	if !last {
		return nil
	}
	now := time.Now() // what nobody holds ages from its file's time
	if err := os.Chtimes(s.blobPath(digest), now, now); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fault.Wrap(fault.Unavailable, "artifact.Unpin", err)
	}
	return nil
}

func (s *Store) pinned(d Digest) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.pins[d] > 0
}
