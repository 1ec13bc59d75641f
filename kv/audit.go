package kv

import (
	"context"
	"encoding/binary"
	"errors"
	"net/http"

	"github.com/cespare/xxhash/v2"

	"edged/internal/fault"
	"edged/kv/replica"
)

const auditBuckets = 4096

// digests are sums of hashes of the records in buckets of keys. Stores with equal vectors have equal digests: what may differ
// without harm (dead records, and those with an expiry, which go at their own time) is left out.
type digests [auditBuckets]uint64

func (l *ledger) digests(v view) (*digests, error) {
	var d digests
	var buf []byte
	err := l.eachRecord(v.snap, func(uid, key string, rec replica.Record) error {
		sp := l.space(uid)
		if rec.Dead() || rec.Flags&replica.Expires != 0 || sp == nil || sp.is() != stateLive {
			return nil
		}
		buf = appendPlace(buf[:0], uid, key)
		bucket := xxhash.Sum64(buf) % auditBuckets
		rec.LSeq = 0 // every store has its own
		d[bucket] += xxhash.Sum64(rec.Append(buf))
		return nil
	})
	return &d, err
}

// auditAnswer is vector length u32 | vector | digests.
func (s *Store) auditAnswer(ctx context.Context) ([]byte, error) {
	v := s.ledger.view()
	defer v.snap.Close()
	if err := s.ledger.wait(ctx, v.staged); err != nil {
		return nil, err
	}
	d, err := s.ledger.digests(v)
	if err != nil {
		return nil, err
	}
	vec := v.vector.Append(nil)
	b := binary.BigEndian.AppendUint32(nil, uint32(len(vec)))
	b = append(b, vec...)
	for _, x := range d {
		b = binary.BigEndian.AppendUint64(b, x)
	}
	return b, nil
}

func (s *Store) serveAudit(w http.ResponseWriter, r *http.Request, _ replica.Origin) {
	b, err := s.auditAnswer(r.Context())
	if err != nil {
		http.Error(w, fault.CodeOf(err).String(), http.StatusServiceUnavailable)
		return
	}
	w.Write(b)
}

// Audit results.
const (
	auditEqual   = "equal"
	auditSkipped = "skipped" // the vectors differ: nothing can be said
	auditDiffers = "differs" // a bug, or rot on a disk
)

// Audit compares this store with a member: equal, skipped (their vectors differ, so nothing can be said) or differs. After a
// difference the member's whole feed is read again, and the log says so: it is a bug or a damaged disk.
func (s *Store) Audit(ctx context.Context, m Member) (string, error) {
	theirs, err := s.ask(ctx, m, pathAudit, 4+maxVectorLen+8*auditBuckets)
	if err != nil {
		return "", err
	}
	ours, err := s.auditAnswer(ctx)
	if err != nil {
		return "", unavailable("kv.Audit", err)
	}
	result, buckets := compareAudits(ours, theirs)
	if result == auditDiffers {
		s.opt.Log.Error("this store and a member differ although they cover the same writes", "peer", m.Name, "buckets", buckets, "do", "see docs/runbook.md, EdgedKVDiverged")
		forget := numKey(nil, prefixRead, uint64(m.Epoch))
		err = s.commits.do(0, func(t *tx) error { return t.b.Delete(forget, nil) })
	}
	return result, unavailable("kv.Audit", err)
}

func compareAudits(a, b []byte) (result string, buckets int) {
	va, da := splitAudit(a)
	vb, db := splitAudit(b)
	if va == nil || vb == nil || string(va) != string(vb) {
		return auditSkipped, 0
	}
	for i := 0; i < len(da); i += 8 {
		if string(da[i:i+8]) != string(db[i:i+8]) {
			buckets++
		}
	}
	if buckets > 0 {
		return auditDiffers, buckets
	}
	return auditEqual, 0
}

// splitAudit returns nil for what is not an answer.
func splitAudit(b []byte) (vector, sums []byte) {
	if len(b) < 4+8*auditBuckets {
		return nil, nil
	}
	n := len(b) - 8*auditBuckets
	if binary.BigEndian.Uint32(b) != uint32(n-4) {
		return nil, nil
	}
	return b[4:n], b[n:]
}

func (s *Store) auditAll(ctx context.Context) {
	for _, m := range s.Members() {
		result, err := s.Audit(ctx, m)
		if err != nil {
			result = "failed"
			if !errors.Is(err, context.Canceled) {
				s.opt.Log.Debug("audit failed", "peer", m.Name, "err", err)
			}
		}
		s.opt.Metrics.audits[result].Inc()
	}
}
