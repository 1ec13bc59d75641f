package kv

import (
	"sync"
	"time"
)

// The reasons for which a request or gossip is refused; each has its count in edged_kv_peers_refused_total.
const (
	refusedName  = "name"  // the certificate is not that of the member
	refusedEpoch = "epoch" // not a member under this epoch, or not this store's epoch
	refusedKey   = "key"   // gossip that the fleet's keys do not open: a wrong key, or garbage
	refusedForm  = "form"  // cannot be read
)

var refusedReasons = []string{refusedName, refusedEpoch, refusedKey, refusedForm}

// sayAgain is the least time between two lines of the log about refusals for one reason: who is refused may try often.
const sayAgain = time.Minute

// refusals keeps the log readable under a flood.
type refusals struct {
	mu     sync.Mutex
	said   map[string]time.Time // by reason
	silent map[string]int       // not said since
}

// refused counts a refusal, and says it unless the log had one for the same reason within the last minute.
func (s *Store) refused(reason, detail string) {
	s.opt.Metrics.refused[reason].Inc()
	r := &s.refusals
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.said == nil {
		r.said, r.silent = map[string]time.Time{}, map[string]int{}
	}
	now := time.Now()
	if at, ok := r.said[reason]; ok && now.Sub(at) < sayAgain {
		r.silent[reason]++
		return
	}
	s.opt.Log.Warn("peer refused", "reason", reason, "detail", detail, "unsaid", r.silent[reason])
	r.said[reason], r.silent[reason] = now, 0
}
