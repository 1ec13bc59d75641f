package wasmpass

import (
	"fmt"
	"maps"
	"slices"
)

// NoFunction stands in Tenant.Slots for null.
const NoFunction = 1<<32 - 1

// slots gives each function that can be referred to a reference that is made once: a table of the module's own, filled
// when it is instantiated. The runtime makes a new reference, which lasts as long as the instance, whenever code says ref.func: in a loop that
// would use up the node's memory, and no two of them are alike.
func (t *tenancy) slots() error {
	m, out := t.m, t.out
	own := uint32(len(out.Tables))
	t.stretches = map[uint32][2]uint32{}
	first := map[uint32]uint32{}
	put := func(fn uint32) {
		if _, ok := first[fn]; !ok && fn != NoFunction {
			first[fn] = uint32(len(out.Slots))
		}
		out.Slots = append(out.Slots, fn)
	}
	for i := range m.elems {
		e := &m.elems[i]
		list, err := e.functions()
		if err != nil {
			return fmt.Errorf("element segment %d: %w", i, err)
		}
		if len(list) == 0 || e.flag&elemExprs != 0 && e.flag != 4 && e.kind != funcref {
			continue
		}
		t.stretches[uint32(i)] = [2]uint32{uint32(len(out.Slots)), uint32(len(list))}
		for _, fn := range list {
			put(fn)
		}
	}
	for _, fn := range slices.Sorted(maps.Keys(out.Refs)) {
		if _, ok := first[fn]; !ok {
			put(fn)
		}
	}
	out.RefNumber = first
	if len(out.Slots) > maxTenantSlots {
		return fmt.Errorf("%d references to functions; the most is %d", len(out.Slots), maxTenantSlots)
	}
	replace := func(code []byte) []byte {
		return rewrite(code, func(s *scanner) ([]byte, bool) {
			if s.op != opRefFunc {
				return nil, false
			}
			return appendU32(append(appendS32([]byte{opI32Const}, int32(first[s.index])), opTableGet), own), true
		})
	}
	for i := range m.code {
		m.code[i].code = replace(m.code[i].code)
	}
	for i := range m.globals {
		m.globals[i].init = replace(m.globals[i].init)
	}
	if len(out.Slots) > 0 {
		n := uint32(len(out.Slots))
		m.tables = []table{{elem: funcref, limits: limits{hasMax: true, min: n, max: n}}}
	}
	return nil
}

// functions lists what a segment holds, NoFunction for null.
func (e *elem) functions() ([]uint32, error) {
	list := slices.Clone(e.funcs)
	for _, x := range e.exprs {
		s := scanner{reader: reader{b: x}}
		s.next()
		switch s.op {
		case opRefFunc:
			list = append(list, s.index)
		case 0xd0: // ref.null
			list = append(list, NoFunction)
		default:
			return nil, fmt.Errorf("an entry that is neither a function nor null is not supported")
		}
		if end := x[s.pos:]; len(end) != 1 || end[0] != opEnd {
			return nil, fmt.Errorf("an entry of several instructions")
		}
	}
	return list, nil
}

// slotSegment fills the table of slots.
func (t *tenancy) slotSegment() elem {
	e := elem{flag: elemExplicit | elemExprs, table: uint32(len(t.out.Tables)), offset: []byte{opI32Const, 0, opEnd}, kind: funcref}
	for _, fn := range t.out.Slots {
		x := []byte{0xd0, funcref, opEnd}
		if fn != NoFunction {
			x = append(appendU32([]byte{opRefFunc}, fn), opEnd)
		}
		e.exprs = append(e.exprs, x)
	}
	return e
}
