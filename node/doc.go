// Package node puts a node together: it is the only place that sees every room's concrete types.
//
//	options.go    Options: every setting of edged run, checked as a whole
//	node.go       New, Run: the parts and their order
//	listen.go     the four listeners
//	succession.go processes that follow each other without a gap: what comes from the one before, and goes to the one after
//	holding.go    what still holds the node; tasks.go: what of that is no client's request
//	wire.go       both sides of every seam
//	versions.go   the plan's versions, opened in the sandbox, retired when dropped
//	serving.go    a delta of the plan taken into use, at the cost of that delta
//	identity.go   node.id and run.json
//	fleet.go      the node as a member of a fleet; join.go: how it becomes one; member.go: what it then does besides serving
//	removed.go    a member that was removed; lost.go: one whose certificate has expired, or who lost a part of its data directory
//	whereabouts.go where the other members are, when that is not what the plan says
//	namespaces.go the KV namespaces of the plan; settings.go: flags that all members should have alike
//	status.go     what this node says of itself to who is on its machine
//	follow.go     the plan of others, on a member without a control room
//	operator.go   operators' calls of the rooms, one file each (operator_workers.go: tails and explanations); archive.go: their backups as tar
//	restore_store.go  what a room keeps, put back from a backup
//	restore.go    the data directory of an empty node, made of a backup
//	trace.go      whether traces are recorded, and those that no request begins
//	metrics.go    what is counted of the node as a whole
//	admission.go  Admission: what bounds invocations and clients; tenants
//	pressure.go   memoryWatch: what is given up when memory is short
//	machine/      what the kernel says of memory and limits
//	admin.go      /metrics, /healthz, /readyz, /debug/pprof
//	certs/        the local certificate authority; peer/: the door to the other members
//	tail/         what workers do, for operators who watch; accesslog/: a line for each request
//
// Invariants: a version is in use until the end of its contexts is confirmed; a plan that fails to load leaves the old one
// serving; a room is closed only after everything above it ended.
//
// Not here: any decision about requests, workers or Resources. Rooms make those.
package node
