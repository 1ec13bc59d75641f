package wasmpass

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
)

// Weights of a tenant's code: a step is not one turn but so many bytes of code, since a loop or a function of a hostile
// module may be a megabyte long.
const (
	bytesPerStep = 24
	smallLeaf    = 256 // bytes of a function that calls nothing and need not count: whoever calls it does
)

// drops checks the indices of segments in bodies, now that all are known.
func (t *tenancy) drops() error {
	m := t.m
	for key := range t.dropped {
		n := uint32(len(m.elems))
		if key[0] == dataDrop {
			n = t.dataSegs
		}
		if key[1] >= n {
			return fmt.Errorf("segment %d of %d", key[1], n)
		}
	}
	if len(t.out.Slots) > 0 {
		m.elems = append(m.elems, t.slotSegment())
	}
	if len(t.dropped) > 0 {
		m.elems = append(m.elems, elem{flag: elemPassive}) // what a dropped one is like
	}
	return nil
}

// meter makes the module stop when it is told to: it counts steps at loops, entries and bulk instructions, and the bytes of
// its frames.
func (t *tenancy) meter() error {
	m := t.m
	full := func(n int32) []byte { return append(appendS32([]byte{opI32Const}, n), opEnd) }
	t.counter = m.addGlobal(global{typ: i32, mutable: true, init: full(tenantCountdown)})
	t.depth = m.addGlobal(global{typ: i32, mutable: true, init: full(StackBudget)})
	t.line = m.addGlobal(global{typ: i32, mutable: true, init: full(ShallowLine)})
	t.initFunc = m.addFunc(FuncType{}, append(t.init, opEnd))
	functions := len(m.funcs)
	t.refill = m.addFunc(FuncType{}, refillCode(t.poll, t.counter, tenantCountdown))
	st := steps{refill: appendU32([]byte{opCall}, t.refill), weigh: func(size int) []byte { return weighCode(t.counter, size) }}
	t.helpers = map[string]uint32{}
	for i := range functions {
		b := m.code[i] // a copy: helpers are added meanwhile
		size := len(b.code)
		code := rewrite(b.code, t.bulk)
		calls := callsOut(b.code)
		if calls {
			code = t.wrapDepth(code, m.types[m.funcs[i]], b.locals)
		}
		m.code[i].code, _ = st.insert(code, calls || size > smallLeaf)
	}
	return nil
}

func weighCode(counter uint32, size int) []byte {
	code := appendU32([]byte{opGlobalGet}, counter)
	code = append(appendS32(append(code, opI32Const), int32(min(1+size/bytesPerStep, tenantCountdown/2))), opI32Sub)
	code = appendU32(append(code, opGlobalSet), counter)
	code = appendU32(append(code, opGlobalGet), counter)
	return append(code, opI32Const, 1, opI32LtS)
}

func callsOut(code []byte) bool {
	s := scanner{reader: reader{b: code}}
	for s.next() {
		if s.op == opCall || s.op == 0x11 {
			return true
		}
	}
	return false
}

// wrapDepth takes the bytes of a frame from what is left of the stack, and gives them back however the function returns. A
// trap does not: the host sets the global then.
func (t *tenancy) wrapDepth(code []byte, ft FuncType, locals []byte) []byte {
	n, _ := countLocals(locals)
	frame := int32(64 + 8*(len(ft.Params)+int(n)) + len(code)/4) // what is live at once in a large body may be more than its locals
	out := appendU32([]byte{opGlobalGet}, t.depth)
	out = append(appendS32(append(out, opI32Const), frame), opI32Sub)
	out = appendU32(append(out, opGlobalSet), t.depth)
	out = appendU32(append(out, opGlobalGet), t.depth)
	out = append(appendU32(append(out, opGlobalGet), t.line), opI32LtS, opIf, blockVoid)
	out = append(appendU32(append(out, opCall), t.overflow), opEnd, opBlock)
	switch len(ft.Results) {
	case 0:
		out = append(out, blockVoid)
	case 1:
		out = append(out, ft.Results[0])
	default:
		out = appendS32(out, int32(t.m.addType(FuncType{Results: ft.Results})))
	}
	depth := uint32(0) // blocks open inside the one around the body
	s := scanner{reader: reader{b: code}}
	last := 0
	for s.next() {
		switch s.op {
		case opBlock, opLoop, opIf:
			depth++
		case opEnd:
			depth--
		case opReturn:
			out = appendU32(append(append(out, code[last:s.start]...), opBr), depth)
			last = s.pos
		}
	}
	out = append(out, code[last:]...) // its end closes the block
	out = appendU32(append(out, opGlobalGet), t.depth)
	out = append(appendS32(append(out, opI32Const), frame), opI32Add)
	return append(appendU32(append(out, opGlobalSet), t.depth), opEnd)
}

// bulk replaces the bulk instructions by calls of functions that count their length, and those that drop a segment.
func (t *tenancy) bulk(s *scanner) ([]byte, bool) {
	if s.op != prefixMisc {
		return nil, false
	}
	ints := string([]byte{i32, i32, i32})
	op := append([]byte(nil), s.b[s.start:s.pos]...)
	ft := FuncType{Params: ints}
	var instead []byte // of the instruction, if its segment was dropped
	switch s.sub {
	case dataDrop, elemDrop:
		return t.dropCode(uint32(s.sub), s.misc1), true
	case 8:
		instead = droppedData
	case 12:
		instead = appendU32(appendU32([]byte{prefixMisc, 12}, uint32(len(t.m.elems)-1)), s.misc2)
		if at, ok := t.stretches[s.misc1]; ok {
			op, instead = t.initCode(at, s.misc1, s.misc2), nil
		}
	case miscCopy, miscFill, 14: // table.copy
	case 15, 17: // table.grow, table.fill
		if s.misc1 >= uint32(len(t.out.Tables)) {
			return nil, false // the compiler refuses it
		}
		elem := t.out.Tables[s.misc1].Elem
		ft = FuncType{Params: string([]byte{elem, i32}), Results: string([]byte{i32})}
		if s.sub == 17 {
			ft = FuncType{Params: string([]byte{i32, elem, i32})}
		}
	default:
		return nil, false
	}
	key := string(s.b[s.start:s.pos])
	fn, ok := t.helpers[key]
	if !ok {
		fn = t.m.addFunc(ft, t.helperCode(s, ft, op, instead))
		t.helpers[key] = fn
	}
	return appendU32([]byte{opCall}, fn), true
}

