package userwasm

import (
	"math"

	"edged/sandbox/engine"
	"edged/sandbox/wasmpass"
)

// toWasm converts a value for a tenant's code (ToWebAssemblyValue of the JavaScript interface). It may run scripts. ok is
// false if an exception is pending.
func (c *state) toWasm(v engine.Value, typ byte) (n uint64, ok bool) {
	switch typ {
	case wasmpass.TypeI32:
		i, ok := c.in.ToInt32(v)
		return uint64(uint32(i)), ok
	case wasmpass.TypeI64:
		i, ok := c.in.ToBigInt64(v)
		return uint64(i), ok
	case wasmpass.TypeF32:
		f, ok := c.in.ToFloat64(v)
		return uint64(math.Float32bits(float32(f))), ok
	case wasmpass.TypeF64:
		f, ok := c.in.ToFloat64(v)
		return math.Float64bits(f), ok
	case wasmpass.TypeV128:
		c.in.ThrowType("WebAssembly: values of the type v128 have no counterpart in JavaScript")
		return 0, false
	}
	return c.toRef(v, typ)
}

// fromWasm is the reverse; the value is the caller's.
func (c *state) fromWasm(n uint64, typ byte) engine.Value {
	switch typ {
	case wasmpass.TypeI32:
		return engine.Int(int32(uint32(n)))
	case wasmpass.TypeI64:
		return c.in.NewBigInt64(int64(n))
	case wasmpass.TypeF32:
		return engine.Float(float64(math.Float32frombits(uint32(n))))
	case wasmpass.TypeF64:
		return engine.Float(math.Float64frombits(n))
	case wasmpass.TypeV128:
		return c.in.ThrowType("WebAssembly: values of the type v128 have no counterpart in JavaScript")
	}
	return c.fromRef(n, typ)
}

// externIn gives a value of JavaScript a number that a tenant's code can hold. The values stand in an array of the guest,
// and stay there until the guest is reset.
func (c *state) externIn(v engine.Value) (uint64, bool) {
	if v.IsNull() {
		return 0, true
	}
	if !c.in.SetIndex(engine.Value(c.setup.Externs), c.setup.Count, c.in.Dup(v)) {
		return 0, false
	}
	c.setup.Count++
	return uint64(c.setup.Count), true
}

func (c *state) externOut(n uint64) engine.Value {
	if n == 0 {
		return engine.Null
	}
	if n > uint64(c.setup.Count) {
		return c.in.ThrowType("WebAssembly: the reference is not known")
	}
	return c.in.GetIndex(engine.Value(c.setup.Externs), uint32(n-1))
}
