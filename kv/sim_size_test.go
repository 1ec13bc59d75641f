//go:build !race

package kv

const (
	simDefault  = 500 // seeds of the simulation in a test run
	crashRounds = 25
	underRace   = false
)
