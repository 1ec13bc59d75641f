package wasmpass

import (
	"fmt"

	"edged/internal/fault"
)

// DispatchArgs is the number of arguments that a dispatcher hands on.
const DispatchArgs = 6

// AddDispatcher adds one export, name, of type "i32 i64 i64 i64 i64 i64 i64 -> i64" that calls one of the listed
// exports: its first argument is the position in the list, the others become the parameters. An i32 is the low half
// of its argument, a float its bits. Parameters beyond DispatchArgs are zero. Where there is no result it is 0. A
// position beyond the list traps. A host that keeps one handle instead of one per export saves memory per instance.
func (m *Module) AddDispatcher(name string, exports []string) error {
	const op = "wasmpass.AddDispatcher"
	n := uint32(len(exports))
	var code []byte
	for range n + 1 {
		code = append(code, opBlock, blockVoid)
	}
	code = appendU32(append(code, opLocalGet, 0, opBrTable), n)
	for i := range n + 1 {
		code = appendU32(code, i)
	}
	code = append(code, opEnd)
	for _, x := range exports {
		fn, err := m.exportedFunc(x)
		if err != nil {
			return fault.Wrap(fault.Invalid, op, err)
		}
		if code, err = appendForward(code, fn, m.typeOf(fn)); err != nil {
			return fault.Wrap(fault.Invalid, op, fmt.Errorf("export %q: %w", x, err))
		}
		code = append(code, opReturn, opEnd)
	}
	code = append(code, opUnreachable, opEnd)
	params := []byte{i32}
	for range DispatchArgs {
		params = append(params, i64)
	}
	fn := m.addFunc(FuncType{Params: string(params), Results: string(rune(i64))}, code)
	return m.addExport(op, export{name: name, kind: Func, index: fn})
}

func (m *Module) exportedFunc(name string) (uint32, error) {
	for _, e := range m.exports {
		if e.name == name && e.kind == Func {
			return e.index, nil
		}
	}
	return 0, fmt.Errorf("no function is exported as %q", name)
}

// appendForward writes the call of one export with the dispatcher's arguments.
func appendForward(code []byte, fn uint32, t FuncType) ([]byte, error) {
	for i := range len(t.Params) {
		if i < DispatchArgs {
			code = append(code, opLocalGet, byte(1+i))
		} else {
			code = append(code, opI64Const, 0)
		}
		switch t.Params[i] {
		case i32:
			code = append(code, opI32WrapI64)
		case i64:
		case f32:
			code = append(code, opI32WrapI64, opF32FromI32)
		case f64:
			code = append(code, opF64FromI64)
		default:
			return nil, fmt.Errorf("a parameter is neither integer nor float: %s", t)
		}
	}
	code = appendU32(append(code, opCall), fn)
	switch {
	case len(t.Results) > 1:
		return nil, fmt.Errorf("more than one result: %s", t)
	case t.Results == "":
		return append(code, opI64Const, 0), nil
	}
	switch t.Results[0] {
	case i32:
		return append(code, opI64ExtendU), nil
	case i64:
		return code, nil
	case f32:
		return append(code, opI32FromF32, opI64ExtendU), nil
	case f64:
		return append(code, opI64FromF64), nil
	}
	return nil, fmt.Errorf("the result is neither integer nor float: %s", t)
}
