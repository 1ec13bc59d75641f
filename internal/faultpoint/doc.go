// Package faultpoint marks the places at which a crash is tested. In an ordinary build a mark is nothing; in a build with
// the tag faultpoints the environment variable EDGED_FAULTPOINT chooses one at which the process ends as if the power had
// gone, or stops for ever so that it can be looked at.
//
//	on.go    the marks of test builds
//	off.go   nothing, for every other build
//
// Invariants: names are "room.step" and unique; a mark stands between two effects, never inside one.
//
// Not here: what must hold after the crash. The tests of the whole program (cmd/edged/e2e) say so.
package faultpoint
