package engine

import "math"

// Value is one JavaScript value as the engine holds it: NaN-boxed, the tag in the high 32 bits, a guest pointer or a
// small number in the low ones. A Value that IsHeap reports is a counted reference into one instance's memory: it means
// nothing to another instance, except that values made before a snapshot mean the same in every clone of it, and it
// is dead after Reset unless it was made before the snapshot. Values are plain numbers: copying one copies no reference.
type Value uint64

// The tags of this engine. Tags from tagFirst to -1 are references; everything from tagFloat up is a double.
const (
	tagFirst     = -9
	tagBigInt    = -9
	tagSymbol    = -8
	tagString    = -7
	tagRope      = -6
	tagModule    = -3
	tagObject    = -1
	tagInt       = 0
	tagBool      = 1
	tagNull      = 2
	tagUndefined = 3
	tagException = 6
	tagShortBig  = 7
	tagFloat     = 8
)

// floatShift is what the engine subtracts from the bits of a double, so that no double looks like a tag.
const floatShift = uint64(0x7ff80000-tagFirst+1) << 32

// canonicalNaN is the only NaN that the engine's boxing can hold.
const canonicalNaN = uint64(0x7ff80000) << 32

func box(tag int32, low uint32) Value { return Value(uint64(uint32(tag))<<32 | uint64(low)) }

// Values that need no memory.
var (
	Undefined = box(tagUndefined, 0)
	Null      = box(tagNull, 0)
	True      = box(tagBool, 1)
	False     = box(tagBool, 0)
	// Exception is what a host function returns after it threw; the Throw methods return it.
	Exception = box(tagException, 0)
)

func (v Value) tag() int32      { return int32(uint32(v >> 32)) }
func (v Value) pointer() uint32 { return uint32(v) }

// IsHeap reports whether v is a counted reference.
func (v Value) IsHeap() bool { t := v.tag(); return t >= tagFirst && t < 0 }

// IsException reports whether v is the mark of a thrown exception.
func (v Value) IsException() bool { return v.tag() == tagException }

// IsUndefined reports whether v is undefined.
func (v Value) IsUndefined() bool { return v.tag() == tagUndefined }

// IsNull reports whether v is null.
func (v Value) IsNull() bool { return v.tag() == tagNull }

// IsNullish reports whether v is null or undefined.
func (v Value) IsNullish() bool { t := v.tag(); return t == tagNull || t == tagUndefined }

// IsObject reports whether v is an object; functions are objects.
func (v Value) IsObject() bool { return v.tag() == tagObject }

// IsString reports whether v is a string.
func (v Value) IsString() bool { t := v.tag(); return t == tagString || t == tagRope }

// IsSymbol reports whether v is a symbol.
func (v Value) IsSymbol() bool { return v.tag() == tagSymbol }

// IsBigInt reports whether v is a BigInt.
func (v Value) IsBigInt() bool { t := v.tag(); return t == tagBigInt || t == tagShortBig }

// IsBool reports whether v is true or false.
func (v Value) IsBool() bool { return v.tag() == tagBool }

// IsInt reports whether v is a number that the engine holds as a 32-bit integer. A whole number may also be a double.
func (v Value) IsInt() bool { return v.tag() == tagInt }

// IsNumber reports whether v is a number.
func (v Value) IsNumber() bool { return v.IsInt() || v.isFloat() }

// Counted from the first tag, a double's high word lies above all tags.
func (v Value) isFloat() bool { return uint32(v.tag()-tagFirst) >= tagFloat-tagFirst }

// Bool returns whether v is the value true. It converts nothing: a string is false here.
func (v Value) Bool() bool { return v == True }

// Int returns a number as a 32-bit integer, cut off towards zero; ok is false if v is no number or does not fit.
func (v Value) Int() (n int32, ok bool) {
	if v.IsInt() {
		return int32(uint32(v)), true
	}
	f, ok := v.Float()
	if !ok || !(f > -2147483649 && f < 2147483648) { // written so that NaN fails
		return 0, false
	}
	return int32(f), true
}

// Int64 returns a number as an integer, cut off towards zero; ok is false if v is no number or is outside the range in
// which doubles are exact (2^53).
func (v Value) Int64() (n int64, ok bool) {
	if v.IsInt() {
		return int64(int32(uint32(v))), true
	}
	f, ok := v.Float()
	if !ok || !(f >= -(1<<53) && f <= 1<<53) {
		return 0, false
	}
	return int64(f), true
}

// Float returns the number v; ok is false if it is none.
func (v Value) Float() (f float64, ok bool) {
	switch {
	case v.IsInt():
		return float64(int32(uint32(v))), true
	case v.isFloat():
		return math.Float64frombits(uint64(v) + floatShift), true
	}
	return 0, false
}

// Int returns the number n.
func Int(n int32) Value { return box(tagInt, uint32(n)) }

// Bool returns true or false.
func Bool(b bool) Value {
	if b {
		return True
	}
	return False
}

// Float returns the number f; whole numbers of 32 bits are held as integers, as the engine itself does.
func Float(f float64) Value {
	if n := int32(f); float64(n) == f && (n != 0 || !math.Signbit(f)) {
		return Int(n)
	}
	bits := math.Float64bits(f)
	if f != f {
		bits = canonicalNaN
	}
	return Value(bits - floatShift)
}
