//go:build race

package state

// sequences is how many random sequences of commands TestSequencesAgreeWithReference runs.
const sequences = 500
