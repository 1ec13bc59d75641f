package userwasm

import (
	"errors"
	"time"

	"edged/sandbox/engine"
)

// Table returns the host functions behind the global WebAssembly. Append only.
func Table() []engine.Host {
	return []engine.Host{
		{Name: "wasmSetup", Argc: 5, Fn: hostSetup},
		{Name: "wasmCompile", Argc: 1, Fn: opened(hostCompile)},
		{Name: "wasmValidate", Argc: 1, Fn: opened(hostValidate)},
		{Name: "wasmDescribe", Argc: 1, Fn: opened(hostDescribe)},
		{Name: "wasmCustom", Argc: 2, Fn: opened(hostCustom)},
		{Name: "wasmInstantiate", Argc: 2, Fn: opened(hostInstantiate)},
		{Name: "wasmMemoryNew", Argc: 2, Fn: opened(hostMemoryNew)},
		{Name: "wasmMemoryBuffer", Argc: 1, Fn: hostMemoryBuffer},
		{Name: "wasmMemoryGrow", Argc: 2, Fn: on(memories, hostMemoryGrow)},
		{Name: "wasmTableNew", Argc: 4, Fn: opened(hostTableNew)},
		{Name: "wasmTableSize", Argc: 1, Fn: on(tables, hostTableSize)},
		{Name: "wasmTableGet", Argc: 2, Fn: on(tables, hostTableGet)},
		{Name: "wasmTableSet", Argc: 3, Fn: on(tables, hostTableSet)},
		{Name: "wasmTableGrow", Argc: 3, Fn: on(tables, hostTableGrow)},
		{Name: "wasmGlobalNew", Argc: 3, Fn: opened(hostGlobalNew)},
		{Name: "wasmGlobalGet", Argc: 1, Fn: on(globals, hostGlobalGet)},
		{Name: "wasmGlobalSet", Argc: 2, Fn: on(globals, hostGlobalSet)},
		{Name: "wasmGlobalInit", Argc: 2, Fn: on(globals, hostGlobalInit)},
		{Name: "wasmTableType", Argc: 1, Fn: on(tables, hostTableType)},
	}
}

// opened gives a host function the state of the sandbox with everything that the snapshot describes.
func opened(do func(c *state, args []engine.Value) engine.Value) engine.HostFunc {
	return func(in *engine.Instance, args []engine.Value) engine.Value {
		c := of(in)
		if c == nil || c.owner() == nil {
			return in.ThrowType("WebAssembly cannot be used here")
		}
		if !c.ready() {
			return engine.Exception
		}
		return do(c, args)
	}
}

// on is opened for what is done on the object that the first argument names.
func on[T any](list func(c *state) []*T, do func(c *state, x *T, args []engine.Value) engine.Value) engine.HostFunc {
	return opened(func(c *state, args []engine.Value) engine.Value {
		x := pick(list(c), args[0])
		if x == nil {
			return bad(c.in)
		}
		return do(c, x, args)
	})
}

func memories(c *state) []*memory { return c.memories }
func tables(c *state) []*table    { return c.tables }
func globals(c *state) []*global  { return c.globals }

func bad(in *engine.Instance) engine.Value {
	return in.ThrowType("WebAssembly: wrong arguments")
}

// pick finds what a number of the guest names.
func pick[T any](list []*T, v engine.Value) *T {
	i, ok := v.Int()
	if !ok || i < 0 || int(i) >= len(list) {
		return nil
	}
	return list[i]
}

// wasmSetup(CompileError, LinkError, RuntimeError, toList, externs): once, from the prelude.
func hostSetup(in *engine.Instance, args []engine.Value) engine.Value {
	c := of(in)
	if c == nil {
		return engine.Undefined
	}
	c.begin()
	own := func(i int) uint64 { return uint64(in.Dup(args[i])) }
	c.setup = setup{CompileError: own(0), LinkError: own(1), RuntimeError: own(2), ToList: own(3), Externs: own(4)}
	return engine.Undefined
}

// wasmCompile(bytes): the number of a module. A CompileError for bytes that are none.
func hostCompile(c *state, args []engine.Value) engine.Value {
	b, ok := c.in.Bytes(args[0])
	if !ok {
		return bad(c.in)
	}
	m, err := c.compile(b, false)
	if err != nil {
		return c.throwCompile(err)
	}
	return c.addModule(moduleRecord{}, m)
}

