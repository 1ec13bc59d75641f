package userwasm

import (
	"context"
	"strconv"

	"github.com/tetratelabs/wazero/api"

	"edged/sandbox/engine"
	"edged/sandbox/wasmpass"
)

type functionRecord struct {
	Instance int32
	Index    uint32 // in its module
	Script   uint64 // the function that scripts have, an owned value; 0: they have none yet
}

// function is one of an instance's that was reached from outside.
type function struct {
	functionRecord
	number  int32
	typ     wasmpass.FuncType
	name    string
	inst    *instance
	pointer uint64         // the runtime's reference, 0 until it is needed
	idle    []api.Function // handles that nobody is calling: one must not be called inside of itself
}

// functionOf returns the function of an instance at an index of its module, nil if there would be too many. An import that is another
// instance's function is that function.
func (c *state) functionOf(in *instance, index uint32) *function {
	if k, thunk := in.module.Thunks[index]; thunk {
		if n := in.Functions[k].Function; n >= 0 {
			return c.functions[n]
		}
	}
	if f := in.byIndex[index]; f != nil {
		return f
	}
	if len(c.functions) >= c.in.MaxFunctions() {
		return nil
	}
	return c.addFunction(in, functionRecord{Instance: in.number, Index: index})
}

func (c *state) addFunction(in *instance, r functionRecord) *function {
	f := &function{functionRecord: r, number: int32(len(c.functions)), typ: in.module.Refs[r.Index], inst: in}
	f.name = strconv.Itoa(int(in.module.Original(r.Index)))
	c.functions = append(c.functions, f)
	in.byIndex[r.Index] = f
	if f.Script != 0 {
		c.byValue[engine.Value(f.Script)] = f
	}
	return f
}

// script returns the function that scripts call; the reference is the caller's.
func (f *function) script(c *state) engine.Value {
	if f.Script == 0 {
		v := c.in.NewFunction(uint32(f.number), f.name, len(f.typ.Params))
		if v.IsException() {
			return v
		}
		f.Script = uint64(v)
		c.byValue[v] = f
	}
	return c.in.Dup(engine.Value(f.Script))
}

// ref returns the runtime's reference to the function.
func (f *function) ref(c *state) (uint64, bool) {
	if f.pointer == 0 {
		p, ok := f.inst.refer(f.Index)
		if !ok {
			c.in.ThrowType("WebAssembly: the function cannot be referred to")
			return 0, false
		}
		f.pointer = p
		c.byRef[p] = f
	}
	return f.pointer, true
}

// refer asks the instance for a reference to one of its functions.
func (in *instance) refer(index uint32) (uint64, bool) {
	return in.slot(in.module.RefNumber[index])
}

func (in *instance) slot(number uint32) (uint64, bool) {
	if in.refOf == nil {
		if in.refOf = in.running.ExportedFunction(wasmpass.RefExport); in.refOf == nil {
			return 0, false
		}
	}
	s := [1]uint64{uint64(number)}
	err := in.refOf.CallWithStack(context.Background(), s[:])
	return s[0], err == nil
}

// place is a function of an instance.
type place struct {
	in    *instance
	index uint32
}

// find returns where a reference leads. Only if it is not known all functions of all instances are looked at.
func (c *state) find(ref uint64) (place, bool) {
	if c.places == nil {
		c.places = map[uint64]place{}
	}
	p, ok := c.places[ref]
	for ; !ok && c.placed < len(c.instances); c.placed++ {
		in := c.instances[c.placed]
		for slot, index := range in.module.Slots {
			if n, good := in.slot(uint32(slot)); good && index != wasmpass.NoFunction {
				c.places[n] = place{in, index}
			}
		}
	}
	if !ok {
		p, ok = c.places[ref]
	}
	return p, ok
}

// functionAt returns the function that a reference leads to, nil if there is none.
func (c *state) functionAt(ref uint64) *function {
	if f := c.byRef[ref]; f != nil {
		return f
	}
	p, ok := c.find(ref)
	if !ok {
		return nil
	}
	f := c.functionOf(p.in, p.index)
	if f != nil {
		c.byRef[ref] = f
	}
	return f
}

// take returns a handle that nobody is calling.
func (f *function) take() api.Function {
	if n := len(f.idle); n > 0 {
		h := f.idle[n-1]
		f.idle = f.idle[:n-1]
		return h
	}
	return f.inst.running.ExportedFunction(wasmpass.FuncExport + strconv.Itoa(int(f.Index)))
}
