package wasmpass

import (
	"fmt"
	"strconv"
)

// constant reports what a constant expression may hold.
func constant(s *scanner) bool {
	switch s.op {
	case opI32Const, opI64Const, 0x43, 0x44, opEnd, opGlobalGet, opRefFunc, 0xd0: // ref.null
		return true
	case opI32Add, opI32Sub, 0x6c, 0x7c, 0x7d, 0x7e: // i32 and i64 add, sub, mul
		return true
	}
	return false
}

// checkConstant refuses what is no constant expression: the expressions are about to become code, where more is allowed.
func (t *tenancy) checkConstant(expr []byte, globals uint32) error {
	s := scanner{reader: reader{b: expr}}
	for s.next() {
		isVector := s.op == prefixSIMD && expr[s.start+1] == 12 // v128.const
		if !constant(&s) && !isVector {
			return fmt.Errorf("opcode %#x in a constant expression", s.op)
		}
		if s.op == opGlobalGet && (s.index >= globals || t.globalsBefore[s.index].Mutable) {
			return fmt.Errorf("a constant expression reads global %d", s.index)
		}
	}
	return s.err
}

// globals makes imports of all globals that can be reached from outside, mutable ones, and moves initial values that are
// not plain into InitExport. The others that are mutable stay where they are fast.
func (t *tenancy) globals() error {
	m := t.m
	if err := t.checkGlobals(); err != nil {
		return err
	}
	imported := uint32(len(m.importedGlobals))
	shared := make([]bool, len(m.globals))
	for _, e := range t.exported {
		if e.kind == Global && e.index >= imported {
			shared[e.index-imported] = true
		}
	}
	for i := range m.imports {
		if im := &m.imports[i]; im.Kind == Global {
			t.out.Imports[i].Index = uint32(len(t.out.Globals))
			t.shareGlobal(im, GlobalType{im.elem, im.Mutable, i})
		}
	}
	index := make([]uint32, m.numGlobals()) // old -> new
	for i := range imported {
		index[i] = i
	}
	var own []global
	var imports []Import
	next := imported
	for i, g := range m.globals {
		if shared[i] {
			var im Import
			t.shareGlobal(&im, GlobalType{g.typ, g.mutable, -1})
			imports = append(imports, im)
			index[imported+uint32(i)] = next
			next++
		}
	}
	for i := range m.globals {
		if !shared[i] {
			index[imported+uint32(i)] = next
			next++
		}
	}
	remap := func(code []byte) []byte { return remapGlobals(code, index) }
	for i, g := range m.globals {
		init := remap(g.init)
		if shared[i] || readsMore(init) {
			t.init = appendU32(append(append(t.init, init[:len(init)-1]...), opGlobalSet), index[imported+uint32(i)])
			init, g.mutable = zeroOf(g.typ), true
		}
		if !shared[i] {
			g.init = init
			own = append(own, g)
		}
	}
	m.imports, m.globals = append(m.imports, imports...), own
	m.importedGlobals = make([]bool, len(t.out.Globals))
	for i := range m.importedGlobals {
		m.importedGlobals[i] = true
	}
	for i := range m.code {
		m.code[i].code = remap(m.code[i].code)
	}
	for i := range m.elems {
		m.elems[i].offset = remap(m.elems[i].offset)
		for j, x := range m.elems[i].exprs {
			m.elems[i].exprs[j] = remap(x)
			if readsMore(x) {
				return fmt.Errorf("element segment %d reads a global, which is not supported", i)
			}
		}
	}
	t.remap = remap
	for i := range t.exported {
		if e := &t.exported[i]; e.kind == Global {
			e.index = index[e.index]
		}
	}
	return nil
}

func (t *tenancy) checkGlobals() error {
	m := t.m
	imported := uint32(len(m.importedGlobals))
	for i, g := range m.globals {
		if err := t.checkConstant(g.init, imported+uint32(i)); err != nil {
			return fmt.Errorf("global %d: %w", i, err)
		}
	}
	for i, e := range m.elems {
		for _, x := range append([][]byte{e.offset}, e.exprs...) {
			if err := t.checkConstant(x, m.numGlobals()); err != nil {
				return fmt.Errorf("element segment %d: %w", i, err)
			}
		}
	}
	for i := range m.code {
		s := scanner{reader: reader{b: m.code[i].code}}
		for s.next() {
			if s.op == opGlobalSet && !m.globalMutable(s.index) {
				return fmt.Errorf("function %d sets global %d, which is constant", int(m.importedFuncs)+i, s.index)
			}
		}
	}
	for _, e := range t.exported {
		if e.kind == Global && e.index >= imported && m.globals[e.index-imported].typ == v128 {
			return fmt.Errorf("export %q: globals of the type v128 are not supported", e.name)
		}
	}
	return nil
}

func (t *tenancy) shareGlobal(im *Import, g GlobalType) {
	im.Kind, im.Mutable, im.elem = Global, true, g.Type
	im.Module, im.Name = GlobalModule+strconv.Itoa(len(t.out.Globals)), GlobalName(g.Type)
	im.desc = []byte{g.Type, 1}
	t.out.Globals = append(t.out.Globals, g)
}

