// Package wasmpass rewrites WebAssembly modules so that the node can run them: nothing in them loops without asking,
// calls into them go through one export, and a host function can be called from their table.
//
//	module.go    Module and what it says about itself: imports, exports, types
//	reader.go    bounded reading, LEB128
//	decode.go    bytes to Module
//	check.go     every function and global index, the shape of every body
//	code.go      the instruction scanner
//	encode.go    Module to bytes
//	edit.go      adding imports, functions, exports, table entries; renumbering
//	meter.go     the loop (and function entry) counters
//	loop.go      writing them into bodies
//	bulk.go      memory.copy and memory.fill count by their length
//	pattern.go   recognising and replacing instructions
//	flag.go      taking out the tests of a flag that is off
//	fold.go      writing a constant table into the switch that goes through it
//	dispatch.go  the one-export dispatcher
//	tenant*.go   modules that workers bring: state that can be saved, limits, and what holds memories, tables and globals
//
// Invariants: no input makes Decode panic, or allocate more than a small multiple of the input's size. Decode is not
// a validator: the caller compiles the result, and that judges types. It does check every function and global index,
// since an edit adds functions and a global at the end: an index that pointed nowhere before must not point at those.
// What the scanner does not know (tail calls, exceptions, threads, garbage collection, several memories) is refused.
//
// Not here: running anything, and which exports the JavaScript engine must have (sandbox/engine/abi).
package wasmpass

import (
	"fmt"
	"strings"
)

// Kind says what an import or export is.
type Kind byte

// The kinds, with their numbers in the binary format.
const (
	Func   Kind = 0
	Table  Kind = 1
	Memory Kind = 2
	Global Kind = 3
)

// String returns the word of the text format.
func (k Kind) String() string {
	if int(k) < len(kindNames) {
		return kindNames[k]
	}
	return fmt.Sprintf("kind %d", byte(k))
}

var kindNames = [...]string{"func", "table", "memory", "global"}

// Value types as the binary format writes them.
const (
	i32       = 0x7f
	i64       = 0x7e
	f32       = 0x7d
	f64       = 0x7c
	v128      = 0x7b
	funcref   = 0x70
	externref = 0x6f
)

var typeNames = map[byte]string{
	i32: "i32", i64: "i64", f32: "f32", f64: "f64", v128: "v128", funcref: "funcref", externref: "externref",
}

// FuncType is the signature of a function: one byte of the binary format per value. Comparable.
type FuncType struct {
	Params  string
	Results string
}

// ParseFuncType reads the notation that String writes, such as "i32 i64 -> i64" or "->".
func ParseFuncType(text string) (FuncType, error) {
	params, results, ok := strings.Cut(text, "->")
	if !ok {
		return FuncType{}, fmt.Errorf("signature %q has no arrow", text)
	}
	p, err := parseTypes(params)
	if err != nil {
		return FuncType{}, err
	}
	r, err := parseTypes(results)
	return FuncType{Params: p, Results: r}, err
}

func parseTypes(text string) (string, error) {
	var out []byte
word:
	for _, w := range strings.Fields(text) {
		for b, name := range typeNames {
			if name == w {
				out = append(out, b)
				continue word
			}
		}
		return "", fmt.Errorf("unknown value type %q", w)
	}
	return string(out), nil
}

// String returns the signature as "i32 i64 -> i64"; without parameters or results the side is empty.
func (t FuncType) String() string {
	var words []string
	for i := range len(t.Params) {
		words = append(words, typeNames[t.Params[i]])
	}
	words = append(words, "->")
	for i := range len(t.Results) {
		words = append(words, typeNames[t.Results[i]])
	}
	return strings.Join(words, " ")
}

// An Import is one import of a module. Type is set for functions, Mutable for globals.
type Import struct {
	Module, Name string
	Kind         Kind
	Type         FuncType
	Mutable      bool

	desc []byte // the binary description after the kind, for all but functions
	typ  uint32
	lim  limits
	elem byte // of tables and globals: the value type
}

