//go:build race

package e2e

// raceFlag makes the program under test as strict as the tests.
var raceFlag = []string{"-race"}
