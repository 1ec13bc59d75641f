package objects

import (
	"context"
	"encoding/binary"

	"github.com/cockroachdb/pebble/v2"

	"edged/internal/fault"
)

// Create makes an empty bucket, durably. epoch is that of its home (1 on a single node). A bucket that is here is kept with its
// objects, and takes a greater epoch; an older one is a Conflict.
func (s *Store) Create(ctx context.Context, uid string, epoch uint64) error {
	const op = "objects.Create"
	if err := checkUID(op, uid); err != nil {
		return err
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	s.catalog.Lock()
	defer s.catalog.Unlock()
	b := s.bucket(uid)
	if b != nil && b.epoch == epoch {
		return nil
	}
	if b != nil && b.epoch > epoch {
		return fault.Newf(fault.Conflict, op, "bucket %s has a newer home", uid)
	}
	if b == nil {
		if err := s.opt.Space.Check(); err != nil {
			return unavailable(op, err)
		}
		b = &bucket{s: s, uid: uid, num: s.last + 1, created: s.opt.clock()}
	}
	batch := s.db.NewBatch()
	defer batch.Close()
	must(batch.Set(catalogKey(uid), appendCatalog(nil, catalog{num: b.num, epoch: epoch, created: b.created}), nil))
	must(batch.Set(lastNumberKey, binary.BigEndian.AppendUint64(nil, max(s.last, b.num)), nil))
	if err := batch.Commit(pebble.Sync); err != nil {
		return unavailable(op, err)
	}
	s.last = max(s.last, b.num)
	b.epoch = epoch
	s.mu.Lock()
	s.buckets[uid] = b
	s.mu.Unlock()
	return nil
}

// Delete deletes a bucket with all its objects and uploads, durably: once it returns, nothing of it is visible, and writes that
// are under way store nothing. The sweep removes the contents, and goes on after a crash. What is not here is no error.
func (s *Store) Delete(ctx context.Context, uid string) error {
	const op = "objects.Delete"
	if err := ctx.Err(); err != nil {
		return err
	}
	s.catalog.Lock()
	defer s.catalog.Unlock()
	b := s.bucket(uid)
	if b == nil {
		return nil
	}
	if err := s.end(b); err != nil {
		return unavailable(op, err)
	}
	s.mu.Lock()
	delete(s.buckets, uid)
	s.dying[b.num] = true
	s.mu.Unlock()
	return nil
}

// end makes the end of a bucket durable.
func (s *Store) end(b *bucket) error {
	b.mu.Lock() // no change is decided before and applied after the deletion: who writes into this bucket waits, and is refused
	defer b.mu.Unlock()
	batch := s.db.NewBatch()
	defer batch.Close()
	must(batch.Delete(catalogKey(b.uid), nil))
	must(batch.Delete(bucketKey(usageClass, b.num), nil))
	must(batch.Set(bucketKey(dyingClass, b.num), []byte(b.uid), nil))
	if err := batch.Commit(pebble.Sync); err != nil {
		return err
	}
	b.gone = true
	return nil
}

// Exists reports whether a bucket is here.
func (s *Store) Exists(uid string) bool {
	_, err := s.find("objects.Exists", uid)
	return err == nil
}

// must holds what cannot fail: changes of a batch in memory.
func must(err error) {
	if err != nil {
		panic("objects: " + err.Error())
	}
}
