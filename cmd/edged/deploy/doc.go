// Package deploy brings one worker onto a node: it bundles the code, uploads what the node does not hold and makes or moves
// the Resources of node-surface §6, in their legal order.
//
//	bundle.go    Bundle: TypeScript, JavaScript and npm imports to one module (esbuild)
//	entry.go     the entry that projects the declared handlers out of the default export
//	modules.go   imports that stay modules of their own: text and bytes
//	fileset.go   files, their digest, the manifest that lists them
//	names.go     names and digests
//	plan.go      want, step: what is wanted, and in which order
//	data.go      data Resources, queues, migrations
//	version.go   the version; secrets.go: which one is meant, and the values that a new one needs
//	attach.go    addresses, schedules, consumers, and what of them leaves
//	survey.go    what is there; what can be refused at once
//	foresee.go   what would be done, and what the node would refuse (previews)
//	weights.go   the next distribution of a deployment
//	ensure.go    one Resource: found, made, repaired or moved
//	run.go       Run: all of them, in order
//	report.go    what was done, for people
//	worker.go    Worker: one that is deployed, with its versions
//	shift.go     Shift: other weights; rollback.go: Rollback: the distribution before
//	teardown.go  Dependents, Teardown: a worker and all that was made for it, in legal order
//
// Invariants: the same sources give the same bytes, digests and names on any machine, so a second run with nothing changed
// mutates nothing. Whatever can be refused beforehand is refused before the first mutation. A run that failed half-way is
// taken up by the next.
//
// Not here: reading worker.toml (package manifest), the wire (package client).
package deploy
