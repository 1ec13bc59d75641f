package kv

import (
	"errors"
	"syscall"
	"time"

	"edged/internal/disk"
	"edged/kv/replica"
)

// The reasons for which a session ends. Each has its count in edged_kv_sessions_ended_total, and one line in the log until a
// session with that member reaches a live mark again.
const (
	endNetwork    = "network"     // not reached, cut, or silent
	endRefused    = "refused"     // one of the two is not a member under its epoch, or too old to join
	endFrame      = "frame"       // what came is not a feed
	endSkew       = "skew"        // records of the future
	endRolledBack = "rolled_back" // this store's own disk went back in time
	endBlob       = "blob"        // a value file did not come, or not whole
	endDiskFull   = "disk_full"   // there is no room for what comes; tried again until there is
	endStore      = "store"       // this store cannot be written
)

var endReasons = []string{endNetwork, endRefused, endFrame, endSkew, endRolledBack, endBlob, endDiskFull, endStore}

// endOf returns the reason that an error of a session gives.
func endOf(err error) string {
	for _, r := range []struct {
		reason string
		errs   []error
	}{
		{endSkew, []error{replica.ErrSkew}},
		{endRolledBack, []error{replica.ErrRolledBack}},
		{endDiskFull, []error{disk.ErrFull, syscall.ENOSPC}},
		{endStore, []error{errBroken, errApply}},
		{endBlob, []error{errBlob}},
		{endRefused, []error{errRefused, errStranger, errTooOld}},
		{endFrame, []error{replica.ErrMalformed, replica.ErrContinuity, replica.ErrTooMuch}},
	} {
		for _, e := range r.errs {
			if errors.Is(err, e) {
				return r.reason
			}
		}
	}
	return endNetwork
}

// refusedPatience is how long a member may refuse before the log says so: two that have just joined know of each other at different moments.
const refusedPatience = 20 * time.Second

// sessionLog is what the log has of the sessions with a member that ended, since one of them was level.
type sessionLog struct {
	told    string    // the reason
	refused time.Time // since when it refuses; zero if it did not
}

// sessionEnded counts and says why a session ended.
func (s *Store) sessionEnded(m Member, log *sessionLog, err error) {
	reason, now := endOf(err), time.Now()
	s.opt.Metrics.sessions[reason].Inc()
	if reason != endRefused {
		log.refused = time.Time{}
	} else if log.refused.IsZero() {
		log.refused = now
	}
	if log.told == reason || reason == endRefused && now.Sub(log.refused) < refusedPatience {
		s.opt.Log.Debug("session with a member ended again", "peer", m.Name, "reason", reason, "err", err)
		return
	}
	log.told = reason
	s.opt.Log.Warn("session with a member ended; it is tried again", "peer", m.Name, "reason", reason, "err", err)
}
