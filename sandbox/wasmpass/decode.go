package wasmpass

import (
	"fmt"

	"edged/internal/fault"
)

const header = "\x00asm\x01\x00\x00\x00"

// Section numbers of the binary format.
const (
	secCustom = iota
	secType
	secImport
	secFunction
	secTable
	secMemory
	secGlobal
	secExport
	secStart
	secElement
	secCode
	secData
	secDataCount
)

// order is the place of each section in a module: the data count comes before the code.
var order = [...]int{
	secType: 1, secImport: 2, secFunction: 3, secTable: 4, secMemory: 5, secGlobal: 6, secExport: 7, secStart: 8,
	secElement: 9, secDataCount: 10, secCode: 11, secData: 12,
}

// Decode reads a module of the binary format, version 1. Custom sections are dropped, since names in them would no
// longer fit after an edit. The error carries fault.Invalid. The module keeps views of b.
func Decode(b []byte) (*Module, error) {
	m := &Module{}
	if err := m.decode(b); err != nil {
		return nil, fault.Wrap(fault.Invalid, "wasmpass.Decode", err)
	}
	return m, nil
}

func (m *Module) decode(b []byte) error {
	if len(b) < len(header) || string(b[:len(header)]) != header {
		return fmt.Errorf("not a WebAssembly module of version 1")
	}
	r := &reader{b: b, pos: len(header)}
	last := 0
	for r.err == nil && r.rest() > 0 {
		id := int(r.byte())
		payload := r.bytes(r.u32())
		if r.err != nil {
			break
		}
		if id == secCustom {
			if m.keep {
				c := &reader{b: payload}
				m.customs = append(m.customs, custom{name: c.name(), data: payload[c.pos:]})
				if c.err != nil {
					return fmt.Errorf("custom section: %w", c.err)
				}
			}
			continue
		}
		if id >= len(order) {
			return fmt.Errorf("unknown section %d", id)
		}
		if order[id] <= last {
			return fmt.Errorf("section %d is out of order", id)
		}
		last = order[id]
		if err := m.section(id, payload); err != nil {
			return fmt.Errorf("section %d: %w", id, err)
		}
	}
	if r.err != nil {
		return r.err
	}
	return m.check()
}

func (m *Module) section(id int, payload []byte) error {
	r := &reader{b: payload}
	switch id {
	case secType:
		m.readTypes(r)
	case secImport:
		m.readImports(r)
	case secFunction:
		m.readFunctions(r)
	case secTable:
		m.readTables(r)
	case secMemory:
		for n := r.count(2); n > 0 && r.err == nil; n-- {
			m.memories = append(m.memories, readLimits(r))
		}
	case secGlobal:
		m.readGlobals(r)
	case secExport:
		m.readExports(r)
	case secStart:
		m.start = []uint32{r.u32()}
	case secElement:
		m.readElements(r)
	case secDataCount:
		m.dataCount = []uint32{r.u32()}
	case secCode:
		m.readCode(r)
	case secData:
		m.data = payload
		return nil
	}
	if r.err == nil && r.rest() > 0 {
		r.fail("%d bytes left over", r.rest())
	}
	return r.err
}

func (m *Module) readTypes(r *reader) {
	for n := r.count(3); n > 0 && r.err == nil; n-- {
		if form := r.byte(); form != 0x60 {
			r.fail("type form %#x is not supported", form)
		}
		m.types = append(m.types, FuncType{Params: readTypeVector(r), Results: readTypeVector(r)})
	}
}

func readTypeVector(r *reader) string {
	v := r.bytes(r.u32())
	for _, t := range v {
		checkValueType(r, t)
	}
	return string(v)
}

func checkValueType(r *reader, t byte) {
	if _, ok := typeNames[t]; !ok {
		r.fail("value type %#x is not supported", t)
	}
}

func (m *Module) readImports(r *reader) {
	for n := r.count(4); n > 0 && r.err == nil; n-- {
		im := Import{Module: r.name(), Name: r.name(), Kind: Kind(r.byte())}
		start := r.pos
		switch im.Kind {
		case Func:
			im.typ = r.u32()
			if r.err == nil && int64(im.typ) >= int64(len(m.types)) {
				r.fail("type %d of %d", im.typ, len(m.types))
				return
			}
			if r.err == nil {
				im.Type = m.types[im.typ]
			}
			m.importedFuncs++
		case Table:
			t := readTable(r)
			im.elem, im.lim = t.elem, t.limits
			m.importedTables++
		case Memory:
			im.lim = readLimits(r)
		case Global:
			im.elem, im.Mutable = readGlobalType(r)
			m.importedGlobals = append(m.importedGlobals, im.Mutable)
		default:
			r.fail("import kind %d is not supported", im.Kind)
		}
		if r.err == nil {
			im.desc = r.b[start:r.pos]
		}
		m.imports = append(m.imports, im)
	}
}

