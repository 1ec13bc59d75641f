package artifact

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"time"

	"github.com/cockroachdb/pebble/v2"
)

// Sweep collects what nothing needs at the time now: holdings without a reference that are older than Grace, and blobs
// that nobody holds or has pinned. It never touches a blob that a live Resource, or another tenant, has. It may run beside every other
// method and returns how many blobs it removed; an error ends it early, and the next one goes on.
func (s *Store) Sweep(ctx context.Context, now time.Time) (removed int, err error) {
	idle, err := s.idleHoldings(ctx, now)
	if err != nil {
		return 0, err
	}
	for _, h := range idle {
		if err := ctx.Err(); err != nil {
			return removed, err
		}
		n, err := s.collect(h, now)
		removed += n
		if err != nil {
			return removed, err
		}
	}
	n, err := s.sweepOrphans(ctx, now)
	return removed + n, err
}

// holding is who holds what, for a sweep.
type holding struct {
	digest Digest
	tenant string
}

// idleHoldings lists the holdings that were old at now; whether they are referred to is asked when they are collected.
func (s *Store) idleHoldings(ctx context.Context, now time.Time) ([]holding, error) {
	it, err := s.db.NewIter(&pebble.IterOptions{LowerBound: []byte{holdingPrefix}, UpperBound: []byte{holdingPrefix + 1}})
	if err != nil {
		return nil, unavailable("artifact.Sweep", err)
	}
	defer it.Close()
	var idle []holding
	for ok := it.First(); ok && ctx.Err() == nil; ok = it.Next() {
		key := it.Key()
		if len(key) < 35 || now.Sub(decodeTime(it.Value())) < Grace {
			continue
		}
		h := holding{digest: Digest(key[1:33]), tenant: string(key[35:])}
		if live, err := s.any(referencesPrefix(h.digest, h.tenant)); err != nil {
			return nil, unavailable("artifact.Sweep", err)
		} else if !live {
			idle = append(idle, h)
		}
	}
	return idle, errors.Join(unavailable("artifact.Sweep", it.Error()), ctx.Err())
}

// collect ends one holding if it is still idle, and removes the blob if it was the last.
func (s *Store) collect(h holding, now time.Time) (removed int, err error) {
	mu := s.stripe(h.digest)
	mu.Lock()
	defer mu.Unlock()
	key := holdingKey(h.digest, h.tenant)
	b, closer, err := s.db.Get(key)
	if errors.Is(err, pebble.ErrNotFound) {
		return 0, nil
	}
	if err != nil {
		return 0, unavailable("artifact.Sweep", err)
	}
	since := decodeTime(b)
	if err := closer.Close(); err != nil {
		return 0, unavailable("artifact.Sweep", err)
	}
	live, err := s.any(referencesPrefix(h.digest, h.tenant))
	if err != nil || live || now.Sub(since) < Grace {
		return 0, unavailable("artifact.Sweep", err)
	}
	if err := s.db.Delete(key, pebble.Sync); err != nil {
		return 0, unavailable("artifact.Sweep", err)
	}
	s.usage.sub(h.tenant, s.sizeOf(h.digest))
	return s.removeUnheldLocked(h.digest)
}

// removeUnheldLocked removes the blob if no tenant holds it and the node does not need it. The caller holds its stripe.
func (s *Store) removeUnheldLocked(d Digest) (removed int, err error) {
	if s.pinned(d) {
		return 0, nil
	}
	held, err := s.any(append([]byte{holdingPrefix}, d[:]...))
	if err != nil || held {
		return 0, unavailable("artifact.Sweep", err)
	}
	err = os.Remove(s.blobPath(d))
	switch {
	case err == nil:
		return 1, nil
	case errors.Is(err, fs.ErrNotExist):
		return 0, nil
	}
	return 0, unavailable("artifact.Sweep", err)
}

// sweepOrphans removes old blobs that got their name but, because of a crash, no holding.
func (s *Store) sweepOrphans(ctx context.Context, now time.Time) (removed int, err error) {
	dir, err := os.Open(s.blobDir())
	if err != nil {
		return 0, unavailable("artifact.Sweep", err)
	}
	defer dir.Close()
	for {
		entries, err := dir.ReadDir(256) // a few at a time: there may be millions
		if err == io.EOF {
			return removed, nil
		}
		if err != nil {
			return removed, unavailable("artifact.Sweep", err)
		}
		for _, e := range entries {
			if err := ctx.Err(); err != nil {
				return removed, err
			}
			d, ok := ParseDigest(e.Name())
			if !ok {
				continue // not ours
			}
			n, err := s.sweepOrphan(e, d, now)
			removed += n
			if err != nil {
				return removed, err
			}
		}
	}
}

func (s *Store) sweepOrphan(e fs.DirEntry, d Digest, now time.Time) (removed int, err error) {
	held, err := s.any(append([]byte{holdingPrefix}, d[:]...))
	if err != nil || held {
		return 0, unavailable("artifact.Sweep", err)
	}
	info, err := e.Info()
	if err != nil || now.Sub(info.ModTime()) < Grace {
		return 0, nil // gone meanwhile, or young
	}
	mu := s.stripe(d)
	mu.Lock()
	defer mu.Unlock()
	if info, err = os.Stat(s.blobPath(d)); err != nil || now.Sub(info.ModTime()) < Grace {
		return 0, nil // it came anew, or was let go, since it was listed
	}
	return s.removeUnheldLocked(d)
}
