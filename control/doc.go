// Package control decides what a node is allowed to serve: Resources, Operations, the rules between them, artifacts, and
// the plan that follows from all of it.
//
//	options.go    Options
//	control.go    Control: Open, Run, Close, Handler
//	raft.go       the log that this node has, alone or with others; streams.go: the streams between voters
//	leader.go     what only the leader does, and how it is certain to be it
//	halt.go       a log that a newer program wrote; levels.go: what all voters know
//	voters.go     voters that come and go
//	fleet.go      FleetOptions; questions between members
//	forward.go    requests that go on to the leader; what members ask each other
//	machine.go    the state behind the raft log
//	submit.go     a mutation on its way to acceptance: stamps, inspection, the log
//	inspect.go    a bundle's module graph, handed out for evaluation
//	runner.go     Operations with effects outside the state
//	effects.go    those effects: artifacts, the retirement of a deployment, the end of a consumer
//	store.go      the stores of data Resources, as the runner sees them
//	migrate.go    one more: the migrations of a database
//	hands.go      what a member does for the leader on its own disk; errands.go: how the leader asks for it
//	hold.go       artifact bytes on most voters; custody.go: what each voter keeps
//	turns.go      who may have modules evaluated next
//	secrets.go    private inputs: sealing, comparing, opening; waiting for them
//	rotate.go     rotation of the node key; keys.go: the keys of a member without a control room
//	records.go    the audit
//	operators.go  the calls of operators; tokens.go: tokens and their last use
//	backup.go     a backup while the node serves; restore.go: an empty node made of one
//	members.go    the fleet: founding, invites, joins, certificates; members_door.go: for operators; members_peer.go: for members
//	endings.go    the short wait for an Operation that ends at once
//	publish.go    from what changed in the state to what changes in the plan, to disk and node
//	bootstrap.go  first start: secrets and the bootstrap token
//	metrics.go    metrics
//	raftlogger.go raft's lines as records of ours
//
//	rules/     the rules of the aggregate, pure
//	form/      the drivers of the Forms, pure
//	state/     Apply(command), pure
//	plan/      what a node serves
//	api/       everything the control listener answers
//	jsonraw/   raw JSON judged by its bytes
//	raftlog/   the log on Pebble
//	artifact/  bytes held per tenant, and the side channel
//	seal/      the node key file, sealed values, marks to compare by
//	audit/     who changed what
//	operator/  the operators' door, for this and every other room
//	client/    a small client of the API, for the program's commands
//
// Invariants: nothing is accepted unless it is durable in the log, on most voters. Only a leader that is certain to be it, with a
// current state, answers from the state, accepts, and has effects; every voter publishes plans. Every effect outside is idempotent and found again
// from the log after a crash. Serving never waits for this room: the last plan is on disk.
//
// Not here: listeners and TLS (package node), running anything (package sandbox).
package control
