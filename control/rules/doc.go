// Package rules holds the rules of the Worker aggregate as pure functions: facts in, at most one verdict out.
//
//	verdict.go      Verdict, the seed's codes, the text of a refusal
//	facts.go        what the rules see of a Resource and of an aggregate
//	deployment.go   rules 1, 2, 4 and 5
//	attachment.go   rule 3 and the gate of named classes
//	environment.go  rule 6
//	readiness.go    rule 7, and readiness of versions and deployments
//	service.go      rule 8
//	relation.go     REL-1, REL-3 to REL-5, REL-8
//	claims.go       CL-3, CL-6, CL-8, CL-9
//
// Invariants: no Form, clock, store or protocol is visible here. A rule that several UIDs break names the lowest one
// first, so that equal states give equal verdicts.
//
// Not here: how facts are found (package state), what a spec may look like (package form), and which HTTP status or
// wire code a verdict becomes (package api).
package rules
