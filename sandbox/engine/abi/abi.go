// Package abi says what the node expects of the JavaScript engine's bytes: which package they come from, which
// functions they import and export with which types, and what our pass adds. The build tool asserts all of it and the
// engine relies on it, so the two cannot disagree.
//
//	abi.go     pins, imports, other exports, constants found by measuring this one build
//	layout.go  what the pass must find inside the interpreter
//	ops.go     the exports that the dispatcher reaches, and their numbers
//
// Not here: the pass itself (sandbox/wasmpass) and anything that runs the engine (sandbox/engine).
package abi

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
)

// The engine's origin. A new version changes all of them at once, and the numbers below must then be measured anew.
const (
	PackageName    = "quickjs-wasi"
	PackageVersion = "3.7.0"
	PackageFile    = "quickjs.wasm" // inside the package
	PackageSHA256  = "c0bd8f296e18cf074969f6401b9ecb72609a1323818ec2b9bf7a8f8d740d1363"
)

// What our pass adds to the engine.
const (
	Dispatcher  = "x"         // export: i32 op, six i64 arguments -> i64; see wasmpass.Module.AddDispatcher
	Counter     = "__fuel"    // export: mutable i32 global, steps left until the next host_interrupt
	Mark        = "__marked"  // export: mutable i32 global, 1 in a host_interrupt that the bytecode interpreter asked for
	Countdown   = 10_000      // what the counter starts from and is refilled to
	HostModule  = "env"       // where the engine's own host functions and HostFast live
	HostFast    = "host_fast" // import: a C function of the kind "generic magic", reached through the table
	WASIModule  = "wasi_snapshot_preview1"
	CFuncMagic  = 1                            // the prototype number of such a function for JS_NewCFunction2
	FastType    = "i32 i64 i32 i32 i32 -> i64" // ctx, this, argc, argv, magic -> result
	InterruptFn = "host_interrupt"
)

// RandomState is the offset of the 8 bytes of Math.random's state in a JSContext, found by comparing memory before
// and after a call. sandbox/engine tests it.
const RandomState = 280

// JobList is the offset in a JSRuntime of the head of the list of promise jobs, AllocatedSize the address of the counter behind
// qjs_get_allocated_size. sandbox/engine compares both with what the engine says, once at start.
const (
	JobList       = 692
	AllocatedSize = 1165416
)

// ArenaLists is the offset in a JSRuntime of the heads of its lists of arenas: those of all arenas for each size of block,
// then those of the arenas with free blocks. sandbox/engine checks what it finds there.
const ArenaLists = 40

// The list of a JSContext's modules, and what a JSModuleDef says of its evaluation. sandbox/engine tests them.
const (
	ModuleList      = 296 // offset in a JSContext of the list's head
	ModuleLink      = 4   // offset in a module of its place in the list: previous, next
	ModuleStatus    = 95  // offset of the byte that says how far it is
	ModuleEvaluated = 5   // its value when the module has run
	ModuleWaits     = 124 // offset of the byte that is 1 while it waits for a top-level await
	ModuleBytes     = 128 // how much of a module that is
)

// A Func is a function by name; Type is in the notation of wasmpass.ParseFuncType.
type Func struct {
	Name string
	Type string
}

// An Import is a function that the engine takes from the host.
type Import struct {
	Module string
	Func
}

// Name returns the name of the export behind op, "" for an unknown one.
func (op Op) Name() string {
	if op >= opCount {
		return ""
	}
	return exports[op].Name
}

// Exports returns the functions that the dispatcher reaches, in the order of their Op. The caller owns the slice.
func Exports() []Func { return append([]Func(nil), exports[:]...) }

// Imports returns all that the unmodified engine imports; it must import nothing else. The caller owns the slice.
func Imports() []Import { return append([]Import(nil), imports[:]...) }

// Things that the engine exports besides functions.
const (
	Memory       = "memory"
	Table        = "__indirect_function_table"
	StackPointer = "__stack_pointer" // mutable i32 global, the only one
)

var imports = [...]Import{
	{HostModule, Func{"host_get_timezone_offset", "i32 i32 -> i32"}}, // seconds, high and low half -> seconds east
	{HostModule, Func{InterruptFn, "-> i32"}},                        // not 0 stops the script
	{HostModule, Func{"host_promise_rejection", "i32 i32 i32 ->"}},   // boxes of promise and reason, is handled
	{HostModule, Func{"host_module_normalize", "i32 i32 -> i32"}},    // base, name -> malloc'd name
	{HostModule, Func{"host_module_load", "i32 i32 -> i32"}},         // name, where to put the length -> malloc'd source
	{HostModule, Func{"host_call", "i32 i32 i32 i32 i32 -> i32"}},    // name, its length, this box, argc, argv -> box
	{WASIModule, Func{"clock_time_get", "i32 i64 i32 -> i32"}},
	{WASIModule, Func{"fd_close", "i32 -> i32"}},
	{WASIModule, Func{"fd_fdstat_get", "i32 i32 -> i32"}},
	{WASIModule, Func{"fd_seek", "i32 i64 i32 i32 -> i32"}},
	{WASIModule, Func{"fd_write", "i32 i32 i32 i32 -> i32"}},
	{WASIModule, Func{"random_get", "i32 i32 -> i32"}},
}

// Digest names everything in this package that decides the bytes of a built engine or the numbers used with it. A
// built engine carries it, so that one made before a change here is found out at start.
func Digest() string {
	h := sha256.New()
	fmt.Fprintln(h, PackageSHA256, Dispatcher, Counter, Mark, Countdown, HostModule, HostFast, FastType, RandomState)
	fmt.Fprintln(h, ModuleList, ModuleLink, ModuleStatus, ModuleEvaluated, ModuleWaits)
	fmt.Fprintln(h, InterpreterFunc, SwitchTable, SwitchTargets, SwitchDefault)
	fmt.Fprintln(h, DumpFlagOffset, DumpFlagMask, DumpFlagSetter, DumpTests, DumpCallees)
	for _, x := range exports {
		fmt.Fprintln(h, x.Name, x.Type)
	}
	for _, im := range imports {
		fmt.Fprintln(h, im.Module, im.Name, im.Type)
	}
	return hex.EncodeToString(h.Sum(nil))
}
