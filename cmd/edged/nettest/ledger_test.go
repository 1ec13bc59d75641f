//go:build linux

package nettest

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
)

// ledger is what the fleet has acknowledged. Every key has one writer, which waits for each answer before it goes on.
type ledger struct {
	mu       sync.Mutex
	keys     map[string][]string // what a key may hold at the end, the last acknowledged first; "" is nothing
	acked    int
	deployed map[string]int // worker → version of the last acknowledged deploy
	begun    map[string]int // … of the newest that was begun
	answered map[string]int // node and worker → the newest version it answered with
	broken   []string       // promises
}

func newLedger() *ledger {
	return &ledger{keys: map[string][]string{}, deployed: map[string]int{}, begun: map[string]int{}, answered: map[string]int{}}
}

func (l *ledger) breaks(format string, args ...any) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.broken = append(l.broken, fmt.Sprintf(format, args...))
}

// wrote records a put of a value, or a delete with "". What was not acknowledged may have happened all the same.
func (l *ledger) wrote(key, value string, acked bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if acked {
		l.acked++
		l.keys[key] = []string{value}
	} else if may := l.keys[key]; may == nil {
		l.keys[key] = []string{"", value}
	} else {
		l.keys[key] = append(may, value)
	}
}

func (l *ledger) deploying(worker string, version int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.begun[worker] = version
}

func (l *ledger) wasDeployed(worker string, version int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.deployed[worker] = version
}

func (l *ledger) last(worker string) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.deployed[worker]
}

// saw records that a node answered with a version of a worker. A node never goes back, not even over a restart.
func (l *ledger) saw(node, worker string, version int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	at := node + " " + worker
	if was := l.answered[at]; version < was {
		l.broken = append(l.broken, fmt.Sprintf("%s answered version %d after %d", at, version, was))
	}
	if version > l.begun[worker] {
		l.broken = append(l.broken, fmt.Sprintf("%s answered version %d, and nobody deployed more than %d", at, version, l.begun[worker]))
	}
	l.answered[at] = max(l.answered[at], version)
}

// missing returns what a node that holds these values lacks, has too much or has wrong.
func (l *ledger) missing(holds map[string]string) (faults []string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, key := range slices.Sorted(maps.Keys(l.keys)) {
		if may := l.keys[key]; !slices.Contains(may, holds[key]) {
			faults = append(faults, fmt.Sprintf("%s is %q, want one of %q", key, holds[key], may))
		}
	}
	for _, key := range slices.Sorted(maps.Keys(holds)) {
		if l.keys[key] == nil && !strings.HasPrefix(key, sharedKeys) {
			faults = append(faults, fmt.Sprintf("%s is %q, and nobody wrote it", key, holds[key]))
		}
	}
	return faults
}

// The checker finds what it is there for: an acknowledged write that is lost or undone, a write that nobody made, a version that goes back.
func TestLedger(t *testing.T) {
	l := newLedger()
	l.wrote("a", "1", true)
	l.wrote("b", "1", false)
	l.wrote("c", "1", true)
	l.wrote("c", "", true)
	l.wrote("d", "1", true)
	l.wrote("d", "", false)
	for _, ok := range []map[string]string{{"a": "1", "d": "1"}, {"a": "1", "b": "1"}, {"a": "1", sharedKeys + "0": "x"}} {
		if got := l.missing(ok); len(got) > 0 {
			t.Errorf("%v: %v", ok, got)
		}
	}
	for _, bad := range []map[string]string{{}, {"a": "2"}, {"a": "1", "b": "2"}, {"a": "1", "c": "1"}, {"a": "1", "d": "2"}, {"a": "1", "e": "1"}} {
		if got := l.missing(bad); len(got) != 1 {
			t.Errorf("%v: %v", bad, got)
		}
	}
	l.deploying("w", 3)
	l.saw("n", "w", 2)
	l.saw("m", "w", 1)
	if len(l.broken) != 0 {
		t.Error(l.broken)
	}
	l.saw("n", "w", 1)
	l.saw("m", "w", 4)
	if len(l.broken) != 2 {
		t.Error(l.broken)
	}
}
