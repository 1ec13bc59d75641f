package artifact

import (
	"context"
	"errors"
	"time"

	"github.com/cockroachdb/pebble/v2"
)

// Hold makes tenant hold a blob that this node has already, from now on as if it were stored now. The error is NotFound if the node does
// not have it. It does not count against what a tenant may hold: whoever let the tenant store the bytes has counted them.
func (s *Store) Hold(tenant string, digest Digest) error {
	if err := checkNames(tenant); err != nil {
		return err
	}
	mu := s.stripe(digest)
	mu.Lock()
	defer mu.Unlock()
	blob, err := s.Open(digest)
	if err != nil {
		return err
	}
	if err := blob.Close(); err != nil {
		return unavailable("artifact.Hold", err)
	}
	s.usage.forget() // counted anew when somebody asks
	return unavailable("artifact.Hold", s.db.Set(holdingKey(digest, tenant), encodeTime(time.Now()), pebble.Sync))
}

// InCustody calls fn for every Resource that has something in custody here, complete or not, in ascending order of UID.
func (s *Store) InCustody(fn func(uid string)) error {
	it, err := s.db.NewIter(&pebble.IterOptions{LowerBound: []byte{custodyPrefix}, UpperBound: []byte{custodyPrefix + 1}})
	if err != nil {
		return unavailable("artifact.InCustody", err)
	}
	for ok := it.First(); ok; ok = it.Next() {
		if key := it.Key(); len(key) > 3 { // prefix and length come first
			fn(string(key[3:]))
		}
	}
	return unavailable("artifact.InCustody", errors.Join(it.Error(), it.Close()))
}

// holdsAnywhere is Holds that also looks on other nodes, from which the bytes then come here.
func (s *Store) holdsAnywhere(ctx context.Context, tenant string, digest Digest) (bool, error) {
	held, err := s.Holds(tenant, digest)
	if err != nil || held || s.opt.Elsewhere == nil {
		return held, err
	}
	return s.opt.Elsewhere(ctx, tenant, digest)
}

// ownOrigins are those whose side channels give what is held here.
func (s *Store) ownOrigins() []string {
	own := []string{s.opt.Origin}
	if s.opt.Siblings != nil {
		own = append(own, s.opt.Siblings()...)
	}
	return own
}
