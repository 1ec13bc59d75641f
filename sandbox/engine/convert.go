package engine

import "edged/sandbox/engine/abi"

// Free gives up one reference. Under Reset nothing needs to be freed, but a host function that may be called often must not
// let the guest's heap grow. Values that are not references need no Free.
func (in *Instance) Free(v Value) {
	if v.IsHeap() && in.failure == nil && !in.count(v, -1) {
		in.op(abi.FreeValue, in.cx(), uint64(v))
	}
}

// Dup returns another reference to v.
func (in *Instance) Dup(v Value) Value {
	if !v.IsHeap() || in.failure == nil && in.count(v, +1) {
		return v
	}
	return in.opVal(abi.DupValue, in.cx(), uint64(v))
}

// Global returns the global object.
func (in *Instance) Global() Value { return in.opVal(abi.GetGlobalObject, in.cx()) }

// Host returns the object whose members are the host functions, borrowed.
func (in *Instance) Host() Value { return in.known.host }

// NewObject returns an empty object.
func (in *Instance) NewObject() Value { return in.opVal(abi.NewObject, in.cx()) }

// NewArray returns an array of items, whose ownership passes to it.
func (in *Instance) NewArray(items ...Value) Value {
	a := in.opVal(abi.NewArray, in.cx())
	for i, v := range items {
		if a.IsException() || !in.SetIndex(a, uint32(i), v) {
			return Exception
		}
	}
	return a
}

// NewBigInt64 returns a BigInt.
func (in *Instance) NewBigInt64(n int64) Value { return in.opVal(abi.NewBigInt64, in.cx(), uint64(n)) }

// NewBigUint64 returns a BigInt.
func (in *Instance) NewBigUint64(n uint64) Value { return in.opVal(abi.NewBigUint64, in.cx(), n) }

// BigInt64 returns the low 64 bits of a BigInt; false for other values.
func (in *Instance) BigInt64(v Value) (int64, bool) {
	if !v.IsBigInt() || in.opInt(abi.ToBigInt64, in.cx(), uint64(in.known.scratch), uint64(v)) != 0 {
		return 0, false
	}
	n, ok := in.u64At(in.known.scratch)
	return int64(n), ok
}

// GetProp reads a property by name, Exception if a getter threw. name must not hold a NUL.
func (in *Instance) GetProp(o Value, name string) Value {
	p := in.name(name)
	return in.opVal(abi.GetPropertyStr, in.cx(), uint64(o), uint64(p))
}

// SetProp sets a property by name, as an assignment does; the ownership of v passes. It reports whether nothing threw.
func (in *Instance) SetProp(o Value, name string, v Value) bool {
	p := in.name(name)
	return in.opInt(abi.SetPropertyStr, in.cx(), uint64(o), uint64(p), uint64(v)) > 0
}

const propConfigurableWritable = 1<<0 | 1<<1 // writable, configurable, not enumerable

// define makes an own property that is not enumerable.
func (in *Instance) define(o Value, name string, v Value) bool {
	p := in.name(name)
	return in.opInt(abi.DefinePropertyValueStr, in.cx(), uint64(o), uint64(p), uint64(v), propConfigurableWritable) > 0
}

// GetIndex reads an element, Exception if that threw.
func (in *Instance) GetIndex(o Value, i uint32) Value {
	return in.opVal(abi.GetPropertyUint32, in.cx(), uint64(o), uint64(i))
}

// SetIndex sets an element; the ownership of v passes. It reports whether nothing threw.
func (in *Instance) SetIndex(o Value, i uint32, v Value) bool {
	return in.opInt(abi.SetPropertyUint32, in.cx(), uint64(o), uint64(i), uint64(v)) > 0
}

// name puts a short C string into the I/O buffer, where the engine reads it before anything else can run.
func (in *Instance) name(s string) uint32 {
	b, ok := in.bytesAt(in.known.io, uint32(len(s))+1)
	if !ok || len(s) >= ioBytes || in.failure != nil {
		return in.known.io
	}
	b[copy(b, s)] = 0
	return in.known.io
}

// IsFunction reports whether v can be called.
func (in *Instance) IsFunction(v Value) bool {
	return v.IsObject() && in.opInt(abi.IsFunction, in.cx(), uint64(v)) > 0
}

