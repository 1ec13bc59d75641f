// Package doctor looks at the machine, the data directory and the configuration of a node, and says what stops or endangers
// it, with the consequence and the fix. It works with the node stopped and running, and changes nothing: the one file that it
// writes has no name while it is there.
//
//	report.go    Finding, Report: what was found, as text and as JSON
//	facts.go     Facts: what was looked at; Gather looks
//	machine.go   looking at kernel, clock, limits and memory
//	fsync.go     measuring what a durable write costs, bounded in time and bytes
//	data.go      looking at the data directory: its disk, formats, owner, node key
//	doors.go     looking at addresses and certificates
//	judge.go     Judge: what the facts mean; judge_*.go by subject. Pure
//
// Not here: what the node tells while it runs (edged status), and whether it keeps the contract (edged selftest).
package doctor
