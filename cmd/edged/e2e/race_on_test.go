//go:build race

package e2e

// raceFlag makes the program under test as strict as the tests.
var raceFlag = []string{"-race"}

// perCore is how many tests run at once for each core: with the detector a node keeps one busy.
const perCore = 1

// repeats tells that a row of a crash matrix takes the steps of another one with another command: once is enough to find its races, and
// what the rows say about crashes the run without the detector shows.
func (row crash) repeats() bool { return row.method != "POST" }
