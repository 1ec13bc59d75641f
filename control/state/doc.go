// Package state is the control state and the one function that changes it: Apply(command).
//
//	state.go     State, its indexes, and what may be asked of it
//	record.go    Resource, Operation and the other records
//	command.go   Command and Outcome; level.go: which of them this program knows
//	decide.go    the checks that lead to acceptance or refusal, in the order of host-api §12
//	gates.go     the aggregate rules of one mutation, in the order of worker-aggregate §3
//	accept.go    what an accepted mutation writes; the only place that moves generation
//	settle.go    how an Operation goes on and ends
//	inputs.go    private inputs: what is kept of them, how they are compared
//	replenish.go waiting_input and the way out of it; rotation of the sealing key
//	facts.go     records to facts
//	render.go    rule 9: which renderings a change can touch; put, the only place that moves revision
//	represent.go the served representation of a Resource
//	view.go      what a plan is made from: the state at one instant, and what changed since the last look
//	runs.go      matches of cron triggers on record
//	ledger.go    what is applied to databases
//	facades.go   the facade sets that the program carries (worker-version §9)
//	fleet.go     members, invites, the authority of the fleet, homes
//	membership.go the rules FL-1 to FL-5 and what becomes of members
//	access.go    tokens, roles, Spaces
//	sweep.go     retention
//	snapshot.go  the encoded whole
//	decode.go    a snapshot's lines, decoded on every core
//	key.go       composite keys
//
// Invariants: Apply is deterministic: no clock, no randomness, no map order, no I/O; the command carries ids and times.
// A record is immutable once stored: a change stores a new one, so a record that a reader got stays whole. All exported
// methods are safe for concurrent use; there is one caller of Apply.
//
// Not here: durability (package raftlog), outside effects (package control), HTTP (package api).
package state
