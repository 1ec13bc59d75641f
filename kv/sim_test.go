package kv

import (
	"flag"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"edged/kv/replica"
)

var (
	simSeeds = flag.Int("sim.seeds", 0, "seeds of the simulation; 0 means what fits a test run")
	simFirst = flag.Uint64("sim.first", 0, "first seed of the simulation; 0 means one from the clock")
	simTrace = flag.Bool("sim.trace", false, "print the history of a seed that failed")
)

// simulate runs one seed and returns what failed, nil for nothing.
func simulate(seed uint64, rules replica.Rules, push bool) (w *world) {
	w = newWorld(seed, rules, push)
	defer w.close()
	for i := 0; i < 300 && w.err == nil; i++ {
		w.step()
		if i%100 == 99 {
			w.checkVectors("under way")
		}
		w.checkClocks()
	}
	if w.err == nil {
		w.heal()
	}
	if w.err == nil {
		w.checkEqual()
	}
	return w
}

// failures runs seeds on all cores and returns the worlds that failed, up to most.
func failures(first uint64, seeds, most int, rules replica.Rules, push bool) (failed []*world, at []uint64) {
	var mu sync.Mutex
	var next atomic.Uint64
	var wg sync.WaitGroup
	for range runtime.GOMAXPROCS(0) {
		wg.Go(func() {
			for {
				i := next.Add(1) - 1
				mu.Lock()
				enough := len(failed) >= most
				mu.Unlock()
				if i >= uint64(seeds) || enough {
					return
				}
				if w := simulate(first+i, rules, push); w.err != nil {
					mu.Lock()
					failed, at = append(failed, w), append(at, first+i)
					mu.Unlock()
				}
			}
		})
	}
	wg.Wait()
	return failed, at
}

// Replicas converge, lose nothing that was acknowledged and whose disk lived, bring nothing back that was deleted, and every
// vector is true: under partitions, loss, repetition, reordering, skew, crashes that lose what was not synced, lost disks, restored
// backups, members that were forgotten and come back, and deleted namespaces.
func TestSimulation(t *testing.T) {
	seeds, first := *simSeeds, *simFirst
	if seeds == 0 {
		seeds = simDefault
	}
	if first == 0 {
		first = uint64(time.Now().UnixNano())
	}
	failed, at := failures(first, seeds, 3, replica.Rules{}, false)
	for i, w := range failed {
		t.Errorf("seed %d: %v\nrepeat with: -run TestSimulation -sim.seeds 1 -sim.first %d -sim.trace", at[i], w.err, at[i])
		if *simTrace {
			fmt.Println(strings.Join(w.trace, "\n"))
		}
	}
}

// Each rule is needed: with any one of them off, some seed fails.
func TestSimulationNeedsEachRule(t *testing.T) {
	for _, tt := range []struct {
		name  string
		rules replica.Rules
		push  bool
		seed  uint64 // one that fails
	}{
		{"vectors are merged only at a live mark", replica.Rules{MergeEarly: true}, false, 40},
		{"no data is pushed", replica.Rules{}, true, 2},
		{"units follow each other", replica.Rules{NoContinuity: true}, false, 339},
		{"records from the future wait", replica.Rules{NoSkewGate: true}, false, 3},
		{"tombstones wait for every member", replica.Rules{NoCoverage: true}, false, 2},
		{"tombstones wait for this store too", replica.Rules{NoOwnCoverage: true}, false, 1796075500289998264},
		{"tombstones wait for what is in flight", replica.Rules{NoBarrier: true}, false, 80},
		{"tombstones wait for their grace", replica.Rules{NoGrace: true}, false, 256},
		{"feeds stop at what is durable", replica.Rules{ServeUnsynced: true}, false, 62},
		{"forgotten epochs are refused", replica.Rules{ServeAnyone: true}, false, 51},
		{"a new disk has a new epoch", replica.Rules{KeepEpoch: true}, false, 1},
		{"old backups do not join", replica.Rules{JoinOld: true}, false, 51},
		{"records of deleted namespaces are dropped", replica.Rules{TakeDead: true}, false, 158},
	} {
		t.Run(strings.ReplaceAll(tt.name, " ", "_"), func(t *testing.T) {
			if w := simulate(tt.seed, tt.rules, tt.push); w.err != nil {
				if w := simulate(tt.seed, replica.Rules{}, false); w.err != nil {
					t.Errorf("seed %d fails with all rules too: %v", tt.seed, w.err)
				}
				return
			}
			failed, at := failures(1, 3000, 1, tt.rules, tt.push)
			if len(failed) == 0 {
				t.Fatalf("no seed needs that %s", tt.name)
			}
			t.Logf("seed %d, and no more seed %d, fails without the rule: %v", at[0], tt.seed, failed[0].err)
		})
	}
}

// Dropping what the vector covers saves a look at the store and nothing else: without it the same holds.
func TestVectorDropIsAShortcut(t *testing.T) {
	failed, at := failures(1, simDefault/5, 1, replica.Rules{NoVectorDrop: true}, false)
	for i, w := range failed {
		t.Errorf("seed %d: %v", at[i], w.err)
	}
}
