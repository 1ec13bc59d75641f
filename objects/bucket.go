package objects

import (
	"context"
	"sync"
	"sync/atomic"
)

// Info is what is known of an object beside its body.
type Info struct {
	Key         string
	ETag        string // a strong validator, 64 to 70 characters
	Size        int64
	ContentType string // "" if none was given
	UploadedMs  int64  // Unix milliseconds
}

// Bucket is the door to one bucket. Safe for concurrent use. Every method answers backend_unavailable when the bucket is not here.
type Bucket struct {
	s   *Store
	uid string
}

// Bucket returns the door to a bucket, which need not exist.
func (s *Store) Bucket(uid string) *Bucket { return &Bucket{s: s, uid: uid} }

// bucket is a bucket in memory.
type bucket struct {
	s       *Store
	uid     string
	num     uint64
	created int64
	epoch   uint64 // guarded by Store.catalog

	mu    sync.Mutex // guards the fields below; held while a change is decided and applied, not while it is synced
	usage usage
	gone  bool // deleted: nothing may be written any more

	used     atomic.Int64 // usage.bytes, for whoever only looks
	pending  atomic.Int64 // bytes of bodies on their way
	unsynced atomic.Int64 // changes that are visible and not durable yet
}

// Head returns what is known of an object; ok is false if there is none (objects §3).
func (b *Bucket) Head(ctx context.Context, key string) (info Info, ok bool, err error) {
	const op = "objects.Head"
	defer func() { b.s.opt.Metrics.calls["head"].Count(err) }()
	k, err := b.begin(ctx, op, key)
	if err != nil {
		return Info{}, false, err
	}
	h, err := k.head(key)
	if err != nil || h == nil {
		return Info{}, false, unavailable(op, err)
	}
	return h.info(key), true, nil
}

// begin checks what every call about a key checks first.
func (b *Bucket) begin(ctx context.Context, op, key string) (*bucket, error) {
	if err := checkKey(op, key); err != nil {
		return nil, err
	}
	if err := ctx.Err(); err != nil {
		return nil, unavailable(op, err)
	}
	return b.s.find(op, b.uid)
}

// head returns the object of a key, nil if there is none.
func (k *bucket) head(key string) (*head, error) {
	v, err := k.s.get(headKey(k.num, key))
	if err != nil || v == nil {
		return nil, err
	}
	return readHead(v)
}

func (h *head) info(key string) Info {
	return Info{Key: key, ETag: h.etag(), Size: h.size, ContentType: h.ctype, UploadedMs: h.uploaded}
}

// Delete removes an object; an absent one is no error. When it returns nil, the removal is durable.
func (b *Bucket) Delete(ctx context.Context, key string) (err error) {
	const op = "objects.Delete"
	defer func() { b.s.opt.Metrics.calls["delete"].Count(err) }()
	k, err := b.begin(ctx, op, key)
	if err != nil {
		return err
	}
	return k.change(op, func(t *tx) error {
		h, err := k.head(key)
		if err != nil || h == nil {
			return err
		}
		t.drop(key, h)
		must(t.batch.Delete(headKey(k.num, key), nil))
		return nil
	})
}
