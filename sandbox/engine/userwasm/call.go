package userwasm

import (
	"errors"
	"strings"

	"github.com/tetratelabs/wazero/api"

	"edged/sandbox/engine"
	"edged/sandbox/wasmpass"
)

// Call is engine.Companion's: a script calls an exported function.
func (c *state) Call(number uint32, args []engine.Value) engine.Value {
	if !c.ready() {
		return engine.Exception
	}
	if int(number) >= len(c.functions) {
		return c.in.ThrowType("WebAssembly: no such function")
	}
	f := c.functions[number]
	params, results := f.typ.Params, f.typ.Results
	var few [16]uint64
	stack := few[:]
	if n := max(len(params), len(results)); n > len(few) {
		stack = make([]uint64, n)
	}
	for i := range len(params) {
		v := engine.Undefined
		if i < len(args) {
			v = args[i]
		}
		n, ok := c.toWasm(v, params[i])
		if !ok {
			return engine.Exception
		}
		stack[i] = n
	}
	if strings.IndexByte(results, wasmpass.TypeV128) >= 0 {
		return c.fromWasm(0, wasmpass.TypeV128)
	}
	if !c.run(f, stack) {
		return engine.Exception
	}
	switch len(results) {
	case 0:
		return engine.Undefined
	case 1:
		return c.fromWasm(stack[0], results[0])
	}
	return c.list(stack, results)
}

// list makes an array of results.
func (c *state) list(stack []uint64, types string) engine.Value {
	items := make([]engine.Value, len(types))
	for i := range items {
		if items[i] = c.fromWasm(stack[i], types[i]); items[i].IsException() {
			return engine.Exception
		}
	}
	return c.in.NewArray(items...)
}

// run calls a function with converted arguments. It reports false if an exception is pending.
func (c *state) run(f *function, stack []uint64) bool {
	h := f.take()
	if h == nil {
		c.in.ThrowType("WebAssembly: no such function")
		return false
	}
	if !c.enter(f.inst, h, stack) {
		return false // the handle may hold a deep stack
	}
	if !f.inst.deep {
		f.idle = append(f.idle, h)
	}
	if c.nesting == 0 {
		c.shallow()
	}
	return true
}

// deeper is called when a tenant's code has used much of its stack, or all. The runtime keeps the stack of a handle as large as
// it once was: such handles are not kept.
func (in *instance) deeper() {
	if int32(uint32(in.depth.Get())) < 0 {
		panic(errOverflow)
	}
	in.deep = true
	in.state.anyDeep = true
	in.line.Set(0)
}

// shallow runs when nothing of the tenant's is being called any more.
func (c *state) shallow() {
	if !c.anyDeep {
		return
	}
	c.anyDeep = false
	for _, in := range c.instances {
		in.deep = false
		in.line.Set(wasmpass.ShallowLine)
	}
}

// enter runs a tenant's code.
func (c *state) enter(in *instance, h api.Function, stack []uint64) bool {
	if c.nesting >= maxNesting {
		c.in.ThrowRange("Maximum call stack size exceeded")
		return false
	}
	left := in.depth.Get()
	c.nesting++
	err := h.CallWithStack(&c.ctx, stack)
	c.nesting--
	if err == nil {
		return true
	}
	c.in.Unwind()
	in.depth.Set(left)
	if c.nesting == 0 { // instances between which references lead were unwound too
		for _, x := range c.instances {
			x.depth.Set(wasmpass.StackBudget)
		}
		c.shallow()
	}
	c.throw(err)
	return false
}

// throw makes an exception of what ended a call.
func (c *state) throw(err error) {
	switch text := err.Error(); {
	case errors.Is(err, errThrown):
	case errors.Is(err, errOverflow), strings.HasPrefix(text, "wasm error: stack overflow"):
		c.in.ThrowRange("Maximum call stack size exceeded")
	case strings.HasPrefix(text, trapPrefix):
		text, _, _ = strings.Cut(strings.TrimPrefix(text, trapPrefix), "\n")
		c.throwClass(c.setup.RuntimeError, text)
	default: // not a trap: a bug of ours, or of the runtime
		c.in.Panicked(err)
	}
}

const trapPrefix = "wasm error: "

// throwClass throws a new error of one of the classes that the prelude made.
func (c *state) throwClass(class uint64, text string) engine.Value {
	if class == 0 {
		return c.in.ThrowType(text)
	}
	msg := c.in.NewString([]byte(text))
	v, err := c.in.Construct(engine.Value(class), msg)
	c.in.Free(msg)
	if err != nil {
		return c.in.ThrowType(text)
	}
	return c.in.Throw(v)
}

// callImport is where a tenant's code calls what it imports.
func (c *state) callImport(in *instance, k int, stack []uint64) {
	b := &in.Functions[k]
	if b.Function >= 0 {
		if !c.run(c.functions[b.Function], stack) {
			panic(errThrown)
		}
		return
	}
	ft := in.module.Imports[k].Func
	args := make([]engine.Value, len(ft.Params))
	for i := range args {
		if args[i] = c.fromWasm(stack[i], ft.Params[i]); args[i].IsException() {
			panic(errThrown)
		}
	}
	v := c.in.TryCall(engine.Value(b.Script), engine.Undefined, args...)
	for _, a := range args {
		c.in.Free(a)
	}
	c.in.Unwind()
	if v.IsException() || !c.results(v, ft.Results, stack) {
		panic(errThrown)
	}
	c.in.Free(v)
}

// results converts what an imported function returned.
func (c *state) results(v engine.Value, types string, stack []uint64) bool {
	switch len(types) {
	case 0:
		return true
	case 1:
		n, ok := c.toWasm(v, types[0])
		stack[0] = n
		return ok
	}
	list := c.in.TryCall(engine.Value(c.setup.ToList), engine.Undefined, v)
	if list.IsException() {
		return false
	}
	length := c.in.GetProp(list, "length")
	if n, _ := length.Int(); int(n) != len(types) {
		c.in.ThrowType("WebAssembly: an imported function returned another number of values")
		return false
	}
	for i := range len(types) {
		item := c.in.GetIndex(list, uint32(i))
		n, ok := c.toWasm(item, types[i])
		c.in.Free(item)
		if !ok {
			return false
		}
		stack[i] = n
	}
	c.in.Free(list)
	return true
}
