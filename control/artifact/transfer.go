package artifact

import (
	"context"
	"errors"
	"io"
	"time"

	"github.com/cockroachdb/pebble/v2"

	"edged/internal/fault"
)

// Holdings calls fn for every holding, in ascending order of digest, as they were when the call began. since is when the
// blob was stored or lost its last reference. An error of fn ends it and is returned.
func (s *Store) Holdings(ctx context.Context, fn func(tenant string, digest Digest, since time.Time) error) error {
	it, err := s.db.NewIter(&pebble.IterOptions{LowerBound: []byte{holdingPrefix}, UpperBound: []byte{holdingPrefix + 1}})
	if err != nil {
		return unavailable("artifact.Holdings", err)
	}
	defer it.Close()
	for ok := it.First(); ok; ok = it.Next() {
		if err := ctx.Err(); err != nil {
			return err
		}
		key := it.Key()
		if len(key) < 35 {
			continue
		}
		if err := fn(string(key[35:]), Digest(key[1:33]), decodeTime(it.Value())); err != nil {
			return err
		}
	}
	return unavailable("artifact.Holdings", it.Error())
}

// Adopt puts a bundle that was verified elsewhere into custody, as Acquire would have left it, from blobs that the tenant
// holds here. Conflict if one of them is missing.
func (s *Store) Adopt(req Request, index *Index) error {
	if err := checkNames(req.Tenant, req.UID); err != nil {
		return err
	}
	done, err := s.begin(req.UID)
	if err != nil {
		return err
	}
	defer done()
	digests := []Digest{req.Digest}
	for _, f := range index.Files {
		d, ok := ParseDigest(f.SHA256)
		if !ok {
			return fault.New(fault.Invalid, "artifact.Adopt", "a digest is malformed")
		}
		digests = append(digests, d)
	}
	for _, d := range digests {
		if err := s.adopt(req, d); err != nil {
			return err
		}
	}
	return s.setRecord(req.UID, &custody{Tenant: []byte(req.Tenant), Digest: req.Digest.String(), Kind: req.Kind, Index: index})
}

func (s *Store) adopt(req Request, d Digest) error {
	mu := s.stripe(d)
	mu.Lock()
	defer mu.Unlock()
	held, err := s.Holds(req.Tenant, d)
	if err != nil {
		return err
	}
	if !held {
		return fault.Newf(fault.Conflict, "artifact.Adopt", "the bytes %s of %s are missing", d, req.UID)
	}
	return s.refer(req.Tenant, req.UID, d)
}

// Keep is Put for bytes that were held elsewhere since the time given, by each of tenants.
func (s *Store) Keep(ctx context.Context, digest Digest, body io.Reader, tenants map[string]time.Time) error {
	in, err := s.receive(ctx, body, MaxBlobBytes)
	if err != nil {
		return err
	}
	defer in.discard()
	if in.digest != digest {
		return ErrDigest.Newf("artifact.Keep", "the bytes have the SHA-256 %s", in.digest)
	}
	mu := s.stripe(digest)
	mu.Lock()
	defer mu.Unlock()
	if err := in.place(); err != nil {
		return err
	}
	batch := s.db.NewBatch()
	defer batch.Close()
	for tenant, since := range tenants {
		if err := errors.Join(checkNames(tenant), batch.Set(holdingKey(digest, tenant), encodeTime(since), nil)); err != nil {
			return unavailable("artifact.Keep", err)
		}
	}
	s.usage.forget() // counted anew when somebody asks
	return unavailable("artifact.Keep", batch.Commit(pebble.Sync))
}
