//go:build race

package objects

const raceEnabled = true // such tests do less of the same
