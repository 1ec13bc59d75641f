// Package queue keeps messages until a handler has dealt with them: at least once, never more often than their budget allows.
//
//	store.go      Store, Open, Close: all queues of a node in one Pebble, so that their senders share one fsync
//	catalog.go    Create, Update, Delete, Exists
//	settings.go   Ref, Settings, the contract's numbers
//	send.go       Send, SendBatch
//	consumer.go   Consumer, SetConsumers: who takes from which queue, and by which rules
//	dispatch.go   Run and the loop of one queue: what to deliver, and when
//	deliver.go    a batch on its way: lease, bodies, handler, end
//	batch.go      Batch: what a handler gets, and settlement
//	step.go       step: one durable change of messages, dead letters included
//	queue.go      a queue in memory; reading its index
//	window.go     the part of the due index that is in memory
//	house.go      leases kept alive, retention, tombstones
//	recover.go    what a dead process held
//	stats.go      counters; collect.go and metrics.go show them
//	keys.go       the layout on disk; record.go the values
//	lease         settlement and budget as pure rules
//
// Invariants:
//   - A message that Send answered for is in m/ and in exactly one of d/ (it waits) and a record in b/ (a handler has it), until
//     it is acknowledged, dropped, discarded, or became another message in the same durable step.
//   - Attempts are on disk before a handler sees the batch, so no history of crashes delivers a message more than
//     1 + maxRetries times (queue §6).
//   - What memory shows is durable: a message reaches the window only after its fsync, and while it is under way what the
//     index says of it is not believed.
//   - The due index is read once and forward. What was passed is deleted as a range, so nothing reads through tombstones.
//
// Locks, in the order in which they are taken: Store.catalog, Store.commits, Batch.mu, Store.mu, a queue's mu (one at a time).
//
// Not here: JavaScript's view of it, versions and their weights, and who may call. Options.Deliver is wired to the sandbox by
// package node. A dead-letter queue has to live in the same store.
package queue