// helperCode counts by the last parameter.
func (t *tenancy) helperCode(s *scanner, ft FuncType, op, instead []byte) []byte {
	n := byte(len(ft.Params) - 1)
	shift := byte(bulkStepShift)
	if s.sub >= 12 {
		shift = 2 // entries of tables
	}
	code := appendU32([]byte{opGlobalGet}, t.counter)
	code = append(code, opLocalGet, n, opI32Const, shift, opI32ShrU, opI32Sub)
	code = appendU32(append(code, opGlobalSet), t.counter)
	code = appendU32(append(code, opGlobalGet), t.counter)
	code = append(code, opI32Const, 1, opI32LtS, opIf, blockVoid)
	code = append(appendU32(append(code, opCall), t.refill), opEnd)
	params := func() {
		for i := range n + 1 {
			code = append(code, opLocalGet, i)
		}
	}
	if s.sub == 15 {
		code = append(appendS32(append(code, opI32Const), int32(s.misc1)), opLocalGet, n)
		code = append(appendU32(append(code, opCall), t.room), opI32Eqz, opIf, blockVoid)
		code = append(appendS32(append(code, opI32Const), -1), opReturn, opEnd)
	}
	kind := uint32(dataDrop)
	if s.sub == 12 {
		kind = elemDrop
	}
	if g, ok := t.dropped[[2]uint32{kind, s.misc1}]; ok && instead != nil {
		code = append(appendU32(append(code, opGlobalGet), g), opIf, blockVoid)
		if s.sub == 12 {
			params()
		}
		code = append(append(code, instead...), opReturn, opEnd)
	}
	if _, own := t.stretches[s.misc1]; s.sub != 12 || !own { // initCode brings its own
		params()
	}
	return append(append(code, op...), opEnd)
}

// droppedData is memory.init of a segment that was dropped: it traps unless it copies nothing, and nowhere outside the memory.
var droppedData = slices.Concat(
	[]byte{opLocalGet, 1, opLocalGet, 2, 0x72, opIf, blockVoid}, // i32.or
	[]byte{opI32Const, 0x7f, opI32Load8U, 0, 0xff, 0xff, 0xff, 0xff, 0x0f, opDrop, opEnd},
	[]byte{opLocalGet, 0, opI32Const, 0, opI32Const, 0, prefixMisc, miscFill, 0})

// initCode is table.init for a segment of functions: it copies from the slots, where each is once and for all.
func (t *tenancy) initCode(at [2]uint32, segment, table uint32) []byte {
	own := uint32(len(t.out.Tables))
	code := []byte{opLocalGet, 1, opI64ExtendU, opLocalGet, 2, opI64ExtendU, 0x7c} // i64.add
	if g, ok := t.dropped[[2]uint32{elemDrop, segment}]; ok {
		code = append(code, opI64Const, 0)
		code = append(appendS64(append(code, opI64Const), int64(at[1])), opGlobalGet)
		code = append(appendU32(code, g), 0x1b) // select
	} else {
		code = appendS64(append(code, opI64Const), int64(at[1]))
	}
	code = append(code, 0x56, opIf, blockVoid) // i64.gt_u
	code = append(appendS32(append(code, opI32Const), -1), opTableGet)
	code = append(appendU32(code, own), opDrop, opEnd, opLocalGet, 0, opLocalGet, 1)
	code = append(appendS32(append(code, opI32Const), int32(at[0])), opI32Add, opLocalGet, 2, prefixMisc, 14)
	return appendU32(appendU32(code, table), own)
}

// exports names what the host calls and keeps what JavaScript sees.
func (t *tenancy) exports() error {
	m, out := t.m, t.out
	for _, e := range t.exported {
		l := Link{Name: e.name, Kind: e.kind, Index: e.index}
		if e.kind == Func {
			l.Func = m.typeOf(e.index)
		}
		out.Exports = append(out.Exports, l)
	}
	add := func(name string, kind Kind, index uint32) {
		m.exports = append(m.exports, export{name: name, kind: kind, index: index})
	}
	add(InitExport, Func, t.initFunc)
	add(DepthExport, Global, t.depth)
	add(LineExport, Global, t.line)
	for i, g := range m.globals {
		index := uint32(len(m.importedGlobals) + i)
		if g.mutable && index != t.counter && index != t.depth && index != t.line {
			add(StateExport+strconv.Itoa(len(out.State)), Global, index)
			out.State = append(out.State, g.typ)
		}
	}
	for _, fn := range slices.Sorted(maps.Keys(out.Refs)) {
		add(FuncExport+strconv.Itoa(int(fn)), Func, fn)
	}
	if len(out.Slots) > 0 {
		ft := FuncType{Params: string([]byte{i32}), Results: string([]byte{funcref})}
		code := appendU32([]byte{opLocalGet, 0, opTableGet}, uint32(len(out.Tables)))
		add(RefExport, Func, m.addFunc(ft, append(code, opEnd)))
	}
	return nil
}
