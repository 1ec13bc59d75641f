// Package accesslog writes the node's access log: one JSON document a line for each exchange with a client, or for a share of them.
//
//	log.go   Log: options, the queue, the one goroutine that writes
//	file.go  file: appended to, cut off by size, opened again when it was moved away
//	line.go  what a line has
//
// Invariants: nobody who serves a request waits for the log; what does not fit into the queue is dropped and counted. A line is
// written whole, so that two processes may append to one file; one that a full disk has cut stands alone. Queries, header fields and bodies are in none.
//
// Not here: what an exchange is (package router).
package accesslog