// IsArray reports whether v is an array; a proxy of one is not.
func (in *Instance) IsArray(v Value) bool {
	return v.IsObject() && in.opInt(abi.IsArray, uint64(v)) > 0
}

// ClassID returns the engine's own number for the class of an object, 0 for other values. A proxy has a number of its
// own. The numbers mean the same in all instances of an engine; no script can forge them.
func (in *Instance) ClassID(v Value) int32 {
	if !v.IsObject() {
		return 0
	}
	return in.opInt(abi.GetClassID, uint64(v))
}

// typedUint8 is the engine's number of the type Uint8Array.
const typedUint8 = 2

// Bytes returns the bytes of a typed array or ArrayBuffer as a view of guest memory: it is dead as soon as the guest
// runs again, and every call of a method that makes a value may run it. False for other values, for a detached buffer,
// and after a failure.
func (in *Instance) Bytes(v Value) ([]byte, bool) {
	if !v.IsObject() || in.failure != nil {
		return nil, false
	}
	switch kind := in.opInt(abi.GetTypedArrayType, uint64(v)); {
	case kind == typedUint8:
		return in.buffer(abi.GetUint8Array, v)
	case kind >= 0:
		return in.typedBytes(v)
	case in.opInt(abi.IsArrayBuffer, uint64(v)) > 0:
		return in.buffer(abi.GetArrayBuffer, v)
	}
	return nil, false
}

// buffer asks for an address and a length.
func (in *Instance) buffer(get abi.Op, v Value) ([]byte, bool) {
	p := in.opPtr(get, in.cx(), uint64(in.known.scratch), uint64(v))
	n, ok := in.u32At(in.known.scratch)
	if p == 0 { // empty, or detached
		if in.opInt(abi.HasException, in.cx()) > 0 {
			in.swallow()
			return nil, false
		}
		return nil, ok && n == 0
	}
	if !ok {
		return nil, false
	}
	return in.bytesAt(p, n)
}

func (in *Instance) typedBytes(v Value) ([]byte, bool) {
	out := in.known.scratch
	buf := in.opVal(abi.GetTypedArrayBuffer, in.cx(), uint64(v), uint64(out), uint64(out+4), uint64(out+8))
	if buf.IsException() {
		in.swallow()
		return nil, false
	}
	off, ok1 := in.u32At(out)
	n, ok2 := in.u32At(out + 4)
	all, ok3 := in.buffer(abi.GetArrayBuffer, buf)
	in.Free(buf) // v holds another reference
	if !ok1 || !ok2 || !ok3 || uint64(off)+uint64(n) > uint64(len(all)) {
		return nil, false
	}
	return all[off : off+n : off+n], true
}

// NewBytes returns a Uint8Array over a copy of b, Exception if there is no memory for it.
func (in *Instance) NewBytes(b []byte) Value { return in.newBuffer(abi.NewUint8ArrayCopy, b) }

// NewArrayBuffer returns an ArrayBuffer with a copy of b, Exception if there is no memory for it.
func (in *Instance) NewArrayBuffer(b []byte) Value { return in.newBuffer(abi.NewArrayBufferCopy, b) }

// newBuffer lets the engine copy from the I/O buffer, or from memory of its own if b is longer.
func (in *Instance) newBuffer(o abi.Op, b []byte) Value {
	if len(b) <= ioBytes {
		dst, ok := in.bytesAt(in.known.io, uint32(len(b)))
		if !ok || in.failure != nil {
			return in.opVal(abi.ThrowOutOfMemory, in.cx())
		}
		copy(dst, b)
		return in.opVal(o, in.cx(), uint64(in.known.io), uint64(len(b)))
	}
	p := in.put(b)
	if p == 0 {
		return in.opVal(abi.ThrowOutOfMemory, in.cx())
	}
	v := in.opVal(o, in.cx(), uint64(p), uint64(len(b)))
	in.free(p)
	return v
}

// JSON parses text with the engine's own parser, Exception (a SyntaxError is pending) if it is none.
func (in *Instance) JSON(text []byte) Value {
	p := in.put(text)
	if p == 0 {
		return in.opVal(abi.ThrowOutOfMemory, in.cx())
	}
	v := in.opVal(abi.ParseJSON, in.cx(), uint64(p), uint64(len(text)), uint64(in.name("json")))
	in.free(p)
	return v
}
