package wasmpass

import "edged/internal/fault"

// AddImport adds an imported function and returns its index. The functions that the module defines move up by one,
// so every index that a caller kept of those is stale.
func (m *Module) AddImport(module, name string, t FuncType) (uint32, error) {
	if _, ok := m.ImportedFunc(module, name); ok {
		return 0, fault.Newf(fault.Invalid, "wasmpass.AddImport", "%s.%s is imported already", module, name)
	}
	at := m.importedFuncs
	m.shiftFuncs(at)
	m.imports = append(m.imports, Import{Module: module, Name: name, Kind: Func, Type: t, typ: m.addType(t)})
	m.importedFuncs++
	return at, nil
}

// shiftFuncs makes room for one function at index at.
func (m *Module) shiftFuncs(at uint32) {
	shift := func(list []uint32) {
		for i, fn := range list {
			if fn >= at {
				list[i]++
			}
		}
	}
	shift(m.start)
	for i := range m.exports {
		if m.exports[i].kind == Func && m.exports[i].index >= at {
			m.exports[i].index++
		}
	}
	for i := range m.globals {
		m.globals[i].init = shiftCode(m.globals[i].init, at)
	}
	for _, e := range m.elems {
		shift(e.funcs)
		for i := range e.exprs {
			e.exprs[i] = shiftCode(e.exprs[i], at)
		}
	}
	for i := range m.code {
		m.code[i].code = shiftCode(m.code[i].code, at)
	}
}

// shiftCode returns code with the function indices from at on raised by one; the code itself if it has none.
func shiftCode(code []byte, at uint32) []byte {
	s := scanner{reader: reader{b: code}} // checked by Decode: no fault can occur
	var out []byte
	last := 0
	for s.next() {
		if (s.op == opCall || s.op == opRefFunc) && s.index >= at {
			if out == nil {
				out = make([]byte, 0, len(code)+len(code)/16+8)
			}
			out = append(append(out, code[last:s.start]...), s.op)
			out = appendU32(out, s.index+1)
			last = s.pos
		}
	}
	if out == nil {
		return code
	}
	return append(out, code[last:]...)
}

func (m *Module) addType(t FuncType) uint32 {
	for i, have := range m.types {
		if have == t {
			return uint32(i)
		}
	}
	m.types = append(m.types, t)
	return uint32(len(m.types) - 1)
}

// addFunc appends a function without locals; code holds its instructions, end included.
func (m *Module) addFunc(t FuncType, code []byte) uint32 {
	m.funcs = append(m.funcs, m.addType(t))
	m.code = append(m.code, body{locals: []byte{0}, code: code})
	return m.numFuncs() - 1
}

func (m *Module) addGlobal(g global) uint32 {
	m.globals = append(m.globals, g)
	return m.numGlobals() - 1
}

func (m *Module) addExport(op string, e export) error {
	for _, have := range m.exports {
		if have.name == e.name {
			return fault.Newf(fault.Invalid, op, "the module exports %q already", e.name)
		}
	}
	m.exports = append(m.exports, e)
	return nil
}

// maxTableEntries is far below what a runtime takes and far above what a compiler writes.
const maxTableEntries = 10_000_000

// AppendTable puts a function behind the last entry of table 0, which the module must define itself, and returns the
// entry's index: the table starts one entry larger.
func (m *Module) AppendTable(fn uint32) (uint32, error) {
	const op = "wasmpass.AppendTable"
	if fn >= m.numFuncs() {
		return 0, fault.Newf(fault.Invalid, op, "function %d of %d", fn, m.numFuncs())
	}
	if m.importedTables > 0 || len(m.tables) == 0 || m.tables[0].elem != funcref {
		return 0, fault.New(fault.Invalid, op, "table 0 is not a table of functions defined here")
	}
	t := &m.tables[0]
	at := t.min
	if at >= maxTableEntries {
		return 0, fault.New(fault.Invalid, op, "table 0 is full")
	}
	t.min++
	if t.hasMax && t.max < t.min {
		t.max = t.min
	}
	offset := append(appendS32([]byte{opI32Const}, int32(at)), opEnd)
	m.elems = append(m.elems, elem{offset: offset, funcs: []uint32{fn}})
	return at, nil
}
