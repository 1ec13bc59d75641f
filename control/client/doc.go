// Package client speaks the Host API v2 and the node's own side channels to one node.
//
//	find.go        Find: which node, by its data directory or by URL, CA file and token file
//	client.go      Options, New, Discover: one node, one credential
//	call.go        one request: deadlines, bounds, repetition of what may be repeated
//	resources.go   Create, Read, List, Update, Delete, Support
//	preview.go     Preview: what a mutation would be refused for
//	operations.go  Operation, Wait
//	artifacts.go   Upload
//	tokens.go      operators' calls about tokens
//	operators.go   operators' other calls: audit, rotation of the node key, backup
//	operate.go     operators' calls of any room: Ask, Fetch, Open, Send
//	problem.go     Problem, OperationError: what the node refused
//
// Invariants: a credential goes to the configured origin and nowhere else, so no redirect is followed and a discovery
// document that names another origin is refused. A mutation is repeated only under its idempotency key. A state that
// this program does not know is never taken for success.
//
// Not here: what a worker consists of.
package client