// An Export is one export of a module. Type is set for functions, Mutable for globals.
type Export struct {
	Name    string
	Kind    Kind
	Index   uint32
	Type    FuncType
	Mutable bool
}

// A Module is a decoded module. It keeps views of the bytes it was decoded from, which must not change while it is in
// use. An edit that returned an error leaves the module unfit for further use. Not safe for concurrent use.
type Module struct {
	types     []FuncType
	imports   []Import
	funcs     []uint32 // type index of each defined function
	tables    []table
	memories  []limits
	globals   []global
	exports   []export
	start     []uint32 // none or one function index
	elems     []elem
	dataCount []uint32 // none or one
	code      []body   // same length as funcs (Decode checks)
	data      []byte   // section payload as it was; nil if absent
	customs   []custom // only if they were asked for
	keep      bool     // they are

	importedFuncs   uint32
	importedTables  uint32
	importedGlobals []bool // mutable?
}

type limits struct {
	hasMax bool
	min    uint32
	max    uint32
}

type table struct {
	elem byte
	limits
}

type global struct {
	typ     byte
	mutable bool
	init    []byte
}

type export struct {
	name  string
	kind  Kind
	index uint32
}

// elem is an element segment. Its flag decides which of the other fields are written (decode.go).
type elem struct {
	flag   uint32
	table  uint32
	offset []byte
	kind   byte
	funcs  []uint32
	exprs  [][]byte
}

type custom struct {
	name string
	data []byte
}

type body struct {
	locals []byte // the vector of local declarations, with its count
	code   []byte // instructions, closed by end
}

func (m *Module) numFuncs() uint32   { return m.importedFuncs + uint32(len(m.funcs)) }
func (m *Module) numGlobals() uint32 { return uint32(len(m.importedGlobals) + len(m.globals)) }

// typeOf returns the type of a function; the index must be in range.
func (m *Module) typeOf(fn uint32) FuncType {
	if fn >= m.importedFuncs {
		return m.types[m.funcs[fn-m.importedFuncs]]
	}
	for _, im := range m.imports {
		if im.Kind != Func {
			continue
		}
		if fn == 0 {
			return im.Type
		}
		fn--
	}
	return FuncType{}
}

// Imports returns the imports in order. The caller owns the slice.
func (m *Module) Imports() []Import { return append([]Import(nil), m.imports...) }

// Exports returns the exports in order. The caller owns the slice.
func (m *Module) Exports() []Export {
	out := make([]Export, 0, len(m.exports))
	for _, e := range m.exports {
		x := Export{Name: e.name, Kind: e.kind, Index: e.index}
		switch e.kind {
		case Func:
			x.Type = m.typeOf(e.index)
		case Global:
			x.Mutable = m.globalMutable(e.index)
		}
		out = append(out, x)
	}
	return out
}

// A GlobalInfo describes one global of a module.
type GlobalInfo struct {
	Imported bool
	Mutable  bool
}

// Globals returns the globals in index order, imported ones first. The caller owns the slice.
func (m *Module) Globals() []GlobalInfo {
	out := make([]GlobalInfo, 0, m.numGlobals())
	for _, mutable := range m.importedGlobals {
		out = append(out, GlobalInfo{Imported: true, Mutable: mutable})
	}
	for _, g := range m.globals {
		out = append(out, GlobalInfo{Mutable: g.mutable})
	}
	return out
}

func (m *Module) globalMutable(i uint32) bool {
	if n := uint32(len(m.importedGlobals)); i >= n {
		return m.globals[i-n].mutable
	}
	return m.importedGlobals[i]
}

// ImportedFunc returns the function index of an imported function; ok is false if the module does not import it.
func (m *Module) ImportedFunc(module, name string) (index uint32, ok bool) {
	for _, im := range m.imports {
		if im.Kind != Func {
			continue
		}
		if im.Module == module && im.Name == name {
			return index, true
		}
		index++
	}
	return 0, false
}
