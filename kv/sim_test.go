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
	}{
		{"vectors are merged only at a live mark", replica.Rules{MergeEarly: true}, false},
		{"no data is pushed", replica.Rules{}, true},
		{"apply drops what the vector covers", replica.Rules{NoVectorDrop: true}, false},
		{"units follow each other", replica.Rules{NoContinuity: true}, false},
		{"records from the future wait", replica.Rules{NoSkewGate: true}, false},
		{"tombstones wait for every member", replica.Rules{NoCoverage: true}, false},
		{"tombstones wait for what is in flight", replica.Rules{NoBarrier: true}, false},
		{"tombstones wait for their grace", replica.Rules{NoGrace: true}, false},
		{"feeds stop at what is durable", replica.Rules{ServeUnsynced: true}, false},
		{"forgotten epochs are refused", replica.Rules{ServeAnyone: true}, false},
		{"a new disk has a new epoch", replica.Rules{KeepEpoch: true}, false},
		{"old backups do not join", replica.Rules{JoinOld: true}, false},
		{"records of deleted namespaces are dropped", replica.Rules{TakeDead: true}, false},
	} {
		t.Run(strings.ReplaceAll(tt.name, " ", "_"), func(t *testing.T) {
			start := time.Now()
			failed, at := failures(1, 3000, 1, tt.rules, tt.push)
			if len(failed) == 0 {
				t.Fatalf("no seed needs that %s", tt.name)
			}
			t.Logf("seed %d after %v: %v", at[0], time.Since(start).Round(time.Millisecond), failed[0].err)
		})
	}
}
