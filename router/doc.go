// Package router is the public data plane front: it takes HTTP/1.1 from clients, chooses a version of a worker, and
// carries both bodies between them.
//
//	h1/          the grammar of heads and chunked bodies (pure)
//	table/       host -> worker -> version by weight -> asset (pure)
//	proxyproto/  the PROXY protocol (pure)
//
//	options.go   Options, defaults
//	router.go    Router: New, Publish, Run, drain
//	listen.go    accepting; PROXY header and TLS before the first request
//	conn.go      conn: one connection, its buffers, deadlines and loop
//	head.go      waiting for a request head and reading it
//	exchange.go  one request: match, pick, assets, admission, invocation
//	body.go      body: the request body as the worker reads it
//	respond.go   the response head, buffered bodies, host-made errors
//	stream.go    streamed bodies and files
//	refusal.go   the table of host-made errors
//	receipt.go   Edged-Receipt: what an invocation has cost
//	explain.go   Edged-Explain and Explain: why a response is what it is
//	access.go    Access: what is told of an exchange that is over
//	gate.go      gate: bounded and fair admission
//	gate_queue.go lines: who waits for it, by worker and tenant
//	pace.go      pace: how long one would wait (pure)
//	crowd.go     crowd: how many connections, and who makes room; failures to accept
//	watch_*.go   watcher: sees clients leave
//	trace.go     the span of a request
//	handover.go  connections that go on in the process after this one; adopt.go: those that come from the one before
//	relay.go     what stays of the former: TLS
//	holding.go   what still holds the router up
//	metrics.go   Metrics
//
// Invariants:
//   - Bytes of a request body are read by its body alone, in its own framing, and a connection is used again only after the
//     body's end was reached. Nothing of a body can be parsed as the next request.
//   - A handler starts when the head is complete, whatever of the body has arrived.
//   - A connection has one goroutine, which alone writes the response. Its context is made once and ends when the
//     client left, when the drain's time is over, or with the connection.
//   - Every response stream is closed exactly once, every admission given back exactly once, every body closed before the
//     next head is read.
//   - Nothing here is waited for without a deadline, but the handler, which limits itself.
//
// The connection loop is our own and not a library's: what must hold about bodies, errors after the head and clients that
// leave would have to be built around a library's loop, against its buffering, and its parser would be a second opinion
// about framing. The benchmark measures it against bare fasthttp.
//
// Not here: running code (package sandbox), what is deployed (package control), certificates (package node).
package router
