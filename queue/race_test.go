//go:build race

package queue

// Tests with the race detector do less of the same.
const (
	raceEnabled    = true
	queuesPerWorld = 50
)
