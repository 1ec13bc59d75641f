// Package e2e drives the real program: it builds bin/edged, starts it as a process, deploys workers through its command
// line, talks to it over sockets, and kills it.
//
//	node_test.go      starting, stopping and killing a node; deploying; requests
//	examples_test.go  every example deployed, driven, restarted, killed and driven again
//	program_test.go   flags, configuration, data directory, listeners, drain
//	public_test.go    hostile clients, answers and guests on the public listener; what a drain waits for
//	crash_test.go     the process killed at every point of the crash matrix (host-api §7.5), with a build that has fault points
//	crash_kit_test.go that build, and requests that can be sent again
//	drain_test.go     a switch, a delete, and what still runs; a process that dies in one of them
//	backup_test.go    secrets, backup and restore, the audit
//	drill_test.go     everything saved in one command while a worker writes, and restored onto an empty directory
//	doctor_test.go    what the doctor finds beside a running node and a stopped one
//	selftest_test.go  the selftest on a sound node, on spoilt ones, and interrupted
//	status_test.go    what the status tells of a node that is broken
//	streams_test.go   both bodies, and clients that leave, through service calls and fetch
//	supervise_test.go the node killed and frozen under its supervisor, and the supervisor under it
//	upgrade_test.go   one process followed by another under load, rolled back, and killed on the way; edged drain
//	upgrade_fleet_test.go the same of members of a fleet; pacer_test.go sends the requests that none may be lost of
//	watch_test.go     a node under a real Prometheus; watch_files_test.go: its rules, dashboards and runbook
//	rolling_test.go   the program of the commit before: its data under this one, a fleet of it upgraded node by node, and back;
//	upgrade_kit_test.go builds that program
//	moved_test.go     members of a fleet at other addresses; settings_test.go: with other flags
//	survive_test.go   most voters, and the disk of one, lost
//	durable_test.go   what was acknowledged is there after kill -9
//
// Most of a test's time is waiting, so tests are parallel (twice as many as cores; as many as cores under the race detector, with which
// the program under test is built then too). Those are not that measure time or load a node fully, that change the environment, and
// that start a node again on an address that the kernel gave it: another test could have taken that.
//
// Not here: anything but tests.
package e2e
