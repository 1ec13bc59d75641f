package sandbox

import (
	"testing"

	"edged/sandbox/engine"
)

// worker-version §9: another prelude, and a host function that is new, gone, renamed or of other arity, make another facade set.
func TestFacadeSetCoversPreludeAndHosts(t *testing.T) {
	one, two := engine.Host{Name: "one", Argc: 1}, engine.Host{Name: "two", Argc: 2}
	seen := map[string]int{}
	for i, set := range []string{
		facadeSet("a", []engine.Host{one, two}), facadeSet("b", []engine.Host{one, two}), facadeSet("a", []engine.Host{one}),
		facadeSet("a", []engine.Host{two, one}), facadeSet("a", []engine.Host{one, {Name: "two", Argc: 3}}), facadeSet("a", []engine.Host{one, {Name: "three", Argc: 2}}),
	} {
		if j, ok := seen[set]; ok {
			t.Errorf("sets %d and %d have one name", j, i)
		}
		seen[set] = i
	}
}
