package userwasm

import (
	"errors"
	"time"

	"edged/sandbox/engine"
	"edged/sandbox/wasmpass"
)

// Table returns the host functions behind the global WebAssembly. Append only.
func Table() []engine.Host {
	return []engine.Host{
		{Name: "wasmSetup", Argc: 5, Fn: hostSetup},
		{Name: "wasmCompile", Argc: 1, Fn: hostCompile},
		{Name: "wasmValidate", Argc: 1, Fn: hostValidate},
		{Name: "wasmDescribe", Argc: 1, Fn: hostDescribe},
		{Name: "wasmCustom", Argc: 2, Fn: hostCustom},
		{Name: "wasmInstantiate", Argc: 2, Fn: hostInstantiate},
		{Name: "wasmMemoryNew", Argc: 2, Fn: hostMemoryNew},
		{Name: "wasmMemoryBuffer", Argc: 1, Fn: hostMemoryBuffer},
		{Name: "wasmMemoryGrow", Argc: 2, Fn: hostMemoryGrow},
		{Name: "wasmTableNew", Argc: 4, Fn: hostTableNew},
		{Name: "wasmTableSize", Argc: 1, Fn: hostTableSize},
		{Name: "wasmTableGet", Argc: 2, Fn: hostTableGet},
		{Name: "wasmTableSet", Argc: 3, Fn: hostTableSet},
		{Name: "wasmTableGrow", Argc: 3, Fn: hostTableGrow},
		{Name: "wasmGlobalNew", Argc: 3, Fn: hostGlobalNew},
		{Name: "wasmGlobalGet", Argc: 1, Fn: hostGlobalGet},
		{Name: "wasmGlobalSet", Argc: 2, Fn: hostGlobalSet},
		{Name: "wasmGlobalInit", Argc: 2, Fn: hostGlobalInit},
		{Name: "wasmTableType", Argc: 1, Fn: hostTableType},
	}
}

