package artifact

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/cockroachdb/pebble/v2"

	"edged/internal/fault"
	"edged/internal/faultpoint"
)

// Index is a verified bundle: what worker-bundle §5 shows of it, and what the node needs to open its files. Immutable.
type Index struct {
	ManifestSHA256 string `json:"manifestSha256"`
	Entrypoint     string `json:"entrypoint,omitempty"` // empty unless the kind is Worker
	TotalBytes     int64  `json:"totalBytes"`
	Files          []File `json:"files"` // in the manifest's order
}

// File is one verified file of a bundle.
type File struct {
	Path      string `json:"path"`
	SHA256    string `json:"sha256"`
	MediaType string `json:"mediaType"`
	ByteSize  int64  `json:"byteSize"`
}

// Request names a bundle and the Resource that it is for.
type Request struct {
	Tenant, UID string // opaque, 1 to 1,020 bytes each
	URL         string // of the manifest; CheckURL has accepted it
	Digest      Digest // of the manifest
	Kind        Kind
}

// custody is the record of one Resource. While Index is nil the acquisition is not complete.
type custody struct {
	Tenant []byte `json:"tenant"` // bytes: a tenant need not be UTF-8
	Digest string `json:"digest"`
	Kind   Kind   `json:"kind"`
	Index  *Index `json:"index,omitempty"`
}

// Acquire fetches, verifies and keeps the bundle that req names and returns when all of it is durable. It may be
// repeated: after a crash it goes on where it was, and for a bundle in custody it verifies the bytes again and fetches
// only what is damaged. The errors: ErrInvalid if the bundle is not obtainable or wrong, with nothing kept unless a
// complete custody was there before; Conflict if the UID has another bundle or another call is at work on it;
// Unavailable for this node's disk; Canceled or Timeout when ctx ends, after which Acquire may go on or
// Release give up.
func (s *Store) Acquire(ctx context.Context, req Request) (*Index, error) {
	if req.Kind < Worker || req.Kind > Migrations {
		return nil, fault.New(fault.Invalid, "artifact.Acquire", "unknown kind of bundle")
	}
	if err := checkNames(req.Tenant, req.UID); err != nil {
		return nil, err
	}
	done, err := s.begin(req.UID)
	if err != nil {
		return nil, err
	}
	defer done()
	rec, err := s.record(req.UID)
	if err != nil {
		return nil, err
	}
	switch {
	case rec == nil:
		rec = &custody{Tenant: []byte(req.Tenant), Digest: req.Digest.String(), Kind: req.Kind}
		if err := s.setRecord(req.UID, rec); err != nil {
			return nil, err
		}
	case string(rec.Tenant) != req.Tenant || rec.Digest != req.Digest.String() || rec.Kind != req.Kind:
		return nil, fault.New(fault.Conflict, "artifact.Acquire", "the Resource has another bundle in custody")
	}
	index, err := s.acquire(ctx, req)
	if err != nil {
		if rec.Index == nil && errors.Is(err, ErrInvalid) {
			err = errors.Join(err, s.release(req.UID, rec, time.Now()))
		}
		return nil, err
	}
	if rec.Index == nil {
		rec.Index = index
		if err := s.setRecord(req.UID, rec); err != nil {
			return nil, err
		}
	}
	return index, nil
}

// Custody returns the bundle that the Resource has in complete custody, ok false if there is none.
func (s *Store) Custody(uid string) (index *Index, ok bool, err error) {
	rec, err := s.record(uid)
	if err != nil || rec == nil || rec.Index == nil {
		return nil, false, err
	}
	return rec.Index, true, nil
}

// Release ends what the Resource has in custody, complete or not; blobs that nothing else refers to can be collected
// from Grace later on. A UID without custody is no error. Conflict while an Acquire of it is at work.
func (s *Store) Release(uid string) error {
	done, err := s.begin(uid)
	if err != nil {
		return err
	}
	defer done()
	rec, err := s.record(uid)
	if err != nil || rec == nil {
		return err
	}
	return s.release(uid, rec, time.Now())
}

// begin keeps others off the UID until done is called.
func (s *Store) begin(uid string) (done func(), err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, taken := s.busy[uid]; taken {
		return nil, fault.New(fault.Conflict, "artifact.Acquire", "the Resource's bundle is being worked on")
	}
	s.busy[uid] = struct{}{}
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.busy, uid)
	}, nil
}

