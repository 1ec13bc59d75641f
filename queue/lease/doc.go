// Package lease decides what becomes of delivered messages: the state of one batch while a handler holds it, and the rules
// of budget and retention.
//
//	batch.go    Batch: who is settled, in the order of the calls; what the end of a delivery leaves to do
//	budget.go   Exhausted, Expired: pure rules about one message
//	errors.go   the contract's words for a settlement that is refused
//
// Invariants: a message settles once and keeps its outcome (queue §5); after End nothing settles. Nothing here knows a clock,
// a disk or a goroutine.
//
// Not here: making an outcome durable, delays, dead letters. The room's root does that.
package lease
