// Package userwasm runs the WebAssembly modules that workers bring, beside the JavaScript engine (module-worker §2.1).
//
//	compiler.go  Compiler: how many modules the node compiles at once
//	library.go   Library: the compiled modules of one version, and the runtime that they live in
//	module.go    Module: one compiled module
//	state.go     the Companion of an instance: memories, tables, globals, instances and functions, by number
//	records.go   what of it a snapshot holds, and how it comes back
//	memory.go    memories: windows of the guest's own memory
//	table.go     tables; global.go globals; funcs.go functions, and references to them
//	link.go      what an instance is given for its imports
//	instance.go  making instances
//	call.go      calls in both directions
//	convert.go   values
//	hosts.go     Table: the host functions behind the global WebAssembly, those of modules and instances
//	hostobjects.go  those of memories, tables and globals
//
// A module is rewritten before it is compiled (wasmpass.RewriteTenant). Its memory lies inside the guest's, so that scripts
// see it without copying and the guest's reset and snapshot cover it. Everything else that lasts is described by records: a
// snapshot saves them, and after a reset, or in a clone, the instances are made anew from them when they are first used.
//
// Invariants. Numbers from the guest are claims: they name objects of its own sandbox or nothing. No state outlives a reset.
// A tenant's code runs in a runtime that no other version has. Code of tenants asks now and then whether it must end, and
// takes bounded stack; what it occupies outside the guest's memory is bounded by the constants in state.go.
//
// Not here: the classes of the global WebAssembly (sandbox/prelude), the rewriting (sandbox/wasmpass).
package userwasm
