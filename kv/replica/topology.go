package replica

import (
	"math/rand/v2"
	"slices"
)

// A fleet up to MeshSize nodes pulls from everybody; in a larger one every node pulls from Fanout others.
const (
	MeshSize = 16
	Fanout   = 6
)

// Neighbours returns whom self pulls from, given the other members. Up to a mesh that is everybody. Above it half are the next
// ones in the ring of origins, which keeps the fleet connected, and half are drawn with rng, which keeps it shallow. Origins in
// avoid (peers that failed) are drawn only when nobody else is left.
func Neighbours(self Origin, others []Origin, avoid map[Origin]bool, rng *rand.Rand) []Origin {
	ring := slices.Clone(others)
	slices.Sort(ring)
	if len(ring) < MeshSize {
		return ring
	}
	at, _ := slices.BinarySearch(ring, self)
	ring = append(ring[at:len(ring):len(ring)], ring[:at]...)
	out := make([]Origin, 0, Fanout)
	for _, o := range ring {
		if len(out) < Fanout/2 && !avoid[o] {
			out = append(out, o)
		}
	}
	for _, rejected := range []bool{false, true} {
		for _, i := range rng.Perm(len(ring)) {
			if o := ring[i]; len(out) < Fanout && avoid[o] == rejected && !slices.Contains(out, o) {
				out = append(out, o)
			}
		}
	}
	return out
}
