package wasmpass

import "fmt"

// check looks at every function and global index, and at the shape of every body.
func (m *Module) check() error {
	if len(m.funcs) != len(m.code) {
		return fmt.Errorf("%d functions but %d bodies", len(m.funcs), len(m.code))
	}
	for _, fn := range m.start {
		if fn >= m.numFuncs() {
			return fmt.Errorf("start function %d of %d", fn, m.numFuncs())
		}
	}
	for _, e := range m.exports {
		if (e.kind == Func && e.index >= m.numFuncs()) || (e.kind == Global && e.index >= m.numGlobals()) {
			return fmt.Errorf("export %q of %s %d, which does not exist", e.name, e.kind, e.index)
		}
	}
	for i, g := range m.globals {
		if err := m.checkExpr(g.init); err != nil {
			return fmt.Errorf("global %d: %w", i, err)
		}
	}
	for i, e := range m.elems {
		if err := m.checkElem(e); err != nil {
			return fmt.Errorf("element segment %d: %w", i, err)
		}
	}
	if err := m.checkData(); err != nil {
		return fmt.Errorf("data: %w", err)
	}
	for i, b := range m.code {
		if err := m.checkBody(b.code); err != nil {
			return fmt.Errorf("function body %d: %w", i, err)
		}
	}
	return nil
}

func (m *Module) checkElem(e elem) error {
	for _, fn := range e.funcs {
		if fn >= m.numFuncs() {
			return fmt.Errorf("function %d of %d", fn, m.numFuncs())
		}
	}
	for _, x := range e.exprs {
		if err := m.checkExpr(x); err != nil {
			return err
		}
	}
	return m.checkExpr(e.offset)
}

func (m *Module) checkExpr(code []byte) error {
	s := scanner{reader: reader{b: code}}
	for s.next() {
		m.checkIndex(&s)
	}
	return s.err
}

// checkData reads the offsets of the data segments: they too may name globals.
func (m *Module) checkData() error {
	if m.data == nil {
		return nil
	}
	r := &reader{b: m.data}
	for n := r.count(2); n > 0 && r.err == nil; n-- {
		flag := r.u32()
		if flag > 2 {
			r.fail("data flag %d is not supported", flag)
		}
		if flag == 2 {
			r.u32()
		}
		if flag != 1 {
			if err := m.checkExpr(readConstExpr(r)); err != nil {
				return err
			}
		}
		r.bytes(r.u32())
	}
	if r.err == nil && r.rest() > 0 {
		r.fail("%d bytes left over", r.rest())
	}
	return r.err
}

// checkBody also sees that branches lead to blocks that are open, and that the last end closes the function, and only
// that one.
func (m *Module) checkBody(code []byte) error {
	s := scanner{reader: reader{b: code}}
	depth := 1
	for s.next() {
		m.checkIndex(&s)
		switch s.op {
		case opBlock, opLoop, opIf:
			depth++
		case opBr, opBrIf, opBrTable:
			if int64(s.index) >= int64(depth) {
				s.fail("branch to block %d of %d", s.index, depth)
			}
		case opEnd:
			depth--
			if depth == 0 && s.rest() > 0 {
				s.fail("code after the end")
			}
		}
	}
	if s.err == nil && depth != 0 {
		s.fail("%d blocks are left open", depth)
	}
	return s.err
}

func (m *Module) checkIndex(s *scanner) {
	switch s.op {
	case opCall, opRefFunc:
		if s.index >= m.numFuncs() {
			s.fail("function %d of %d", s.index, m.numFuncs())
		}
	case opGlobalGet, opGlobalSet:
		if s.index >= m.numGlobals() {
			s.fail("global %d of %d", s.index, m.numGlobals())
		}
	}
}
