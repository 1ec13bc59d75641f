// Package testkit is what the tests of all rooms share.
//
//	testkit.go   Main: fails a package that leaks a goroutine; Rand: a seed that a failure prints
//
// Invariants: imported by _test.go files only (a lint test holds everyone to it).
//
// Not here: fakes of rooms. Those live beside their room.
package testkit

import (
	"flag"
	"math/rand/v2"
	"testing"
	"time"

	"go.uber.org/goleak"
)

var seed = flag.Uint64("seed", 0, "seed of randomised tests; 0 takes a fresh one")

// Main runs the tests of a package and fails it when a goroutine outlives them. Call it from TestMain.
func Main(m *testing.M, ignore ...goleak.Option) {
	goleak.VerifyTestMain(m, ignore...)
}

// Rand returns a generator for one test. Its seed is -seed, or fresh; a failing test prints it.
func Rand(t testing.TB) *rand.Rand {
	s := *seed
	if s == 0 {
		s = uint64(time.Now().UnixNano())
	}
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("repeat with: -run '^%s$' -seed %d", t.Name(), s)
		}
	})
	return rand.New(rand.NewPCG(s, 0))
}
