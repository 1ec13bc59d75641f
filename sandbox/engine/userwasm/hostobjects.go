package userwasm

import (
	"edged/sandbox/engine"
	"edged/sandbox/wasmpass"
)

// bound reads an optional maximum: -1 is none.
func bound(v engine.Value) (max uint32, declared, ok bool) {
	n, ok := v.Int64()
	if !ok || n < -1 || n > 1<<32-1 {
		return 0, false, false
	}
	return uint32(n), n >= 0, true
}

// wasmMemoryNew(initial, maximum): a number
func hostMemoryNew(c *state, args []engine.Value) engine.Value {
	min, _, ok1 := bound(args[0])
	max, declared, ok2 := bound(args[1])
	if !ok1 || !ok2 || min > 65536 || declared && (max > 65536 || max < min) {
		return bad(c.in)
	}
	n := c.newMemory(min, max, declared)
	if n < 0 {
		return c.in.ThrowRange("WebAssembly.Memory: out of memory")
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
func hostMemoryGrow(c *state, m *memory, args []engine.Value) engine.Value {
	delta, _, ok := bound(args[1])
	if !ok {
		return bad(c.in)
	}
	n := m.grow(delta)
	if n < 0 {
		return c.in.ThrowRange("WebAssembly.Memory.grow: the memory cannot grow that far")
	}
	return engine.Float(float64(n))
}

// wasmTableNew(type, initial, maximum, value): a number
func hostTableNew(c *state, args []engine.Value) engine.Value {
	elem, _ := args[0].Int()
	min, _, ok1 := bound(args[1])
	max, declared, ok2 := bound(args[2])
	if !ok1 || !ok2 || elem != int32(wasmpass.TypeFuncref) && elem != int32(wasmpass.TypeExternref) {
		return bad(c.in)
	}
	ref, ok := c.toRef(args[3], byte(elem))
	if !ok {
		return engine.Exception
	}
	n, err := c.newTable(byte(elem), 0, max, declared)
	if err != nil || n < 0 || c.tables[n].grow(c, min, ref) < 0 {
		return c.in.ThrowRange("WebAssembly.Table: there is no room for the table")
	}
	return engine.Int(n)
}

// wasmTableSize(table)
func hostTableSize(c *state, t *table, _ []engine.Value) engine.Value {
	return engine.Int(int32(t.size()))
}

// wasmTableGet(table, index)
func hostTableGet(c *state, t *table, args []engine.Value) engine.Value {
	i, _, ok := bound(args[1])
	if !ok {
		return bad(c.in)
	}
	ref, ok := t.at(i)
	if !ok {
		return c.in.ThrowRange("WebAssembly.Table.get: the index is outside the table")
	}
	return c.fromRef(ref, t.Elem)
}

// wasmTableSet(table, index, value)
func hostTableSet(c *state, t *table, args []engine.Value) engine.Value {
	i, _, ok := bound(args[1])
	if !ok {
		return bad(c.in)
	}
	ref, ok := c.toRef(args[2], t.Elem)
	if !ok {
		return engine.Exception
	}
	if !t.put(i, ref) {
		return c.in.ThrowRange("WebAssembly.Table.set: the index is outside the table")
	}
	return engine.Undefined
}

// wasmTableGrow(table, entries, value): how many there were
func hostTableGrow(c *state, t *table, args []engine.Value) engine.Value {
	n, _, ok := bound(args[1])
	if !ok {
		return bad(c.in)
	}
	ref, ok := c.toRef(args[2], t.Elem)
	if !ok {
		return engine.Exception
	}
	old := t.grow(c, n, ref)
	if old < 0 {
		return c.in.ThrowRange("WebAssembly.Table.grow: the table cannot grow that far")
	}
	return engine.Int(int32(old))
}

// wasmGlobalNew(type, mutable, value): a number
func hostGlobalNew(c *state, args []engine.Value) engine.Value {
	typ, _ := args[0].Int()
	switch byte(typ) {
	case wasmpass.TypeI32, wasmpass.TypeI64, wasmpass.TypeF32, wasmpass.TypeF64, wasmpass.TypeFuncref, wasmpass.TypeExternref:
	default:
		return bad(c.in)
	}
	n, err := c.newGlobal(byte(typ), args[1].Bool())
	if err != nil || n < 0 {
		return c.in.ThrowRange("WebAssembly.Global: there are too many globals")
	}
	if !args[2].IsUndefined() && !c.globals[n].assign(c, args[2]) {
		return engine.Exception
	}
	return engine.Int(n)
}

// wasmGlobalGet(global)
func hostGlobalGet(c *state, g *global, _ []engine.Value) engine.Value {
	return g.value(c)
}

// wasmGlobalSet(global, value)
func hostGlobalSet(c *state, g *global, args []engine.Value) engine.Value {
	if !g.Mutable {
		return c.in.ThrowType("WebAssembly.Global: the value of an immutable global cannot be set")
	}
	return hostGlobalInit(c, g, args)
}

// wasmGlobalInit(global, value): the first value of one that was just made.
func hostGlobalInit(c *state, g *global, args []engine.Value) engine.Value {
	if !g.assign(c, args[1]) {
		return engine.Exception
	}
	return engine.Undefined
}

// wasmTableType(table): its type, as wasmpass writes it.
func hostTableType(c *state, t *table, _ []engine.Value) engine.Value {
	return engine.Int(int32(t.Elem))
}