func remapGlobals(code []byte, index []uint32) []byte {
	return rewrite(code, func(s *scanner) ([]byte, bool) {
		if s.op != opGlobalGet && s.op != opGlobalSet {
			return nil, false
		}
		return appendU32([]byte{s.op}, index[s.index]), true
	})
}

// readsMore reports whether an initial value is not plain: it reads a global or a table.
func readsMore(expr []byte) bool {
	s := scanner{reader: reader{b: expr}}
	for s.next() {
		if s.op == opGlobalGet || s.op == opTableGet {
			return true
		}
	}
	return false
}

// zeroOf is the constant expression of a type's first value.
func zeroOf(typ byte) []byte {
	switch typ {
	case i32:
		return []byte{opI32Const, 0, opEnd}
	case i64:
		return []byte{opI64Const, 0, opEnd}
	case f32:
		return append([]byte{0x43}, 0, 0, 0, 0, opEnd)
	case f64:
		return append([]byte{0x44}, 0, 0, 0, 0, 0, 0, 0, 0, opEnd)
	case v128:
		return append(append([]byte{prefixSIMD, 12}, make([]byte, 16)...), opEnd)
	}
	return []byte{0xd0, typ, opEnd}
}

// segments makes all segments passive and has InitExport apply those that were active.
func (t *tenancy) segments() error {
	m := t.m
	t.findDrops()
	for i := range m.elems {
		e := &m.elems[i]
		n := len(e.funcs) + len(e.exprs)
		if e.flag&elemPassive == 0 {
			if e.table >= m.importedTables {
				return fmt.Errorf("element segment %d is for table %d of %d", i, e.table, m.importedTables)
			}
			t.init = append(append(t.init, e.offset[:len(e.offset)-1]...), opI32Const, 0)
			t.init = append(appendS32(append(t.init, opI32Const), int32(n)), prefixMisc, 12)
			t.init = append(appendU32(appendU32(t.init, uint32(i)), e.table), t.dropCode(elemDrop, uint32(i))...)
			switch e.flag {
			case 0, 2:
				e.flag, e.kind = elemPassive, 0
			case 4:
				e.flag, e.kind = elemPassive|elemExprs, funcref
			case 6:
				e.flag = elemPassive | elemExprs
			}
			e.offset = nil
		}
		if _, ok := t.stretches[uint32(i)]; ok { // its functions are in the slots
			*e = elem{flag: elemPassive}
		}
	}
	if err := t.dataSegments(); err != nil {
		return err
	}
	for _, fn := range m.start {
		t.init = appendU32(append(t.init, opCall), fn)
	}
	m.start = nil
	return nil
}

func (t *tenancy) dataSegments() error {
	m := t.m
	if m.data == nil {
		if len(m.dataCount) > 0 && m.dataCount[0] != 0 {
			return fmt.Errorf("%d data segments are announced and none is there", m.dataCount[0])
		}
		return nil
	}
	r := &reader{b: m.data}
	n := r.count(2)
	if len(m.dataCount) > 0 && m.dataCount[0] != uint32(n) {
		return fmt.Errorf("%d data segments are announced and %d are there", m.dataCount[0], n)
	}
	out := appendU32(nil, uint32(n))
	for i := range n {
		flag := r.u32()
		if flag == 2 && r.u32() != 0 {
			return fmt.Errorf("data segment %d is for another memory", i)
		}
		var offset []byte
		if flag != 1 {
			offset = readConstExpr(r)
			if err := t.checkConstant(offset, uint32(len(t.globalsBefore))); err != nil {
				return fmt.Errorf("data segment %d: %w", i, err)
			}
		}
		b := r.bytes(r.u32())
		if flag != 1 && r.err == nil {
			offset = t.remap(offset)
			t.init = append(append(t.init, offset[:len(offset)-1]...), opI32Const, 0)
			t.init = append(appendS32(append(t.init, opI32Const), int32(len(b))), prefixMisc, 8)
			t.init = append(append(appendU32(t.init, uint32(i)), 0), t.dropCode(dataDrop, uint32(i))...)
		}
		out = appendBytes(append(out, 1), b)
	}
	m.data, m.dataCount, t.dataSegs = out, []uint32{uint32(n)}, uint32(n)
	return r.err
}

const (
	dataDrop = 9
	elemDrop = 13
)

// findDrops gives each segment that code uses a global that says whether it was dropped: the segment itself never is, so
// that the module's globals are all of its state.
func (t *tenancy) findDrops() {
	m := t.m
	t.dropped = map[[2]uint32]uint32{}
	for i := range m.code {
		s := scanner{reader: reader{b: m.code[i].code}}
		for s.next() {
			if s.op != prefixMisc {
				continue
			}
			kind := uint32(s.sub)
			switch s.sub {
			case 8:
				kind = dataDrop
			case 12:
				kind = elemDrop
			case dataDrop, elemDrop:
			default:
				continue
			}
			key := [2]uint32{kind, s.misc1}
			if _, ok := t.dropped[key]; !ok {
				t.dropped[key] = m.addGlobal(global{typ: i32, mutable: true, init: zeroOf(i32)})
			}
		}
	}
}

// dropCode is what stands for dropping a segment.
func (t *tenancy) dropCode(kind, segment uint32) []byte {
	if g, ok := t.dropped[[2]uint32{kind, segment}]; ok {
		return appendU32([]byte{opI32Const, 1, opGlobalSet}, g)
	}
	return nil
}
