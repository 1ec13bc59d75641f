package engine

import "encoding/binary"

// What the second word of a symbol says in this build: its kind in the upper two bits, and in the lower ones whether it
// names private members of a class. Such names are on no list of an object's properties, and nothing copies them.
const (
	symbolWord  = 4
	symbolPlain = 3 << 30
	symbolHides = symbolPlain | 1
)

// HideSymbol makes a symbol the name of members that no script sees on an object: they are read and written with it as
// before, but are not enumerated, copied, frozen or listed. It reports whether v is such a name now; false for other
// values, for registered symbols, and for a build that keeps symbols otherwise.
func (in *Instance) HideSymbol(v Value) bool {
	if !v.IsSymbol() || in.failure != nil {
		return false
	}
	b, ok := in.bytesAt(v.pointer(), symbolWord+4)
	if !ok {
		return false
	}
	switch binary.LittleEndian.Uint32(b[symbolWord:]) {
	case symbolPlain:
		binary.LittleEndian.PutUint32(b[symbolWord:], symbolHides)
		return true
	case symbolHides:
		return true
	}
	return false
}
