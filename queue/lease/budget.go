package lease

import "time"

// Exhausted reports whether a message that was delivered attempts times may not be delivered again: at most
// 1 + maxRetries deliveries, over any history of crashes (queue §6).
func Exhausted(attempts, maxRetries int) bool { return attempts > maxRetries }

// Expired reports whether a message accepted at acceptedMs is past its queue's retention at nowMs, both in Unix
// milliseconds. The retention is the one of now (queue §1).
func Expired(acceptedMs, nowMs int64, retention time.Duration) bool {
	return nowMs-acceptedMs >= retention.Milliseconds()
}
