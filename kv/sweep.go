package kv

import (
	"context"
	"encoding/binary"
	"errors"
	"time"

	"edged/kv/replica"
)

// sweepEvery is the time between sweeps.
const sweepEvery = 30 * time.Second

// sweepStep bounds the changes of one batch of a sweep, so that writers wait for it only shortly.
const sweepStep = 1000

// Sweep removes what has expired, tombstones that nobody can need, what is left of deleted namespaces, and value files that
// nobody names. Run calls it again and again; operators and tests may. It goes on after a failure and returns all of them.
func (s *Store) Sweep(ctx context.Context) error {
	errs := []error{
		s.sweepDying(ctx),
		s.sweepExpired(ctx),
		s.sweepDead(ctx),
		s.sweepBlobs(),
	}
	var records, bytes int64
	s.ledger.spaces.Range(func(_, v any) bool {
		sp := v.(*space)
		records += sp.records.Load()
		bytes += sp.bytes.Load()
		return true
	})
	s.opt.Metrics.records.Set(float64(records))
	s.opt.Metrics.bytes.Set(float64(bytes))
	return unavailable("kv.Sweep", errors.Join(errs...))
}

// due is an entry of a time index whose instant has come.
type due struct {
	place []byte
	lseq  uint64
}

// duesAfter returns up to sweepStep entries of a time index up to an instant, beginning behind from, and where to go on;
// next is nil at the end.
func (l *ledger) duesAfter(prefix byte, untilMs int64, from []byte) (dues []due, next []byte, err error) {
	err = scan(l.db, []byte{prefix}, from, func(k, v []byte) (bool, error) {
		if len(k) != 17 {
			return false, errors.New("time index entry is malformed")
		}
		if ms := binary.BigEndian.Uint64(k[1:]); ms > uint64(max(untilMs, 0)) {
			return false, nil
		}
		if len(dues) == sweepStep {
			next = append([]byte{}, k...)
			return false, nil
		}
		dues = append(dues, due{append([]byte{}, v...), binary.BigEndian.Uint64(k[9:])})
		return true, nil
	})
	return dues, next, err
}

// sweepIndex runs step over all due entries of a time index, in batches.
func (s *Store) sweepIndex(ctx context.Context, prefix byte, untilMs int64, step func(*tx, []due) error) error {
	var from []byte
	for {
		dues, next, err := s.ledger.duesAfter(prefix, untilMs, from)
		if err != nil || len(dues) == 0 {
			return err
		}
		if err := s.commits.do(0, func(t *tx) error { return step(t, dues) }); err != nil {
			return err
		}
		if from = next; from == nil {
			return nil
		}
		if err := ctx.Err(); err != nil {
			return err
		}
	}
}

// sweepExpired takes the value out of records whose instant has passed; what stays counts as a tombstone.
func (s *Store) sweepExpired(ctx context.Context) error {
	return s.sweepIndex(ctx, prefixExpiry, s.opt.clock(), func(t *tx, dues []due) error {
		n, err := t.expire(dues)
		s.opt.Metrics.swept["expired"].Add(float64(n))
		return err
	})
}

func (t *tx) expire(dues []due) (n int, err error) {
	for _, d := range dues {
		rec, ok, err := t.get(d.place)
		if err != nil {
			return n, err
		}
		if !ok || rec.LSeq != d.lseq || rec.Dead() || !t.l.expired(&rec, t.now) {
			continue // replaced since the look
		}
		sp := t.l.spaceOf(d.place)
		if err := t.unlist(sp, d.place, &rec); err != nil {
			return n, err
		}
		gone := replica.Record{Version: rec.Version, LSeq: rec.LSeq, Flags: replica.Expires | replica.Gone, Expires: rec.Expires}
		if err := t.put(sp, d.place, gone); err != nil {
			return n, err
		}
		n++
	}
	return n, nil
}

// sweepDead forgets tombstones over their grace that nobody can need.
func (s *Store) sweepDead(ctx context.Context) error {
	grace := s.opt.Grace
	if s.opt.rules.NoGrace {
		grace = 0
	}
	waiting := 0
	err := s.sweepIndex(ctx, prefixDead, s.opt.clock()-grace.Milliseconds(), func(t *tx, dues []due) error {
		s.coverMu.Lock() // a member that is added now is added before or after, not while we decide
		defer s.coverMu.Unlock()
		n, w, err := t.forgetDead(dues, s.coveredLocked)
		waiting += w
		s.opt.Metrics.swept["tombstone"].Add(float64(n))
		return err
	})
	s.opt.Metrics.forgotten.Set(float64(waiting))
	return err
}

