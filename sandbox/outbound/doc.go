// Package outbound sends what a worker's fetch asks for to the outside: one pool of connections for the node, under the
// operator's egress policy.
//
//	outbound.go   Client: New, Fetch; one request and the redirects that follow it
//	request.go    a worker's request as net/http wants it
//	response.go   the answer as the sandbox wants it; content codings undone
//
// Invariants: the address of every connection is judged when it is made, for each redirect anew. Credentials do not follow
// a redirect to another origin. No cookie, proxy setting or credential of the node is ever used. A response body is read
// no faster than the worker reads it.
//
// Not here: which addresses are allowed (internal/egress), service calls, limits on the number of requests (package
// sandbox).
package outbound
