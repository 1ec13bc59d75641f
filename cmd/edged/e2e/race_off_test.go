//go:build !race

package e2e

var raceFlag []string

// perCore is how many tests run at once for each core: most of them wait for a node, which waits for its disk or a clock.
const perCore = 2

func (row crash) repeats() bool { return false }
