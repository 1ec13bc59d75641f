package artifact

import (
	"context"
	"os"
	"sync"
	"time"
)

// usage counts the bytes that each tenant holds, against Options.MaxHeldBytes. It is counted from the index when it is
// first asked for, and kept from then on.
type usage struct {
	store *Store

	mu   sync.Mutex
	held map[string]int64 // nil until counted
}

func (u *usage) init(s *Store) { u.store = s }

// add takes size more bytes for a tenant. ErrQuota if it may not hold so many; errors of the index otherwise.
func (u *usage) add(tenant string, size int64) error {
	if u.store.opt.MaxHeldBytes == 0 {
		return nil
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.held == nil {
		held := map[string]int64{}
		err := u.store.Holdings(context.Background(), func(tenant string, d Digest, _ time.Time) error {
			held[tenant] += u.store.sizeOf(d)
			return nil
		})
		if err != nil {
			return err
		}
		u.held = held
	}
	if u.held[tenant]+size > u.store.opt.MaxHeldBytes {
		return ErrQuota.Newf("artifact.usage", "a tenant may hold %d bytes; what no Resource uses goes by itself after a day", u.store.opt.MaxHeldBytes)
	}
	u.held[tenant] += size
	return nil
}

func (u *usage) sub(tenant string, size int64) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.held == nil {
		return
	}
	if u.held[tenant] -= size; u.held[tenant] <= 0 {
		delete(u.held, tenant)
	}
}

// forget makes the next add count anew.
func (u *usage) forget() {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.held = nil
}

// sizeOf returns the size of a blob, 0 for one that is not there.
func (s *Store) sizeOf(d Digest) int64 {
	info, err := os.Stat(s.blobPath(d))
	if err != nil {
		return 0
	}
	return info.Size()
}
