// Package plan is what the control room hands to a node: which hosts, workers, versions, triggers and data it should serve.
//
//	plan.go     Plan and its parts
//	delta.go    Delta: what one plan has that another has not
//	merge.go    several deltas as one, the delta between two plans, a delta in pieces
//	derive.go   Deriver: from what changed in the state to what changes in its plan
//	parts.go    one part of a plan, from the state
//	store.go    Store: the last plan, kept part by part for a start without control
//	mark.go     Mark: where a plan comes from that another node made
//
// Invariants: the parts are immutable and may be shared; a Plan is complete: nothing in it is looked up elsewhere but bytes by
// their digest. Equal states give equal plans. What one change costs, in work and in bytes written, depends on what it touches
// and not on how much there is.
//
// Not here: what is allowed (packages rules and state), and serving.
package plan
