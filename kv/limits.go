package kv

import (
	"time"
	"unicode/utf8"

	"edged/internal/fault"
	"edged/kv/replica"
)

// The contract's limits (kv §3), in bytes of UTF-8 where nothing else is said.
const (
	MaxKeyBytes      = replica.MaxKeyBytes
	MaxValueBytes    = replica.MaxValueBytes
	MaxMetadataBytes = replica.MaxMetaBytes
	MinTTL           = 60 * time.Second
	MaxTTL           = 315360000 * time.Second
	MaxListLimit     = 1000
	DefaultListLimit = 100
	MaxCursorChars   = 4096
)

func checkKey(op, key string) error {
	if len(key) == 0 || len(key) > MaxKeyBytes || !utf8.ValidString(key) {
		return ErrInvalidKey.New(op, "a key has 1 to 467 bytes of UTF-8")
	}
	return nil
}

// CheckUID returns an Invalid for what cannot be a namespace's UID here: 1 to 128 bytes.
func CheckUID(uid string) error {
	if len(uid) == 0 || len(uid) > replica.MaxUIDBytes {
		return fault.New(fault.Invalid, "kv", "a namespace's UID has 1 to 128 bytes")
	}
	return nil
}

// expiry turns a time to live into an instant; 0 stays "never".
func expiry(op string, ttl time.Duration, nowMs int64) (int64, error) {
	if ttl == 0 {
		return 0, nil
	}
	if ttl < MinTTL || ttl > MaxTTL || ttl%time.Second != 0 {
		return 0, fault.New(fault.Invalid, op, "a time to live is whole seconds from 60 to 315360000")
	}
	return nowMs + ttl.Milliseconds(), nil
}

// clockSlack is added to the instant of a record that another node wrote: the clocks of two nodes differ a little, and nothing
// may go before its time (kv §3).
const clockSlack = 2000 // ms

// expired reports whether a record's instant has passed for readers of this store.
func (l *ledger) expired(r *replica.Record, nowMs int64) bool {
	if r.Flags&replica.Expires == 0 {
		return false
	}
	if r.Origin != l.epoch {
		nowMs -= clockSlack
	}
	return nowMs >= r.Expires
}

// hidden reports whether readers see nothing where r is.
func (l *ledger) hidden(r *replica.Record, nowMs int64) bool { return r.Dead() || l.expired(r, nowMs) }
