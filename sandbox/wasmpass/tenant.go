package wasmpass

import (
	"fmt"
	"strconv"

	"edged/internal/fault"
)

// A Link is one import or export of a tenant's module as it was written. Func is set for functions; Table, Memory and
// Global say where the module's description of one stands.
type Link struct {
	Module, Name string
	Kind         Kind
	Index        uint32 // of the function, table or global in the rewritten module
	Func         FuncType
}

// Limits are those of a table or memory.
type Limits struct {
	Min, Max uint32
	HasMax   bool
}

// TableType describes a table. Import is its position among the imports, -1 for one that the module defines.
type TableType struct {
	Elem   byte // TypeFuncref or TypeExternref
	Import int
	Limits
}

// MemoryType describes a memory. Import is as in TableType.
type MemoryType struct {
	Import int
	Limits
}

// GlobalType describes a global that other modules or JavaScript can reach. Import is as in TableType.
type GlobalType struct {
	Type    byte
	Mutable bool
	Import  int
}

// Value types, as the binary format writes them.
const (
	TypeI32       = byte(i32)
	TypeI64       = byte(i64)
	TypeF32       = byte(f32)
	TypeF64       = byte(f64)
	TypeV128      = byte(v128)
	TypeFuncref   = byte(funcref)
	TypeExternref = byte(externref)
)

// Names in a rewritten module. Its imports are: functions from the module that RewriteTenant was given, by the number of the import, PollName and
// OverflowName; table i from TableModule+i as TableName; the memory from MemoryModule as MemoryName; shared global i
// from GlobalModule+i by GlobalName.
const (
	PollName     = "poll"     // -> i32, dropped
	OverflowName = "overflow" // -> ; called when DepthExport is below LineExport
	RoomName     = "room"     // i32 table, i32 entries -> i32: whether the table may grow by so many
	TableModule  = "t"
	TableName    = "t"
	MemoryModule = "m"
	MemoryName   = "m"
	GlobalModule = "g"

	InitExport  = "i" // -> ; applies the segments, sets the globals, runs the start function
	RefExport   = "r" // i32 number -> funcref
	DepthExport = "d" // mutable i32 global: what is left of the stack
	LineExport  = "l" // mutable i32 global: see OverflowName
	FuncExport  = "f" // + index: a function that JavaScript may reach
	StateExport = "s" // + number: a mutable global of the module's own
)

// StackBudget is what DepthExport starts from: the frames of one instance may take about so many bytes.
const StackBudget = 2 << 20

// ShallowLine is what LineExport starts from: OverflowName is called once an instance has used this much less than all. The host then sets it to 0, and
// knows that the call had a deep stack.
const ShallowLine = StackBudget - 128<<10

// Tenant is a module that a tenant brought, rewritten so that the node can run it: everything in it that lasts is outside
// of it (memory, tables, globals that can be reached) or can be read and set (StateExport), it can be stopped, and it does nothing when it is
// instantiated. To begin, call InitExport once; an instance that goes on from a saved state is given its globals instead.
type Tenant struct {
	Code    []byte
	Imports []Link
	Exports []Link
	Refs    map[uint32]FuncType // the functions that JavaScript may reach, by index; for an import, the function that calls it
	// RefNumber is what RefExport wants to be given for a function. Slots lists the function by such a number; several
	// numbers may lead to one function, by references that differ. NoFunction stands for none.
	Slots     []uint32
	RefNumber map[uint32]uint32
	Thunks    map[uint32]int // which of them stand for an imported function, and its position among the imports
	Tables    []TableType
	Memory    *MemoryType
	Globals   []GlobalType // shared ones, in the order of their numbers
	State     []byte       // types of the module's own mutable globals
	customs   []custom
	added     uint32 // functions that were added in front of the module's own
}

// Original returns the index that a function had as the module was written.
func (t *Tenant) Original(fn uint32) uint32 {
	i, thunk := t.Thunks[fn]
	if !thunk {
		return fn - t.added
	}
	n := uint32(0)
	for _, l := range t.Imports[:i] {
		if l.Kind == Func {
			n++
		}
	}
	return n
}

// Custom returns the contents of the custom sections of a name, in order, as views of the module's bytes.
func (t *Tenant) Custom(name string) (out [][]byte) {
	for _, c := range t.customs {
		if c.name == name {
			out = append(out, c.data)
		}
	}
	return out
}

// GlobalName is the name under which a shared global of a type is imported.
func GlobalName(typ byte) string { return typeNames[typ] }

// tenantCountdown is the weight of code between two polls: see tenantMeter.
const tenantCountdown = 20_000

// Bounds of one function: compiling takes time and memory that grow faster than these.
const (
	maxTenantBody   = 1 << 20
	maxTenantLocals = 4096
	maxTenantFuncs  = 100_000
	maxTenantSlots  = 1 << 17
)

