// Package manifest reads worker.toml, the description of one worker beside its code (node-surface §6).
//
//	manifest.go   Manifest, Load: the file and what it points to
//	read.go       the keys, strictly: every fault with file and line (fuzzed)
//	vars.go       vars, and names that meet in one environment
//	secrets.go    names of secrets; values.go: the file that may hold their values
//	bindings.go   what env is bound to
//	triggers.go   crons and queue consumers
//	migrations.go the SQL files of a database
//	lines.go      which line a key stands on
//	assets.go     the directory of a static site
//	mediatype.go  media types by file name
//	fault.go      Fault, Faults
//
// Invariants: all faults are found in one pass, before anything was changed anywhere. Values are judged by the node's own
// code (package control/form), so what passes here the node accepts. The same files give the same Manifest on any machine.
//
// Not here: bundling code and talking to a node (package deploy).
package manifest
