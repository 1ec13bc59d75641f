//go:build !race

package queue

const (
	raceEnabled    = false
	queuesPerWorld = 200
)
