package kv

import (
	"github.com/cespare/xxhash/v2"

	"edged/kv/replica"
)

// lostRing remembers the tombstones that were forgotten last, so that a record which a forgotten tombstone would have beaten
// is noticed when it arrives after all. It only watches; the protocol does not need it.
type lostRing struct {
	versions map[uint64]replica.Version // by hash of the place
	order    []uint64                   // ring of the hashes
	at       int
}

const lostKept = 1 << 15

func newLostRing() *lostRing { return &lostRing{versions: map[uint64]replica.Version{}} }

func (r *lostRing) add(place []byte, v replica.Version) {
	h := xxhash.Sum64(place)
	if len(r.order) < lostKept {
		r.order = append(r.order, h)
	} else {
		delete(r.versions, r.order[r.at])
		r.order[r.at] = h
		r.at = (r.at + 1) % lostKept
	}
	r.versions[h] = v
}

// beats reports whether a tombstone that was forgotten would have won against v.
func (r *lostRing) beats(place []byte, v replica.Version) bool {
	if len(r.versions) == 0 {
		return false
	}
	was, ok := r.versions[xxhash.Sum64(place)]
	return ok && was.Compare(v) > 0
}
