// Package table is the router's immutable picture of what is served: host, worker, version, asset.
//
//	table.go   Table, Worker, Version: Build and With check them, Match and Pick read them
//	party.go   Party: who holds places of the admission
//	host.go    the canonical form of a host name
//	asset.go   Assets and the stage of static-assets §2
//	key.go     AssetKey: from a request path to a manifest path (static-assets §1)
//
// Invariants: a Table never changes after Build and is read by any goroutine without a lock; the weights of a worker that
// has versions sum to exactly 10,000; randomness comes in as a number. No goroutine, clock, socket or file.
//
// Not here: admission, and what goes over the wire.
package table
