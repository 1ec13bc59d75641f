package objects

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/cockroachdb/pebble/v2"
)

const (
	sweepEvery = 30 * time.Second
	// orphanEvery is how many sweeps lie between two looks for orphans; the first sweep after a start looks.
	orphanEvery = 2880 // a day
)

// Sweep removes what is left of deleted buckets, aborts abandoned uploads and removes files that nothing names. Run calls it
// again and again; operators and tests may. It goes on after a failure and returns all of them.
func (s *Store) Sweep(ctx context.Context) error {
	errs := []error{s.emptyDying(ctx), s.abandon(ctx), s.garbage.collect(ctx)}
	if s.sweeps.Add(1)%orphanEvery == 1 {
		errs = append(errs, s.garbage.orphans(ctx))
	}
	var all usage
	for _, b := range s.all() {
		b.mu.Lock()
		all.objects += b.usage.objects
		all.uploads += b.usage.uploads
		all.bytes += b.usage.bytes
		b.mu.Unlock()
	}
	s.opt.Metrics.objects.Set(float64(all.objects))
	s.opt.Metrics.uploads.Set(float64(all.uploads))
	s.opt.Metrics.bytes.Set(float64(all.bytes))
	return unavailable("objects.Sweep", errors.Join(errs...))
}

// all returns the buckets of now, in the order in which they were made.
func (s *Store) all() []*bucket {
	s.mu.RLock()
	defer s.mu.RUnlock()
	out := slices.Collect(maps.Values(s.buckets))
	slices.SortFunc(out, func(a, b *bucket) int { return int(int64(a.num) - int64(b.num)) })
	return out
}

// emptyDying removes the contents of deleted buckets, step by step, and their last trace at the end.
func (s *Store) emptyDying(ctx context.Context) error {
	s.mu.RLock()
	nums := slices.Sorted(maps.Keys(s.dying))
	s.mu.RUnlock()
	for _, num := range nums {
		for _, class := range []byte{headClass, partClass} {
			for done := false; !done; {
				var err error
				if done, err = s.emptyStep(class, num); err != nil {
					return fmt.Errorf("empty bucket %d: %w", num, err)
				}
				if err := ctx.Err(); err != nil {
					return err
				}
			}
		}
		if err := s.forget(num); err != nil {
			return err
		}
	}
	return nil
}

// emptyStep removes some objects or parts of a deleted bucket, and gives their files to the garbage collection.
func (s *Store) emptyStep(class byte, num uint64) (done bool, err error) {
	// No lock: nobody else changes a deleted bucket.
	t := &tx{k: &bucket{s: s, num: num}, batch: s.db.NewBatch(), now: s.opt.clock()}
	defer t.batch.Close()
	n := 0
	err = s.scan(bucketKey(class, num), bucketEnd(class, num), func(k, v []byte) error {
		if n++; n > sweepStep {
			return errStop
		}
		must(t.batch.Delete(k, nil))
		return t.scrap(class, v)
	})
	if err != nil && !errors.Is(err, errStop) {
		return false, err
	}
	if n == 0 {
		return true, nil
	}
	return err == nil, t.batch.Commit(pebble.Sync)
}

// scrap gives up what the record of a deleted bucket names.
func (t *tx) scrap(class byte, v []byte) error {
	if class == headClass {
		h, err := readHead(v)
		if err == nil {
			t.discard(h)
		}
		return err
	}
	p, err := readPart(v)
	if err == nil {
		t.give(p.blob, []id{p.blob})
	}
	return err
}

// forget removes the last of a deleted bucket.
func (s *Store) forget(num uint64) error {
	batch := s.db.NewBatch()
	defer batch.Close()
	for _, class := range []byte{headClass, inlineClass, uploadClass, partClass} {
		must(batch.DeleteRange(bucketKey(class, num), bucketEnd(class, num), nil))
	}
	must(batch.Delete(binary.BigEndian.AppendUint64([]byte{dyingClass}, num), nil))
	if err := batch.Commit(pebble.Sync); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.dying, num)
	return nil
}