// open returns the state of the sandbox with everything that the snapshot describes. nil if an exception is pending: v.
func open(in *engine.Instance) (c *state, v engine.Value) {
	c = of(in)
	if c == nil || c.owner() == nil {
		return nil, in.ThrowType("WebAssembly cannot be used here")
	}
	if !c.ready() {
		return nil, engine.Exception
	}
	return c, engine.Undefined
}

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
func hostCompile(in *engine.Instance, args []engine.Value) engine.Value {
	c, v := open(in)
	if c == nil {
		return v
	}
	b, ok := in.Bytes(args[0])
	if !ok {
		return bad(in)
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
func hostValidate(in *engine.Instance, args []engine.Value) engine.Value {
	c, v := open(in)
	if c == nil {
		return v
	}
	b, ok := in.Bytes(args[0])
	if !ok {
		return bad(in)
	}
	_, err := c.compile(b, false)
	return engine.Bool(err == nil)
}

// wasmDescribe(module): [number of imports, then for each import its module, name and kind, for each export its name and kind]
func hostDescribe(in *engine.Instance, args []engine.Value) engine.Value {
	c, v := open(in)
	if c == nil {
		return v
	}
	n, _ := args[0].Int()
	m := c.module(n)
	if m == nil {
		return engine.Exception
	}
	text := func(s string) engine.Value { return in.NewString([]byte(s)) }
	items := []engine.Value{engine.Int(int32(len(m.Imports)))}
	for _, l := range m.Imports {
		items = append(items, text(l.Module), text(l.Name), engine.Int(int32(l.Kind)))
	}
	for _, l := range m.Exports {
		items = append(items, text(l.Name), engine.Int(int32(l.Kind)))
	}
	return in.NewArray(items...)
}

// wasmCustom(module, name): an array of ArrayBuffers
func hostCustom(in *engine.Instance, args []engine.Value) engine.Value {
	c, v := open(in)
	if c == nil {
		return v
	}
	n, _ := args[0].Int()
	m := c.module(n)
	name, ok := in.String(args[1])
	if m == nil {
		return engine.Exception
	}
	if !ok {
		return bad(in)
	}
	var items []engine.Value
	for _, b := range m.Custom(name) {
		items = append(items, in.NewArrayBuffer(b))
	}
	return in.NewArray(items...)
}

// wasmInstantiate(module, given): the exports, as state.exports has them. given has a kind and a value for each import.
func hostInstantiate(in *engine.Instance, args []engine.Value) engine.Value {
	c, v := open(in)
	if c == nil {
		return v
	}
	n, _ := args[0].Int()
	m := c.module(n)
	if m == nil {
		return engine.Exception
	}
	values := make([]given, len(m.Imports))
	for i := range values {
		kind := in.GetIndex(args[1], uint32(2*i))
		values[i].kind, _ = kind.Int()
		values[i].value = in.GetIndex(args[1], uint32(2*i+1))
	}
	x := c.newInstance(n, m, values)
	for _, g := range values {
		in.Free(g.value)
	}
	if x == nil {
		return engine.Exception
	}
	return c.exports(x)
}

// bound reads an optional maximum: -1 is none.
func bound(v engine.Value) (max uint32, declared, ok bool) {
	n, ok := v.Int64()
	if !ok || n < -1 || n > 1<<32-1 {
		return 0, false, false
	}
	return uint32(n), n >= 0, true
}

// wasmMemoryNew(initial, maximum): a number
func hostMemoryNew(in *engine.Instance, args []engine.Value) engine.Value {
	c, v := open(in)
	if c == nil {
		return v
	}
	min, _, ok1 := bound(args[0])
	max, declared, ok2 := bound(args[1])
	if !ok1 || !ok2 || min > 65536 || declared && (max > 65536 || max < min) {
		return bad(in)
	}
	n := c.newMemory(min, max, declared)
	if n < 0 {
		return in.ThrowRange("WebAssembly.Memory: out of memory")
	}
	return engine.Int(n)
}

// wasmMemoryBuffer(memory)
func hostMemoryBuffer(in *engine.Instance, args []engine.Value) engine.Value {
	c := of(in)
	if c == nil {
		return bad(in)
	}
	c.begin()
	m := pick(c.memories, args[0])
	if m == nil {
		return bad(in)
	}
	return m.buffer()
}

// wasmMemoryGrow(memory, pages): how many there were
func hostMemoryGrow(in *engine.Instance, args []engine.Value) engine.Value {
	c, v := open(in)
	if c == nil {
		return v
	}
	m := pick(c.memories, args[0])
	delta, _, ok := bound(args[1])
	if m == nil || !ok {
		return bad(in)
	}
	n := m.grow(delta)
	if n < 0 {
		return in.ThrowRange("WebAssembly.Memory.grow: the memory cannot grow that far")
	}
	return engine.Float(float64(n))
}

// wasmTableNew(type, initial, maximum, value): a number
func hostTableNew(in *engine.Instance, args []engine.Value) engine.Value {
	c, v := open(in)
	if c == nil {
		return v
	}
	elem, _ := args[0].Int()
	min, _, ok1 := bound(args[1])
	max, declared, ok2 := bound(args[2])
	if !ok1 || !ok2 || elem != int32(wasmpass.TypeFuncref) && elem != int32(wasmpass.TypeExternref) {
		return bad(in)
	}
	ref, ok := c.toRef(args[3], byte(elem))
	if !ok {
		return engine.Exception
	}
	n, err := c.newTable(byte(elem), 0, max, declared)
	if err != nil || n < 0 || c.tables[n].grow(c, min, ref) < 0 {
		return in.ThrowRange("WebAssembly.Table: there is no room for the table")
	}
	return engine.Int(n)
}

// wasmTableSize(table)
func hostTableSize(in *engine.Instance, args []engine.Value) engine.Value {
	c, v := open(in)
	if c == nil {
		return v
	}
	t := pick(c.tables, args[0])
	if t == nil {
		return bad(in)
	}
	return engine.Int(int32(t.size()))
}

// wasmTableGet(table, index)
func hostTableGet(in *engine.Instance, args []engine.Value) engine.Value {
	c, v := open(in)
	if c == nil {
		return v
	}
	t := pick(c.tables, args[0])
	i, _, ok := bound(args[1])
	if t == nil || !ok {
		return bad(in)
	}
	ref, ok := t.at(i)
	if !ok {
		return in.ThrowRange("WebAssembly.Table.get: the index is outside the table")
	}
	return c.fromRef(ref, t.Elem)
}

// wasmTableSet(table, index, value)
func hostTableSet(in *engine.Instance, args []engine.Value) engine.Value {
	c, v := open(in)
	if c == nil {
		return v
	}
	t := pick(c.tables, args[0])
	i, _, ok := bound(args[1])
	if t == nil || !ok {
		return bad(in)
	}
	ref, ok := c.toRef(args[2], t.Elem)
	if !ok {
		return engine.Exception
	}
	if !t.put(i, ref) {
		return in.ThrowRange("WebAssembly.Table.set: the index is outside the table")
	}
	return engine.Undefined
}

// wasmTableGrow(table, entries, value): how many there were
func hostTableGrow(in *engine.Instance, args []engine.Value) engine.Value {
	c, v := open(in)
	if c == nil {
		return v
	}
	t := pick(c.tables, args[0])
	n, _, ok := bound(args[1])
	if t == nil || !ok {
		return bad(in)
	}
	ref, ok := c.toRef(args[2], t.Elem)
	if !ok {
		return engine.Exception
	}
	old := t.grow(c, n, ref)
	if old < 0 {
		return in.ThrowRange("WebAssembly.Table.grow: the table cannot grow that far")
	}
	return engine.Int(int32(old))
}

// wasmGlobalNew(type, mutable, value): a number
func hostGlobalNew(in *engine.Instance, args []engine.Value) engine.Value {
	c, v := open(in)
	if c == nil {
		return v
	}
	typ, _ := args[0].Int()
	switch byte(typ) {
	case wasmpass.TypeI32, wasmpass.TypeI64, wasmpass.TypeF32, wasmpass.TypeF64, wasmpass.TypeFuncref, wasmpass.TypeExternref:
	default:
		return bad(in)
	}
	n, err := c.newGlobal(byte(typ), args[1].Bool())
	if err != nil || n < 0 {
		return in.ThrowRange("WebAssembly.Global: there are too many globals")
	}
	if !args[2].IsUndefined() && !c.globals[n].assign(c, args[2]) {
		return engine.Exception
	}
	return engine.Int(n)
}

// wasmGlobalGet(global)
func hostGlobalGet(in *engine.Instance, args []engine.Value) engine.Value {
	c, v := open(in)
	if c == nil {
		return v
	}
	g := pick(c.globals, args[0])
	if g == nil {
		return bad(in)
	}
	return g.value(c)
}

// wasmGlobalSet(global, value)
func hostGlobalSet(in *engine.Instance, args []engine.Value) engine.Value {
	c, v := open(in)
	if c == nil {
		return v
	}
	g := pick(c.globals, args[0])
	if g == nil {
		return bad(in)
	}
	if !g.Mutable {
		return in.ThrowType("WebAssembly.Global: the value of an immutable global cannot be set")
	}
	if !g.assign(c, args[1]) {
		return engine.Exception
	}
	return engine.Undefined
}

// wasmGlobalInit(global, value): the first value of one that was just made.
func hostGlobalInit(in *engine.Instance, args []engine.Value) engine.Value {
	c, v := open(in)
	if c == nil {
		return v
	}
	g := pick(c.globals, args[0])
	if g == nil {
		return bad(in)
	}
	if !g.assign(c, args[1]) {
		return engine.Exception
	}
	return engine.Undefined
}

// wasmTableType(table): its type, as wasmpass writes it.
func hostTableType(in *engine.Instance, args []engine.Value) engine.Value {
	c, v := open(in)
	if c == nil {
		return v
	}
	t := pick(c.tables, args[0])
	if t == nil {
		return bad(in)
	}
	return engine.Int(int32(t.Elem))
}
