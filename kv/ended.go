package kv

import (
	"errors"
	"syscall"

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

// sessionEnded counts and says why a session ended. told is the reason that the log has already.
func (s *Store) sessionEnded(m Member, told *string, err error) {
	reason := endOf(err)
	s.opt.Metrics.sessions[reason].Inc()
	if *told == reason {
		s.opt.Log.Debug("session with a member ended again", "peer", m.Name, "reason", reason, "err", err)
		return
	}
	*told = reason
	s.opt.Log.Warn("session with a member ended; it is tried again", "peer", m.Name, "reason", reason, "err", err)
}
