package objects

import (
	"github.com/cockroachdb/pebble/v2"
)

// tx is one change of a bucket: decided, applied and made durable as a whole.
type tx struct {
	k     *bucket
	batch *pebble.Batch
	usage usage
	now   int64
}

// change runs fn with the bucket's lock held and makes what fn put into the batch visible at once and durable before it returns.
// Many changes share one fsync: the lock is not held while waiting for it. A change that decides to do nothing waits until what
// it decided upon is durable. If fn fails, nothing happens.
func (k *bucket) change(op string, fn func(*tx) error) error {
	t := &tx{k: k, batch: k.s.db.NewBatch(), now: k.s.opt.clock()}
	defer t.batch.Close()
	k.mu.Lock()
	err := t.decideLocked(op, fn)
	written := !t.batch.Empty() // asked before Pebble may take the contents
	if err == nil && written {
		if err = k.s.db.ApplyNoSyncWait(t.batch, pebble.Sync); err == nil {
			k.usage = t.usage
			k.used.Store(t.usage.bytes)
			k.unsynced.Add(1)
		}
	}
	k.mu.Unlock()
	switch {
	case err != nil:
	case written:
		err = t.batch.SyncWait()
		k.unsynced.Add(-1)
	case k.unsynced.Load() > 0:
		err = k.s.sync()
	}
	return unavailable(op, err)
}

func (t *tx) decideLocked(op string, fn func(*tx) error) error {
	k := t.k
	if k.gone {
		return missing(op, k.uid)
	}
	t.usage = k.usage
	if err := fn(t); err != nil {
		return err
	}
	if t.usage == k.usage {
		return nil
	}
	if q := k.s.opt.QuotaBytes; q > 0 && t.usage.bytes > q && t.usage.bytes > k.usage.bytes {
		return overQuota(op)
	}
	must(t.batch.Set(bucketKey(usageClass, k.num), appendUsage(nil, t.usage), nil))
	return nil
}

func overQuota(op string) error { return ErrUnavailable.New(op, "the bucket's quota is used up") }

// room asks whether n more bytes may come in while they are on their way; the commit asks again.
func (k *bucket) room(op string, n int64) error {
	if err := k.s.opt.Space.Check(); err != nil {
		return unavailable(op, err)
	}
	if q := k.s.opt.QuotaBytes; q > 0 && n > q-k.used.Load() {
		return overQuota(op)
	}
	return nil
}

func (h *head) weight(key string) int64 { return h.size + int64(len(key)) + overheadBytes }

func (u *upload) weight() int64 { return int64(len(u.key)) + overheadBytes }

func (p *part) weight() int64 { return p.size + overheadBytes }

// drop takes the body of an object that is replaced or deleted out of use. The caller writes the key.
func (t *tx) drop(key string, h *head) {
	t.usage.objects--
	t.usage.bytes -= h.weight(key)
	t.discard(h)
}

// discard gives the body of a head up.
func (t *tx) discard(h *head) {
	if h.kind == inlineBody {
		must(t.batch.Delete(inlineKey(t.k.num, h.gen), nil))
		return
	}
	t.give(h.gen, h.blobs)
}

// give leaves files to the garbage collection, under the generation that readers hold.
func (t *tx) give(gen id, blobs []id) {
	must(t.batch.Set(garbageKey(t.now, gen), appendGarbage(nil, blobs), nil))
}

// replace makes h the object of key, in place of old, nil if there is none.
func (t *tx) replace(key string, old, h *head) {
	if old != nil {
		t.drop(key, old)
	}
	t.usage.objects++
	t.usage.bytes += h.weight(key)
	must(t.batch.Set(headKey(t.k.num, key), appendHead(nil, h), nil))
}
