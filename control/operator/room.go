package operator

import "slices"

// Root is the path below which all rooms are.
const Root = "/operator/v1/"

// Room is the calls of one room.
type Room struct {
	Name   string // one path segment, like "queue"
	Routes []Route
}

// Body says which body a route takes.
type Body uint8

// The bodies.
const (
	NoBody   Body = iota // one that arrives all the same is refused
	JSONBody             // application/json of at most MaxBody bytes, for Call.Decode
	RawBody              // any bytes, streamed by Call.Body, at most MaxBody of them
)

// Route is one call.
type Route struct {
	Name    string   // of the audit record, like "purge"; the room's name is put in front
	Method  string   // GET, POST, PUT or DELETE
	Path    string   // below the room, like "queues/{uid}/messages"; a variable is one whole segment
	Query   []string // parameters that may be given, each once
	Body    Body
	MaxBody int64 // bytes, 0 means 1 MiB
	Changes bool  // leaves an audit record
	Whole   bool  // only for callers that work on the whole node
	// Serve does the work. It runs on the request's goroutine, with a context that ends when the client leaves.
	Serve func(*Call) error
}

// targetVariable is the variable that names a live Resource; the door finds it and judges whose it is.
const targetVariable = "uid"

// Caller is the operator who asks.
type Caller struct {
	Tenant, Principal, Token string
	Spaces                   []string // empty means every Space of the tenant
	Whole                    bool     // works on every tenant
}

// May reports whether the caller may work on all of a tenant.
func (c *Caller) May(tenant string) bool {
	return c.Whole || len(c.Spaces) == 0 && tenant == c.Tenant
}

// MayIn reports whether the caller may work on things of one Space of a tenant.
func (c *Caller) MayIn(tenant, space string) bool {
	return c.May(tenant) || tenant == c.Tenant && slices.Contains(c.Spaces, space)
}

// Target is the live Resource that {uid} names.
type Target struct {
	UID, Tenant, Space, Name, Form string
	Generation                     uint64 // that was settled last
}

// Event is one change that was tried, for the audit.
type Event struct {
	Caller *Caller
	Action string // room.name
	Tenant string // whose things; the caller's own unless the call said otherwise
	UID    string
	Space  string
	Name   string
	Err    error // nil when it was done
}
