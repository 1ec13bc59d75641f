// Package disk is the ground under every store: one way to open Pebble, to write a small file, to own a directory, to
// refuse a format from the future, and to stop writing before the disk is full.
//
//	dir.go      Prepare, Lock, CheckFormat: whose directory this is and which format it has
//	file.go     WriteFile: a small file that is there whole or not at all
//	pebble.go   OpenPebble: the shared defaults and cache
//	space.go    Space: refuses writes while the disk is nearly full
//
// Invariants: directories are 0700 and files 0600; nothing here repairs or deletes what it does not understand.
//
// Not here: what the stores keep.
package disk
