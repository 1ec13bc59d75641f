//go:build race

package engine

// slowness is what the race detector does to Go code between guest instructions.
const slowness = 4
