// Package engine runs JavaScript: with its part userwasm it is the only door to wazero and to the engine that wazero executes.
//
//	engine.go     Options, Engine: compile once per process
//	companion.go  what runs beside a guest with state of its own (userwasm)
//	imports.go    what the guest may call: host functions, the poll, six WASI functions, nothing else
//	value.go      Value, the engine's NaN-boxed number
//	instance.go   Instance: one guest memory, and the guarded way into it
//	convert.go    values to Go and back
//	text.go       strings, read and written in place; layout.go checks that this build has them where we think
//	array.go      elements of arrays, read and replaced in place
//	object.go     counters of references, objects that are alike, promises, in place
//	mold.go       whether values are byte for byte what they were; strings that are rewritten
//	inside.go     the engine's own words, in place
//	symbol.go     names of members that no script sees
//	throw.go      exceptions, both ways
//	call.go       calls, jobs, promises
//	arena.go      what an invocation writes, side by side on few pages
//	build.go      from nothing to something worth a snapshot: scripts, modules, Snapshot
//	strip.go      scripts as bytecode of our own making, without their text
//	module.go     resolution and loading of modules, also after the snapshot
//	limits.go     CPU budget, interruption, memory
//	image.go      Image: a snapshot that instances map copy-on-write
//	imagefile.go  an Image as a file
//	reset*.go     how an instance becomes byte for byte its image again
//	watch*.go     when the written pages are known without asking the kernel
//	memory*.go    linear memory on an address reservation that never moves
//
// Invariants. An Instance belongs to one goroutine at a time; only Interrupt may come from elsewhere. Whatever the
// guest hands out (pointers, lengths, values) is a claim that is checked against the size of its memory. No public
// method panics because of what a guest did: an instance that was stopped, ran out of memory or trapped is failed, all
// its methods then return at once, and Reset or Close is all that is left to do with it. Guest memory is a view: a
// slice of it is dead after the guest ran again.
//
// Not here: web classes, events, pools, module resolution rules. Package sandbox has them.
package engine
