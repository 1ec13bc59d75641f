package objects

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"time"

	"github.com/cockroachdb/pebble/v2"
	"github.com/zeebo/blake3"
)

// Damage is a body that is not what was stored.
type Damage struct {
	UID, Key string
	ETag     string // of the object as it should be
	Reason   string // for people
}

// ScrubOptions say what is scrubbed and how fast.
type ScrubOptions struct {
	UID    string       // one bucket, "" means all
	Rate   int64        // bytes per second, 0 means as fast as the disk allows
	Report func(Damage) // called for each damaged object, from the caller's goroutine; nil for none
}

// ScrubResult is what a scrub has seen.
type ScrubResult struct {
	Objects, Bytes, Damaged int64
}

// Scrub reads every object and compares it with its checksums: blocks of files with their CRC32C, small bodies with their etag.
// Objects that are replaced meanwhile are read as they were or left out. Damage is reported, counted and logged; nothing is
// removed or repaired. Errors: backend_unavailable, the context's; the result says how far it came.
func (s *Store) Scrub(ctx context.Context, opt ScrubOptions) (ScrubResult, error) {
	const op = "objects.Scrub"
	from, to := []byte{headClass}, []byte{headClass + 1}
	if opt.UID != "" {
		k, err := s.find(op, opt.UID)
		if err != nil {
			return ScrubResult{}, err
		}
		from, to = bucketKey(headClass, k.num), bucketEnd(headClass, k.num)
	}
	r := &scrub{s: s, opt: opt}
	for from != nil {
		var err error
		if from, err = r.step(ctx, from, to); err != nil {
			return r.result, unavailable(op, err)
		}
	}
	return r.result, nil
}

// scrub is a scrub under way.
type scrub struct {
	s      *Store
	opt    ScrubOptions
	result ScrubResult
	bucket *bucket // of the object that was read last

	began time.Time // with paced, how much was read since: the rate is held against it
	paced int64
}

// scrubStep is how many objects are read from the index at once, so that no iterator stays open for long.
const scrubStep = 100

// step scrubs some objects and returns where to go on, nil at the end.
func (r *scrub) step(ctx context.Context, from, to []byte) (next []byte, err error) {
	var keys [][]byte
	err = r.s.scan(from, to, func(k, _ []byte) error {
		if len(keys) == scrubStep {
			next = append([]byte{}, k...)
			return errStop
		}
		keys = append(keys, append([]byte{}, k...))
		return nil
	})
	if err != nil && !errors.Is(err, errStop) {
		return nil, err
	}
	for _, key := range keys {
		if k := r.bucketOf(key); k != nil {
			if err := r.object(ctx, k, string(key[bucketKeyLen:])); err != nil {
				return nil, err
			}
		}
	}
	return next, nil
}

// bucketOf returns the bucket of a head's key, nil if it was deleted.
func (r *scrub) bucketOf(key []byte) *bucket {
	if len(key) <= bucketKeyLen {
		return nil
	}
	num := binary.BigEndian.Uint64(key[1:])
	if r.bucket == nil || r.bucket.num != num {
		r.bucket = r.s.byNumber(num)
	}
	return r.bucket
}

// object scrubs what a key holds now.
func (r *scrub) object(ctx context.Context, k *bucket, key string) error {
	h, err := k.head(key)
	if err != nil {
		r.damage(k, key, "", err)
		return ctx.Err()
	}
	if h == nil {
		return nil
	}
	o, err := k.open(key, h, Range{0, h.size})
	if err == nil && o == nil {
		return nil // replaced
	}
	if err == nil {
		o.always = true
		err = r.read(ctx, o)
		err = joinClose(err, o)
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	r.result.Objects++
	r.result.Bytes += h.size
	if err != nil {
		r.damage(k, key, h.etag(), err)
	}
	return nil
}

// read reads an object to its end; reading compares the blocks.
func (r *scrub) read(ctx context.Context, o *Object) error {
	if o.head.kind == inlineBody {
		var got sum
		hash := blake3.New()
		hash.Write(o.inline)
		if hash.Sum(got[:0]); got != o.head.sum {
			return fmt.Errorf("%w: the body does not have its etag", errDamaged)
		}
		return r.pace(ctx, o.Size)
	}
	sc := scratches.Get().(*scratch)
	defer scratches.Put(sc)
	for o.pos < o.end {
		n, err := o.read(sc.buf)
		if err != nil {
			return err
		}
		o.pos += int64(n)
		r.s.opt.Metrics.scrubbed.Add(float64(n))
		if err := r.pace(ctx, int64(n)); err != nil {
			return err
		}
	}
	return nil
}

// pace waits until n more bytes are within the rate.
func (r *scrub) pace(ctx context.Context, n int64) error {
	if r.opt.Rate <= 0 {
		return ctx.Err()
	}
	if r.paced == 0 || time.Since(r.began) > time.Minute { // what was not used is not made up for later
		r.began, r.paced = time.Now(), 0
	}
	r.paced += n
	due := r.began.Add(time.Duration(float64(r.paced) / float64(r.opt.Rate) * float64(time.Second)))
	return wait(ctx, time.Until(due))
}

func wait(ctx context.Context, d time.Duration) error {
	if d <= 0 {
		return ctx.Err()
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C:
		return nil
	}
}

func (r *scrub) damage(k *bucket, key, etag string, err error) {
	r.result.Damaged++
	r.s.opt.Metrics.damaged.Inc()
	r.s.opt.Log.Error("an object is damaged", "bucket", k.uid, "err", err, "do", "put the object again, or restore the bucket from a backup")
	if r.opt.Report != nil {
		r.opt.Report(Damage{UID: k.uid, Key: key, ETag: etag, Reason: err.Error()})
	}
}

const (
	// scrubEvery is the time from the beginning of one background scrub to that of the next; a longer one takes as long as it takes.
	scrubEvery = 24 * time.Hour
	scrubRate  = 8 << 20 // bytes per second of the background scrub
)

// scrubForever scrubs everything in the background, again and again. It goes on after a restart where it was.
func (s *Store) scrubForever(ctx context.Context) {
	for ctx.Err() == nil {
		began := time.Now()
		if err := s.scrubOnce(ctx); err != nil && ctx.Err() == nil {
			s.opt.Log.Warn("the scrub stopped and begins again", "err", err)
		}
		if wait(ctx, scrubEvery-time.Since(began)) != nil {
			return
		}
	}
}

func (s *Store) scrubOnce(ctx context.Context) error {
	from, err := s.get(scrubbedKey)
	if err != nil {
		return err
	}
	if len(from) == 0 || from[0] != headClass {
		from = []byte{headClass}
	}
	r := &scrub{s: s, opt: ScrubOptions{Rate: scrubRate}}
	for from != nil {
		if from, err = r.step(ctx, from, []byte{headClass + 1}); err != nil {
			return err
		}
		if err := s.db.Set(scrubbedKey, from, pebble.NoSync); err != nil {
			return err
		}
	}
	return nil
}
