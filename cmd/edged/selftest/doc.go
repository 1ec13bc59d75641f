// Package selftest checks the contract of a live node from outside: it deploys two workers of its own into a Space of its own, asks
// them over the public listener, and removes everything again.
//
//	run.go        Run: Space, workers, checks, removal; how long each may take
//	report.go     Report, as text and as JSON
//	front.go      the public listener as a client sees it: requests, and bytes on a connection
//	checks.go     the list of checks; checks_*.go by subject: each says with an error what is not as the contract wants it
//	remove.go     Remove: a selftest's Space, whatever is in it
//	probes/       the workers
//
// Invariants: nothing outside a Space that this package named is touched; one request is at work at a time; every body, wait and
// repetition is bounded; the Space is emptied also when the run is interrupted, and what could not be removed is told.
//
// Not here: the machine (edged doctor), and restarts: those are what the node's own tests are for.
package selftest