func (c *state) addModule(r moduleRecord, m *Module) engine.Value {
	if len(c.modules) >= maxModules {
		return c.in.ThrowRange("WebAssembly: too many modules")
	}
	c.modules = append(c.modules, &moduleRef{record: r, module: m})
	return engine.Int(int32(len(c.modules) - 1))
}

func (c *state) throwCompile(err error) engine.Value {
	if c.in.Err() != nil {
		return engine.Exception
	}
	return c.throwClass(c.setup.CompileError, Reason(err))
}

// compile waits for a module. The time counts as the guest's, since its clock runs; for a module of the bundle it does not.
func (c *state) compile(b []byte, bundled bool) (*Module, error) {
	e, err := c.owner().Library().begin(b, bundled)
	if err != nil {
		return nil, err
	}
	select {
	case <-e.done:
		return e.module, e.err
	default:
	}
	if bundled {
		c.in.Pause()
		defer c.in.Resume()
	}
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case <-e.done:
			return e.module, e.err
		case <-tick.C:
			if c.in.Overdue() {
				c.in.Checkpoint()
			}
		}
	}
}

// module returns a module by its number, nil if an exception is pending.
func (c *state) module(n int32) *Module {
	if n < 0 || int(n) >= len(c.modules) {
		bad(c.in)
		return nil
	}
	ref := c.modules[n]
	if ref.module == nil {
		b, bundled := ref.record.Bytes, ref.record.Path != ""
		if bundled {
			b = c.owner().Binary(ref.record.Path)
		}
		m, err := c.compile(b, bundled)
		if err != nil {
			c.throwCompile(err)
			return nil
		}
		ref.module = m
	}
	return ref.module
}

// Import makes the module of a bundle's file and returns its number: for the text that stands for an import of it. The
// error is why the file is no module.
func Import(in *engine.Instance, path string) (int32, error) {
	c := of(in)
	if c == nil || c.owner() == nil {
		return 0, errors.New("WebAssembly cannot be used here")
	}
	if !c.ready() {
		return 0, errThrown
	}
	m, err := c.compile(c.owner().Binary(path), true)
	if err != nil {
		return 0, err
	}
	v := c.addModule(moduleRecord{Path: path}, m)
	n, ok := v.Int()
	if !ok {
		return 0, errThrown
	}
	return n, nil
}

// wasmValidate(bytes)
func hostValidate(c *state, args []engine.Value) engine.Value {
	b, ok := c.in.Bytes(args[0])
	if !ok {
		return bad(c.in)
	}
	_, err := c.compile(b, false)
	return engine.Bool(err == nil)
}

// wasmDescribe(module): [number of imports, then for each import its module, name and kind, for each export its name and kind]
func hostDescribe(c *state, args []engine.Value) engine.Value {
	n, _ := args[0].Int()
	m := c.module(n)
	if m == nil {
		return engine.Exception
	}
	text := func(s string) engine.Value { return c.in.NewString([]byte(s)) }
	items := []engine.Value{engine.Int(int32(len(m.Imports)))}
	for _, l := range m.Imports {
		items = append(items, text(l.Module), text(l.Name), engine.Int(int32(l.Kind)))
	}
	for _, l := range m.Exports {
		items = append(items, text(l.Name), engine.Int(int32(l.Kind)))
	}
	return c.in.NewArray(items...)
}

// wasmCustom(module, name): an array of ArrayBuffers
func hostCustom(c *state, args []engine.Value) engine.Value {
	n, _ := args[0].Int()
	m := c.module(n)
	name, ok := c.in.String(args[1])
	if m == nil {
		return engine.Exception
	}
	if !ok {
		return bad(c.in)
	}
	var items []engine.Value
	for _, b := range m.Custom(name) {
		items = append(items, c.in.NewArrayBuffer(b))
	}
	return c.in.NewArray(items...)
}

// wasmInstantiate(module, given): the exports, as state.exports has them. given has a kind and a value for each import.
func hostInstantiate(c *state, args []engine.Value) engine.Value {
	n, _ := args[0].Int()
	m := c.module(n)
	if m == nil {
		return engine.Exception
	}
	values := make([]given, len(m.Imports))
	for i := range values {
		kind := c.in.GetIndex(args[1], uint32(2*i))
		values[i].kind, _ = kind.Int()
		values[i].value = c.in.GetIndex(args[1], uint32(2*i+1))
	}
	x := c.newInstance(n, m, values)
	for _, g := range values {
		c.in.Free(g.value)
	}
	if x == nil {
		return engine.Exception
	}
	return c.exports(x)
}