func checkNames(names ...string) error {
	for _, n := range names {
		if n == "" || len(n) > maxNameBytes {
			return fault.New(fault.Invalid, "artifact.Acquire", "a tenant or UID has 1 to 1020 bytes")
		}
	}
	return nil
}

func (s *Store) record(uid string) (*custody, error) {
	if err := checkNames(uid); err != nil {
		return nil, err
	}
	b, closer, err := s.db.Get(custodyKey(uid))
	if errors.Is(err, pebble.ErrNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, unavailable("artifact.record", err)
	}
	defer closer.Close()
	rec := new(custody)
	if err := json.Unmarshal(b, rec); err != nil {
		return nil, fault.Wrap(fault.Internal, "artifact.record", err)
	}
	return rec, nil
}

func (s *Store) setRecord(uid string, rec *custody) error {
	b, err := json.Marshal(rec)
	if err != nil {
		return fault.Wrap(fault.Internal, "artifact.setRecord", err)
	}
	return unavailable("artifact.setRecord", s.db.Set(custodyKey(uid), b, pebble.Sync))
}

// refer records that uid of tenant refers to the blob; the caller holds the blob's stripe and the blob has its name. It
// becomes durable with the custody record, which is synced behind it in the same log: what a crash takes before that is
// fetched again.
func (s *Store) refer(tenant, uid string, d Digest) error {
	batch := s.db.NewBatch()
	defer batch.Close()
	if err := errors.Join(
		batch.Set(referenceKey(d, tenant, uid), nil, nil),
		batch.Set(blobOfKey(uid, d), nil, nil),
		batch.Set(holdingKey(d, tenant), encodeTime(time.Now()), nil),
	); err != nil {
		return unavailable("artifact.refer", err)
	}
	err := unavailable("artifact.refer", batch.Commit(pebble.NoSync))
	faultpoint.Hit("artifact.referred")
	return err
}

// refers reports whether uid already refers to the blob.
func (s *Store) refers(uid string, d Digest) (bool, error) {
	_, closer, err := s.db.Get(blobOfKey(uid, d))
	if errors.Is(err, pebble.ErrNotFound) {
		return false, nil
	}
	if err != nil {
		return false, unavailable("artifact.refers", err)
	}
	return true, unavailable("artifact.refers", closer.Close())
}

// release takes the references of uid away one by one and its record last, so that it can be repeated after a crash.
func (s *Store) release(uid string, rec *custody, now time.Time) error {
	prefix := blobsOfPrefix(uid)
	it, err := s.db.NewIter(&pebble.IterOptions{LowerBound: prefix, UpperBound: after(prefix)})
	if err != nil {
		return unavailable("artifact.release", err)
	}
	var digests []Digest
	for ok := it.First(); ok; ok = it.Next() {
		if key := it.Key(); len(key) == len(prefix)+32 {
			digests = append(digests, Digest(key[len(prefix):]))
		}
	}
	if err := it.Close(); err != nil {
		return unavailable("artifact.release", err)
	}
	for _, d := range digests {
		if err := s.unrefer(string(rec.Tenant), uid, d, now); err != nil {
			return err
		}
	}
	return unavailable("artifact.release", s.db.Delete(custodyKey(uid), pebble.Sync))
}

// unrefer removes one reference. The tenant's holding starts to age again; where another reference is left that does no
// harm, because only the age since the last one counts.
func (s *Store) unrefer(tenant, uid string, d Digest, now time.Time) error {
	mu := s.stripe(d)
	mu.Lock()
	defer mu.Unlock()
	batch := s.db.NewBatch()
	defer batch.Close()
	if err := errors.Join(
		batch.Delete(referenceKey(d, tenant, uid), nil),
		batch.Delete(blobOfKey(uid, d), nil),
		batch.Set(holdingKey(d, tenant), encodeTime(now), nil),
	); err != nil {
		return unavailable("artifact.release", err)
	}
	// The record's removal, which is synced, follows in the same log.
	err := unavailable("artifact.release", batch.Commit(pebble.NoSync))
	faultpoint.Hit("artifact.released")
	return err
}
