//go:build race

package kv

// Under the race detector each round takes some ten times as long.
const (
	simDefault  = 15
	crashRounds = 8
	underRace   = true
)
