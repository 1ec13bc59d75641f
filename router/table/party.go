package table

import "sync/atomic"

// Party is one who holds places of the admission: a worker, or the tenant of workers. It outlives the pictures: whoever
// makes a Worker anew hands the Party of the one before on, else what that one holds would not count. The counters belong
// to the router; all fields but those are constant. Safe for concurrent use.
type Party struct {
	Tenant *Party // whose worker it is; nil for a tenant, and for a worker that shares with all others that have none

	Held    atomic.Int64 // places of invocations at work
	Streams atomic.Int64 // long streams, which have given their place back
}
