package codec

import "math"

// Kind is the storage class of a Value, as typeof() names it.
type Kind uint8

// The storage classes. The zero Kind is NULL.
const (
	KindNull Kind = iota
	KindInteger
	KindReal
	KindText
	KindBlob
)

// String returns the tag of sql §3: "null", "integer", "real", "text" or "blob".
func (k Kind) String() string {
	return [...]string{"null", "integer", "real", "text", "blob"}[k]
}

// A Value is one SQL value with its storage class. It is immutable and may be copied and shared freely; the zero Value is
// NULL. Two Values are == when class and content are the same (a REAL NaN, which no valid Value holds, excepted).
type Value struct {
	kind Kind
	num  uint64 // the bits of an integer or a real
	str  string // the bytes of a text or a blob
}

// Null returns NULL.
func Null() Value { return Value{} }

// Integer returns an INTEGER.
func Integer(n int64) Value { return Value{kind: KindInteger, num: uint64(n)} }

// Real returns a REAL. A number that is not finite is refused where the Value is used.
func Real(f float64) Value { return Value{kind: KindReal, num: math.Float64bits(f)} }

// Text returns a TEXT. Text that is not UTF-8 is refused where the Value is used.
func Text(s string) Value { return Value{kind: KindText, str: s} }

// Blob returns a BLOB with a copy of b.
func Blob(b []byte) Value { return Value{kind: KindBlob, str: string(b)} }

// Kind returns the storage class.
func (v Value) Kind() Kind { return v.kind }

// Int64 returns the content of an INTEGER, 0 for every other class.
func (v Value) Int64() int64 {
	if v.kind != KindInteger {
		return 0
	}
	return int64(v.num)
}

// Float64 returns the content of a REAL, 0 for every other class.
func (v Value) Float64() float64 {
	if v.kind != KindReal {
		return 0
	}
	return math.Float64frombits(v.num)
}

// Bytes returns the bytes of a TEXT or a BLOB as a string, "" for every other class.
func (v Value) Bytes() string { return v.str }

// A Statement is one SQL statement with the values of its parameters: Params[0] is ?1.
type Statement struct {
	SQL    string
	Params []Value
}

// A Result is what one statement gave. Rows belong to whoever received it; Columns may be shared and is only read.
type Result struct {
	Columns     []string  // names, in order; all different
	Rows        [][]Value // each as long as Columns
	RowsWritten int64     // rows the statement itself inserted, updated or deleted

	Inserted        bool  // the statement inserted at least one row into a rowid table
	LastInsertRowID int64 // of the last such row; only with Inserted
}
