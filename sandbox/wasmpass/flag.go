package wasmpass

import (
	"fmt"
	"slices"

	"edged/internal/fault"
)

// A FlagTest describes a debug switch of the guest that is off and stays off: a bit in a structure, which one function
// tests again and again and which only one exported function can set.
type FlagTest struct {
	Function uint32 // the function that tests
	Offset   uint32 // of the byte with the bit in its structure
	Mask     int32  // the bit
	Setter   string // export that sets it
}

// FlagStats says what DropFlagTests found.
type FlagStats struct {
	Sites   int // tests that were there, all of which are gone
	Callees int // different functions that they would have called
}

// DropFlagTests takes the tests of a flag that is always off out of a function, and the setter out of the exports, so
// that the flag stays off. It knows one shape, "if (p->flag & mask) f(...)" with arguments that change nothing, and
// insists on it at every place where the function reads the byte; the setter must be the only function that writes
// there, and nothing may call it. The error carries fault.Invalid.
func (m *Module) DropFlagTests(opt FlagTest) (FlagStats, error) {
	const op = "wasmpass.DropFlagTests"
	if opt.Function < m.importedFuncs || opt.Function >= m.numFuncs() {
		return FlagStats{}, fault.Newf(fault.Invalid, op, "function %d is not defined here", opt.Function)
	}
	if err := m.dropSetter(opt); err != nil {
		return FlagStats{}, fault.Wrap(fault.Invalid, op, err)
	}
	body := &m.code[opt.Function-m.importedFuncs]
	list := instructions(body.code)
	var cuts []cut
	callees := map[uint32]bool{}
	for i := range list {
		if list[i].op != opI32Load8U || list[i].index != opt.Offset {
			continue
		}
		c, callee, err := m.flagTest(body.code, list, i, opt.Mask)
		if err != nil {
			return FlagStats{}, fault.Wrap(fault.Invalid, op, fmt.Errorf("code offset %d: %w", list[i].start, err))
		}
		cuts = append(cuts, c)
		callees[callee] = true
	}
	body.code = applyCuts(body.code, cuts)
	return FlagStats{Sites: len(cuts), Callees: len(callees)}, nil
}

// flagTest returns the cut that removes the test whose load is list[i].
func (m *Module) flagTest(code []byte, list []instruction, i int, mask int32) (c cut, callee uint32, err error) {
	if i+3 >= len(list) || !list[i+1].isConst(mask) || list[i+2].op != opI32And ||
		list[i+3].op != opIf || code[list[i+3].start+1] != blockVoid {
		return cut{}, 0, fmt.Errorf("the flag is not tested in the known way")
	}
	callee, end, err := m.flagAction(list, i+3)
	if err != nil {
		return cut{}, 0, err
	}
	c, err = addressCut(list, i)
	c.end = list[end].end
	return c, callee, err
}

// flagAction sees that the block at list[i] does nothing but push arguments and call a function without result.
func (m *Module) flagAction(list []instruction, i int) (callee uint32, end int, err error) {
	args := 0
	for j := i + 1; j+1 < len(list); j++ {
		switch list[j].op {
		case opLocalGet, opI32Const:
			args++
		case opI32Load:
		case opCall:
			callee = list[j].index
			if t := m.typeOf(callee); t.Results != "" || len(t.Params) != args || list[j+1].op != opEnd {
				return 0, 0, fmt.Errorf("the flag guards more than a call of type %s with %d arguments", t, args)
			}
			return callee, j + 1, nil
		default:
			return 0, 0, fmt.Errorf("the flag guards opcode %#x", list[j].op)
		}
	}
	return 0, 0, fmt.Errorf("the flag guards nothing")
}

// addressCut starts the cut before the load at list[i], where the computation of its address begins. An address that
// is kept in a local as well is still computed for that.
func addressCut(list []instruction, i int) (cut, error) {
	need := 1 // operands that the cut instructions take from what is before them
	for j := i - 1; j >= 0; j-- {
		switch in := list[j]; in.op {
		case opLocalGet, opI32Const:
			if need--; need == 0 {
				return cut{start: in.start}, nil
			}
		case opI32Load:
		case opI32Add:
			need++
		case opLocalTee:
			if need == 1 {
				return cut{start: in.start, put: appendU32([]byte{opLocalSet}, in.index)}, nil
			}
			return cut{}, fmt.Errorf("the flag's address is computed from several parts")
		default:
			return cut{}, fmt.Errorf("the flag's address comes from opcode %#x", in.op)
		}
	}
	return cut{}, fmt.Errorf("the flag's address comes from nowhere")
}

// dropSetter takes the setter out of the exports once it is sure that it is the only way to set the flag.
func (m *Module) dropSetter(opt FlagTest) error {
	at := slices.IndexFunc(m.exports, func(e export) bool { return e.kind == Func && e.name == opt.Setter })
	if at < 0 || m.exports[at].index < m.importedFuncs {
		return fmt.Errorf("no function defined here is exported as %q", opt.Setter)
	}
	setter := m.exports[at].index
	for i, e := range m.exports {
		if i != at && e.kind == Func && e.index == setter {
			return fmt.Errorf("%q is also exported as %q", opt.Setter, e.name)
		}
	}
	if m.refersTo(setter) {
		return fmt.Errorf("%q is used inside the module", opt.Setter)
	}
	stores := 0
	for i, b := range m.code {
		for _, in := range instructions(b.code) {
			if in.op < opFirstStore || in.op > opLastStore || in.index != opt.Offset {
				continue
			}
			if m.importedFuncs+uint32(i) != setter {
				return fmt.Errorf("function %d writes at the flag's offset too", m.importedFuncs+uint32(i))
			}
			stores++
		}
	}
	if stores != 1 {
		return fmt.Errorf("%q writes at the flag's offset %d times, want once", opt.Setter, stores)
	}
	m.exports = slices.Delete(m.exports, at, at+1)
	return nil
}

// refersTo reports whether anything but an export names the function.
func (m *Module) refersTo(fn uint32) bool {
	in := func(code []byte) bool {
		return slices.ContainsFunc(instructions(code), func(in instruction) bool {
			return (in.op == opCall || in.op == opRefFunc) && in.index == fn
		})
	}
	for _, g := range m.globals {
		if in(g.init) {
			return true
		}
	}
	for _, e := range m.elems {
		if slices.Contains(e.funcs, fn) || slices.ContainsFunc(e.exprs, in) {
			return true
		}
	}
	return slices.Contains(m.start, fn) || slices.ContainsFunc(m.code, func(b body) bool { return in(b.code) })
}
