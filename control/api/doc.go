// Package api is everything the control listener answers: the Host API v2, the operator's door, the mount of the
// artifact side channel and the documentation pages that discovery points to.
//
//	handler.go        routes, and the order of checks up to the method (host-api §12 steps 1 to 4)
//	request.go        query, headers, media type, size, raw JSON (steps 5 to 7)
//	envelope.go       the request documents
//	resources.go      create, read, update, delete
//	private.go        private inputs, and their replenishment
//	preview.go        previews
//	list.go           lists and their cursors
//	discovery.go      discovery, support, operations
//	door.go           who comes in at the operators' door
//	limit.go          requests per principal
//	pages.go, pages/  documentation pages
//	problem.go        verdicts and other refusals as Problem documents: the only place that knows wire codes
//
// Invariants: what lies outside the caller's tenant is answered byte for byte like what never existed. Every length is
// bounded before anything is kept. Steps 8 to 18 are decided by package state alone.
//
// Not here: TLS and the listener, durability, the runner of Operations.
package api
