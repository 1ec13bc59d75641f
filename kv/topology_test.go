package kv

import (
	"fmt"
	"testing"

	"edged/kv/replica"
)

// Above a mesh every node reads from six others, and still all converge; members that are not read from tell their vectors.
func TestSparseFleetConverges(t *testing.T) {
	if underRace {
		t.Skip("18 stores take too long under the race detector; the same code runs there with 3")
	}
	const nodes = replica.MeshSize + 2
	fl := newFleet(t, nodes, func(_ int, f *fleetNode) { f.opt.Cache, f.opt.MemSize = testCache, 64<<10 })
	for i, f := range fl.nodes {
		mustPut(t, f.kv(), fmt.Sprint("k", i), "v", PutOptions{})
	}
	fl.equalSoon(t)
	a := fl.nodes[0]
	pulled := 0
	for _, p := range a.Lag().Peers {
		if p.Pulled {
			pulled++
		}
	}
	if pulled != replica.Fanout {
		t.Errorf("reads from %d members, want %d", pulled, replica.Fanout)
	}
	if got := listAll(t, a.kv(), "", 1000); len(got) != nodes {
		t.Errorf("%d keys, want %d", len(got), nodes)
	}
	a.askVectors(t.Context())
	a.coverMu.Lock()
	defer a.coverMu.Unlock()
	for _, m := range a.Members() {
		if len(a.coverage.Has(m.Epoch)) != nodes {
			t.Errorf("of %s a vector of %d entries is known, want %d", m.Name, len(a.coverage.Has(m.Epoch)), nodes)
		}
	}
}
