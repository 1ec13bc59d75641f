//go:build race

package queue

const raceEnabled = true // such tests do less of the same
