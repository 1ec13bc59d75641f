// Package sandbox runs workers: it turns a version's modules into a snapshot image, keeps pristine sandboxes of it ready,
// and drives one invocation at a time through each.
//
//	sandbox.go     Sandbox: New, Run, Close; what all versions share
//	options.go     Options and their defaults
//	spec.go        what a version is made of
//	build.go       modules -> evaluated, checked, sealed -> image; Inspect
//	store.go       images on disk, a cache
//	version.go     Version: Open, Retire
//	shed.go        Shed and SetTight: what goes when memory is short
//	pool.go        where a sandbox for an invocation comes from, and where it goes (ready, paged out, spare, closed)
//	turns.go       who runs next; line.go: where the others wait
//	slice_linux.go guests that work long, and the kernel's scheduler
//	guest.go       guest: one engine instance and the invocation in it
//	occasion.go    Scheduled, Queue: invocations without a client
//	serve.go       Serve: the way of a request; its fast path
//	ready.go       what an invocation of fetch begins with, laid out ahead
//	loop.go        the event loop of an invocation that has to wait
//	env.go         what env is made from
//	calls.go       host calls beside the guest
//	held.go        what they keep in the node's memory, bounded
//	answer.go      the handler's Response, copied out and checked
//	stream.go      a response body as it is produced
//	source.go      a body that comes into the guest
//	loan.go        such a body in other hands: the guest only forwards it
//	sink.go        a body that the guest produces for somebody outside
//	bucket.go      calls of object buckets
//	exchange.go    requests that the guest sends: service calls and fetch
//	holding.go     what is at work
//	timers.go      the timers of an invocation
//	work.go       what an invocation has done beside its guest
//	receipt.go     what an invocation has cost, and who is told
//	hosts.go       this room's host functions
//	console.go     what workers log, bounded
//	maps.go        source maps for the stacks in it
//	trace.go       what invocations and host calls show of themselves in a trace
//	metrics.go     counters
//
// Invariants. A guest belongs to one goroutine at a time. Under isolation "request" an invocation starts from an image
// byte for byte; a guest that leaves its version is mapped over completely before another one sees it. No lock is held
// while a guest runs. A slot is held exactly while a guest runs, never while it waits. Every invocation ends: by itself,
// by a limit, or by Retire and Close, which wait for it.
//
// Not here: the engine (sandbox/engine), resolution rules (sandbox/modgraph), web classes (sandbox/prelude and
// sandbox/hostapi), admission and routing (router).
package sandbox
