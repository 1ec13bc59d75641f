package userwasm

import (
	"fmt"

	"edged/sandbox/engine"
	"edged/sandbox/wasmpass"
)

// binding is what an imported function leads to.
type binding struct {
	Script   uint64 // a function of JavaScript, an owned value
	Function int32  // or the number of another instance's, else -1
}

// What the prelude says of a value that is given for an import, beside the kinds of wasmpass.
const givenValue = 8

// given is one import's value.
type given struct {
	kind  int32
	value engine.Value // borrowed; for a table, memory or global its number
}

func (g given) number(n int) (int32, bool) {
	i, ok := g.value.Int()
	return i, ok && i >= 0 && int(i) < n
}

// link resolves the imports of an instance to be. It throws a LinkError, and reports false, if one does not fit.
func (c *state) link(in *instance, values []given) bool {
	m := in.module
	in.Functions = make([]binding, len(m.Imports))
	in.Tables, in.Globals, in.Memory = make([]int32, len(m.Tables)), make([]int32, len(m.Globals)), -1
	for i, l := range m.Imports {
		why, thrown := c.linkOne(in, i, l, values[i])
		if thrown {
			return false
		}
		if why != "" {
			c.throwClass(c.setup.LinkError, fmt.Sprintf("import %.100q.%.100q: %s", l.Module, l.Name, why))
			return false
		}
	}
	return true
}

func (c *state) linkOne(in *instance, i int, l wasmpass.Link, v given) (why string, thrown bool) {
	m := in.module
	switch l.Kind {
	case wasmpass.Func:
		if v.kind != int32(wasmpass.Func) || !c.in.IsFunction(v.value) {
			return "it is not a function", false
		}
		in.Functions[i] = binding{Function: -1}
		if f := c.byValue[v.value]; f != nil {
			if f.typ != l.Func {
				return "the function is of another type: " + f.typ.String(), false
			}
			in.Functions[i].Function = f.number
			return "", false
		}
		in.Functions[i].Script = uint64(c.in.Dup(v.value))
	case wasmpass.Table:
		n, ok := v.number(len(c.tables))
		if v.kind != int32(wasmpass.Table) || !ok {
			return "it is not a WebAssembly.Table", false
		}
		if !c.tables[n].fits(m.Tables[l.Index]) {
			return "the table is of another type or size", false
		}
		in.Tables[l.Index] = n
	case wasmpass.Memory:
		n, ok := v.number(len(c.memories))
		if v.kind != int32(wasmpass.Memory) || !ok {
			return "it is not a WebAssembly.Memory", false
		}
		if !c.memories[n].fits(*m.Memory) {
			return "the memory is of another size", false
		}
		in.Memory = n
	case wasmpass.Global:
		return c.linkGlobal(in, l, v)
	}
	return "", false
}

func (c *state) linkGlobal(in *instance, l wasmpass.Link, v given) (why string, thrown bool) {
	want := in.module.Globals[l.Index]
	if v.kind == int32(wasmpass.Global) {
		n, ok := v.number(len(c.globals))
		if !ok || c.globals[n].Type != want.Type || c.globals[n].Mutable != want.Mutable {
			return "the global is of another type", false
		}
		in.Globals[l.Index] = n
		return "", false
	}
	fits := v.kind == givenValue && !want.Mutable
	switch want.Type {
	case wasmpass.TypeI64:
		fits = fits && v.value.IsBigInt()
	case wasmpass.TypeI32, wasmpass.TypeF32, wasmpass.TypeF64:
		fits = fits && v.value.IsNumber()
	case wasmpass.TypeFuncref:
		fits = fits && (v.value.IsNull() || c.byValue[v.value] != nil)
	}
	if !fits {
		return "it is neither a WebAssembly.Global nor a value of the type", false
	}
	n, err := c.newGlobal(want.Type, false)
	if err != nil || n < 0 {
		return "there are too many globals", false
	}
	in.Globals[l.Index] = n
	return "", !c.globals[n].assign(c, v.value)
}

// own makes the memory, tables and globals that the module itself defines. A RangeError, and false, if there is no room.
func (c *state) own(in *instance) bool {
	m := in.module
	if m.Memory != nil && m.Memory.Import < 0 {
		if in.Memory = c.newMemory(m.Memory.Min, m.Memory.Max, m.Memory.HasMax); in.Memory < 0 {
			c.in.ThrowRange("WebAssembly: out of memory")
			return false
		}
	}
	for i, t := range m.Tables {
		if t.Import >= 0 {
			continue
		}
		n, err := c.newTable(t.Elem, t.Min, t.Max, t.HasMax)
		if err != nil || n < 0 {
			c.in.ThrowRange("WebAssembly: there is no room for the table")
			return false
		}
		in.Tables[i] = n
	}
	for i, g := range m.Globals {
		if g.Import >= 0 {
			continue
		}
		n, err := c.newGlobal(g.Type, g.Mutable)
		if err != nil || n < 0 {
			c.in.ThrowRange("WebAssembly: there are too many globals")
			return false
		}
		in.Globals[i] = n
	}
	return true
}