func (t *tx) forgetDead(dues []due, covered func(replica.Version) bool) (n, waiting int, err error) {
	for _, d := range dues {
		rec, ok, err := t.get(d.place)
		if err != nil {
			return n, waiting, err
		}
		if !ok || rec.LSeq != d.lseq || !rec.Dead() {
			continue
		}
		if !covered(rec.Version) {
			waiting++
			continue
		}
		if err := t.forget(t.l.spaceOf(d.place), d.place, rec); err != nil {
			return n, waiting, err
		}
		t.l.lost.add(d.place, rec.Version)
		n++
	}
	return n, waiting, nil
}

// spaceOf returns the namespace of a place that is in the store.
func (l *ledger) spaceOf(place []byte) *space {
	uid, _, _ := splitPlace(place)
	return l.spaceLocked(string(uid))
}

// sweepDying removes what still points to the records of deleted namespaces. It can be cut off anywhere: it begins anew.
func (s *Store) sweepDying(ctx context.Context) error {
	dying := map[string]*space{}
	s.ledger.spaces.Range(func(_, v any) bool {
		if sp := v.(*space); sp.is() == stateDying {
			dying[sp.uid] = sp
		}
		return true
	})
	if len(dying) == 0 {
		return nil
	}
	for _, prefix := range []byte{prefixChange, prefixExpiry, prefixDead, prefixBlob} {
		if err := s.sweepPointers(ctx, prefix, dying); err != nil {
			return err
		}
	}
	return s.commits.do(0, func(t *tx) error {
		for _, sp := range dying {
			if err := t.setState(sp, stateDead); err != nil {
				return err
			}
		}
		s.opt.Metrics.swept["namespace"].Add(float64(len(dying)))
		return nil
	})
}

// sweepPointers deletes the entries of one index that lead to deleted namespaces. Nothing adds such entries any more.
func (s *Store) sweepPointers(ctx context.Context, prefix byte, dying map[string]*space) error {
	var from []byte
	for done := false; !done; {
		var keys [][]byte
		looked := 0
		done = true
		err := scan(s.ledger.db, []byte{prefix}, from, func(k, v []byte) (bool, error) {
			if looked++; len(keys) == sweepStep || looked > 50*sweepStep {
				from, done = append([]byte{}, k...), false
				return false, nil
			}
			place := v
			if prefix == prefixBlob {
				place = k[1+replica.DigestBytes:]
			}
			if uid, _, ok := splitPlace(place); ok && dying[string(uid)] != nil {
				keys = append(keys, append([]byte{}, k...))
			}
			return true, nil
		})
		if err == nil && len(keys) > 0 {
			err = s.commits.do(0, func(t *tx) error { return t.deletePointers(prefix, keys) })
		}
		if err = errors.Join(err, ctx.Err()); err != nil {
			return err
		}
	}
	return nil
}

func (t *tx) deletePointers(prefix byte, keys [][]byte) error {
	for _, k := range keys {
		if err := t.b.Delete(k, nil); err != nil {
			return err
		}
		if prefix == prefixBlob {
			t.orphans = append(t.orphans, digest(k[1:1+replica.DigestBytes]))
		}
	}
	return nil
}

func (s *Store) sweepBlobs() error {
	var errs []error
	before := s.opt.clock() - s.opt.BlobGrace.Milliseconds()
	for _, o := range s.blobs.due(before, s.ledger.durable.Load()) {
		gone, err := s.blobs.removeUnused(s.db, o)
		errs = append(errs, err)
		if gone {
			s.opt.Metrics.swept["blob"].Inc()
		}
	}
	return errors.Join(errs...)
}

// runSweeps sweeps until ctx is done.
func (s *Store) runSweeps(ctx context.Context) {
	if err := s.blobs.findUnused(s.db, s.stagedNow(), time.UnixMilli(s.opt.clock())); err != nil {
		s.opt.Log.Warn("looking for unused value files", "err", err)
	}
	tick := time.NewTicker(sweepEvery)
	defer tick.Stop()
	for {
		if err := s.Sweep(ctx); err != nil && ctx.Err() == nil {
			s.opt.Log.Warn("sweep is incomplete", "err", err)
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

func (s *Store) stagedNow() uint64 {
	s.ledger.mu.Lock()
	defer s.ledger.mu.Unlock()
	return s.ledger.staged
}
