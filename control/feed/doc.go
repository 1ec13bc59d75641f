// Package feed takes the plan from the nodes that make it to all that serve it, with the bytes that it needs.
//
//	frame.go     the frames of a feed, and Decoder (fuzzed)
//	server.go    Server: the plan as this node hands it on, with the deltas that led to it
//	snapshot.go  a whole plan in frames, shared by all who are sent it at once
//	serve.go     GET /plan/v1/feed, POST /plan/v1/serving, GET /blob/v1/{sha256}
//	serving.go   which index each member serves
//	follower.go  Follower: keeps the plan of others, in use here and handed on
//	session.go   one feed from one upstream
//	inbox.go     what a session has read and the follower has not yet taken
//	needs.go     which files the plan needs here
//	fetch.go     Fetcher: files by digest from any member
//	report.go    Reporter: tells the voters what is served
//	gate.go      Gate: what may be revoked is withheld by a node that is cut off
//	metrics.go   Metrics
//
// A position is an epoch and an index in it. An epoch is one history of the control state: the instant in which that was founded or
// restored from a backup, so that of two the greater is the one that counts.
//
// Invariants: what a follower has in use is the plan at one index, whole; within an epoch that index never falls, and an older epoch
// never follows a newer one; the files of all deployed versions are on this node's disk before the plan that names them is in use; every
// length from another node is bounded before anything is made for it.
//
// Not here: who is a member, TLS, and what a node does with a plan.
package feed