// RewriteTenant decodes and rewrites a module. It will import its functions from the module called host. The error carries fault.Invalid and says why for whoever wrote the module.
func RewriteTenant(b []byte, host string) (*Tenant, error) {
	m := &Module{keep: true}
	if err := m.decode(b); err != nil {
		return nil, fault.Wrap(fault.Invalid, "wasmpass.RewriteTenant", err)
	}
	t := &tenancy{m: m, host: host, globalsBefore: m.Globals(), out: &Tenant{Refs: map[uint32]FuncType{}, RefNumber: map[uint32]uint32{}, Thunks: map[uint32]int{}, customs: m.customs}}
	for _, step := range []func() error{t.bounds, t.costs, t.functions, t.tables, t.slots, t.globals, t.segments, t.drops, t.meter, t.exports} {
		if err := step(); err != nil {
			return nil, fault.Wrap(fault.Invalid, "wasmpass.RewriteTenant", err)
		}
	}
	t.out.Code = m.Encode()
	return t.out, nil
}

// tenancy is one rewriting.
type tenancy struct {
	m    *Module
	out  *Tenant
	host string

	poll, overflow, room uint32
	init                 []byte // instructions of InitExport, without end
	dropped              map[[2]uint32]uint32
	exported             []export // what JavaScript sees
	remap                func(code []byte) []byte
	globalsBefore        []GlobalInfo // as the module was written

	stretches map[uint32][2]uint32 // of the slots: where the functions of an element segment stand, and how many

	dataSegs uint32

	line uint32

	counter, depth, refill, initFunc uint32
	helpers                          map[string]uint32 // instruction -> function that counts it
}

// bounds refuses what would cost too much, or cannot be kept.
func (t *tenancy) bounds() error {
	m := t.m
	if len(m.funcs) > maxTenantFuncs {
		return fmt.Errorf("%d functions; the most is %d", len(m.funcs), maxTenantFuncs)
	}
	memories := len(m.memories)
	for _, im := range m.imports {
		if im.Kind == Memory {
			memories++
		}
		if im.Kind == Global && im.elem == v128 {
			return fmt.Errorf("import %q.%q: globals of the type v128 are not supported", im.Module, im.Name)
		}
	}
	if memories > 1 {
		return fmt.Errorf("several memories are not supported")
	}
	for i, g := range m.globals {
		if g.typ == v128 && g.mutable {
			return fmt.Errorf("global %d: mutable globals of the type v128 are not supported", len(m.importedGlobals)+i)
		}
	}
	for i := range m.code {
		n, err := countLocals(m.code[i].locals)
		if err != nil || n > maxTenantLocals || len(m.code[i].code) > maxTenantBody {
			return fmt.Errorf("function %d is too large: %d locals and %d bytes; the most are %d and %d", int(m.importedFuncs)+i,
				n, len(m.code[i].code), maxTenantLocals, maxTenantBody)
		}
	}
	return nil
}

func countLocals(b []byte) (uint64, error) {
	r := &reader{b: b}
	var total uint64
	for n := r.count(2); n > 0 && r.err == nil; n-- {
		total += uint64(r.u32())
		r.byte()
	}
	return total, r.err
}

// functions adds our own imports, names the module's, and puts a function of its own before each that can be referred to:
// the host tells by the caller whose import it is.
func (t *tenancy) functions() (err error) {
	m := t.m
	m.exports, t.exported = nil, m.exports
	original := m.importedFuncs
	t.out.Imports = make([]Link, len(m.imports))
	for i, im := range m.imports {
		t.out.Imports[i] = Link{Module: im.Module, Name: im.Name, Kind: im.Kind, Func: im.Type}
		if im.Kind == Func {
			m.imports[i].Module, m.imports[i].Name = t.host, strconv.Itoa(i)
		}
	}
	add := func(name string, ft FuncType) (at uint32) {
		if err == nil {
			at, err = m.AddImport(t.host, name, ft)
		}
		return at
	}
	t.poll = add(PollName, FuncType{Results: string([]byte{i32})})
	t.overflow = add(OverflowName, FuncType{})
	added := uint32(2)
	if m.uses(15) { // table.grow
		t.room = add(RoomName, FuncType{Params: string([]byte{i32, i32}), Results: string([]byte{i32})})
		added++
	}
	for i := range t.exported {
		if e := &t.exported[i]; e.kind == Func && e.index >= original {
			e.index += added
		}
	}
	t.out.added = added
	t.thunks(original)
	return err
}

// uses reports whether a body has a bulk instruction of that number.
func (m *Module) uses(sub byte) bool {
	for i := range m.code {
		s := scanner{reader: reader{b: m.code[i].code}}
		for s.next() {
			if s.op == prefixMisc && s.sub == sub {
				return true
			}
		}
	}
	return false
}