func readTable(r *reader) table {
	t := table{elem: r.byte()}
	if t.elem != funcref && t.elem != externref {
		r.fail("table type %#x is not supported", t.elem)
	}
	t.limits = readLimits(r)
	return t
}

func readLimits(r *reader) limits {
	flag := r.byte()
	if flag > 1 {
		r.fail("limits %#x are not supported", flag)
	}
	l := limits{hasMax: flag == 1, min: r.u32()}
	if l.hasMax {
		l.max = r.u32()
	}
	return l
}

func readGlobalType(r *reader) (typ byte, mutable bool) {
	typ = r.byte()
	checkValueType(r, typ)
	mut := r.byte()
	if mut > 1 {
		r.fail("mutability %d", mut)
	}
	return typ, mut == 1
}

func (m *Module) readFunctions(r *reader) {
	for n := r.count(1); n > 0 && r.err == nil; n-- {
		t := r.u32()
		if int64(t) >= int64(len(m.types)) {
			r.fail("type %d of %d", t, len(m.types))
		}
		m.funcs = append(m.funcs, t)
	}
}

func (m *Module) readTables(r *reader) {
	for n := r.count(3); n > 0 && r.err == nil; n-- {
		m.tables = append(m.tables, readTable(r))
	}
}

func (m *Module) readGlobals(r *reader) {
	for n := r.count(3); n > 0 && r.err == nil; n-- {
		g := global{}
		g.typ, g.mutable = readGlobalType(r)
		g.init = readConstExpr(r)
		m.globals = append(m.globals, g)
	}
}

// readConstExpr returns the bytes of a constant expression, its end included.
func readConstExpr(r *reader) []byte {
	if r.err != nil {
		return nil
	}
	s := scanner{reader: reader{b: r.b, pos: r.pos}}
	for s.next() {
		switch s.op {
		case opEnd:
			expr := r.b[r.pos:s.pos]
			r.pos = s.pos
			return expr
		case opBlock, opLoop, opIf:
			s.fail("control flow in a constant expression")
		}
	}
	s.fail("constant expression without end")
	r.err = s.err
	return nil
}

func (m *Module) readExports(r *reader) {
	seen := map[string]bool{}
	for n := r.count(3); n > 0 && r.err == nil; n-- {
		e := export{name: r.name(), kind: Kind(r.byte()), index: r.u32()}
		if e.kind > Global {
			r.fail("export kind %d is not supported", e.kind)
		}
		if seen[e.name] {
			r.fail("two exports are named %q", e.name)
		}
		seen[e.name] = true
		m.exports = append(m.exports, e)
	}
}

// The bits of an element segment's flag: whether it is not applied at start (then bit 1 says that it only declares),
// whether it names its table, whether it holds expressions instead of function indices.
const (
	elemPassive  = 1
	elemExplicit = 2
	elemExprs    = 4
)

func (m *Module) readElements(r *reader) {
	for n := r.count(2); n > 0 && r.err == nil; n-- {
		e := elem{flag: r.u32()}
		if e.flag > 7 {
			r.fail("element flag %d is not supported", e.flag)
			return
		}
		if e.flag&elemPassive == 0 {
			if e.flag&elemExplicit != 0 {
				e.table = r.u32()
			}
			e.offset = readConstExpr(r)
		}
		if e.flag&(elemPassive|elemExplicit) != 0 {
			e.kind = r.byte()
		}
		for n := r.count(1); n > 0 && r.err == nil; n-- {
			if e.flag&elemExprs != 0 {
				e.exprs = append(e.exprs, readConstExpr(r))
			} else {
				e.funcs = append(e.funcs, r.u32())
			}
		}
		m.elems = append(m.elems, e)
	}
}

func (m *Module) readCode(r *reader) {
	for n := r.count(1); n > 0 && r.err == nil; n-- {
		b := reader{b: r.bytes(r.u32())}
		for n := b.count(2); n > 0 && b.err == nil; n-- {
			b.u32()
			checkValueType(&b, b.byte())
		}
		if b.err != nil {
			r.fail("function body %d: %v", len(m.code), b.err)
			return
		}
		m.code = append(m.code, body{locals: b.b[:b.pos], code: b.b[b.pos:]})
	}
}
