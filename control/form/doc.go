// Package form is the table of the Forms that this program implements: one Driver for each exact Form URL.
//
//	driver.go      Driver, Table, Builtin
//	spec.go        Spec: what a parsed spec says, with its references, env names and claims
//	walk.go        reading JSON trees with pointers; refusals name the place
//	field.go       the field table: types, reference targets, binding marks
//	names.go       grammars of UIDs, binding names, host names
//	vars.go        limits of var values
//	worker.go, version.go, deployment.go, artifact.go, attachment.go, trigger.go, data.go, migration.go   the drivers
//	observe.go     observed, output and conditions
//
// Invariants: everything here is a pure function of its arguments. A Form identity is opaque: behaviour hangs on the
// driver, never on a part of the URL. Parsing bounds every count and length and cannot panic.
//
// Not here: who may do what, whether references resolve, the rules between Resources (packages state and rules).
package form