func (t *tenancy) thunks(imported uint32) {
	m := t.m
	thunk := map[uint32]uint32{} // imported function -> the function that calls it
	position := make([]int, 0, imported)
	for i, im := range t.out.Imports {
		if im.Kind == Func {
			position = append(position, i)
		}
	}
	of := func(fn uint32) uint32 {
		if fn < imported {
			at, ok := thunk[fn]
			if !ok {
				ft := m.typeOf(fn)
				var code []byte
				for i := range len(ft.Params) {
					code = appendU32(append(code, opLocalGet), uint32(i))
				}
				at = m.addFunc(ft, append(appendU32(append(code, opCall), fn), opEnd))
				thunk[fn] = at
				t.out.Thunks[at] = position[fn]
			}
			fn = at
		}
		t.out.Refs[fn] = m.typeOf(fn)
		return fn
	}
	replace := func(code []byte) []byte {
		return rewrite(code, func(s *scanner) ([]byte, bool) {
			if s.op != opRefFunc {
				return nil, false
			}
			return appendU32([]byte{opRefFunc}, of(s.index)), true // slots replaces it
		})
	}
	for i := range t.exported {
		if t.exported[i].kind == Func {
			t.exported[i].index = of(t.exported[i].index)
		}
	}
	for i := range m.globals {
		m.globals[i].init = replace(m.globals[i].init)
	}
	for i := range m.elems {
		for j, fn := range m.elems[i].funcs {
			m.elems[i].funcs[j] = of(fn)
		}
		for j, x := range m.elems[i].exprs {
			m.elems[i].exprs[j] = replace(x)
		}
	}
	for i := range m.code {
		m.code[i].code = replace(m.code[i].code)
	}
}

// rewrite returns code with instructions replaced; the code itself if none is.
func rewrite(code []byte, with func(s *scanner) ([]byte, bool)) []byte {
	s := scanner{reader: reader{b: code}} // checked by Decode: no fault can occur
	var out []byte
	last := 0
	for s.next() {
		if b, ok := with(&s); ok {
			out = append(append(out, code[last:s.start]...), b...)
			last = s.pos
		}
	}
	if last == 0 {
		return code
	}
	return append(out, code[last:]...)
}

// tables makes every table and the memory an import.
func (t *tenancy) tables() error {
	m := t.m
	open := []byte{0, 0} // limits that everything fits
	for i := range m.imports {
		im := &m.imports[i]
		switch im.Kind {
		case Table:
			n := len(t.out.Tables)
			t.out.Imports[i].Index = uint32(n)
			t.out.Tables = append(t.out.Tables, TableType{Elem: im.elem, Import: i, Limits: Limits{im.lim.min, im.lim.max, im.lim.hasMax}})
			im.Module, im.Name, im.desc = TableModule+strconv.Itoa(n), TableName, append([]byte{im.elem}, open...)
		case Memory:
			t.out.Memory = &MemoryType{Import: i, Limits: Limits{im.lim.min, im.lim.max, im.lim.hasMax}}
			im.Module, im.Name, im.desc = MemoryModule, MemoryName, open
		}
	}
	for _, d := range m.tables {
		n := len(t.out.Tables)
		t.out.Tables = append(t.out.Tables, TableType{Elem: d.elem, Import: -1, Limits: Limits{d.min, d.max, d.hasMax}})
		m.imports = append(m.imports, Import{Module: TableModule + strconv.Itoa(n), Name: TableName, Kind: Table, desc: append([]byte{d.elem}, open...)})
		m.importedTables++
	}
	m.tables = nil
	for _, d := range m.memories {
		t.out.Memory = &MemoryType{Import: -1, Limits: Limits{d.min, d.max, d.hasMax}}
		m.imports = append(m.imports, Import{Module: MemoryModule, Name: MemoryName, Kind: Memory, desc: open})
	}
	m.memories = nil
	if mem := t.out.Memory; mem != nil {
		if mem.Min > 65536 || mem.HasMax && (mem.Max > 65536 || mem.Max < mem.Min) {
			return fmt.Errorf("a memory of %d to %d pages is not possible", mem.Min, mem.Max)
		}
	}
	for i, d := range t.out.Tables {
		if d.HasMax && d.Max < d.Min {
			return fmt.Errorf("table %d: its maximum is below its minimum", i)
		}
	}
	for _, e := range t.exported {
		if e.kind == Table && e.index >= m.importedTables || e.kind == Memory && (e.index > 0 || t.out.Memory == nil) {
			return fmt.Errorf("export %q of a %s that does not exist", e.name, e.kind)
		}
	}
	return nil
}
