// Package plan is what the control room hands to a node: which hosts, workers and versions it should serve.
//
//	plan.go     Plan and its parts
//	derive.go   Derive: state to plan
//	file.go     Save and Load: the last plan, for a start without control
//
// Invariants: a Plan is immutable and complete: nothing in it is looked up elsewhere but bytes by their digest. Equal
// states give equal plans.
//
// Not here: what is allowed (packages rules and state), and serving.
package plan
