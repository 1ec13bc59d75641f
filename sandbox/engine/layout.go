package engine

import (
	"encoding/binary"
	"fmt"
	"math"
	"strings"

	"edged/sandbox/engine/abi"
)

// learnStrings compares what text.go believes about strings with what the engine itself says, once at start. Nothing
// depends on it but speed.
func (e *Engine) learnStrings(in *Instance) error {
	e.layout = stringLayout{flat: true, slice: true}
	for _, s := range []string{"", "a", "hello", "a longer string, in ASCII", "h\u00e9llo", "h\u20acllo", "h\U0001F600llo", strings.Repeat("x", 4097)} {
		if !in.sameString(s) {
			e.layout = stringLayout{}
			break
		}
	}
	const slice = "'0123456789'.repeat(1000).slice(5, 6000)"
	v, err := in.Eval([]byte(slice), "start")
	if err != nil {
		return fmt.Errorf("try out strings: %w", err)
	}
	want := strings.Repeat("0123456789", 1000)[5:6000]
	if b, _, ok := in.units(v); ok && string(b) != want {
		e.layout.slice = false
	}
	in.Free(v)
	return in.failure
}

// sameString makes s in both ways and reads it in both ways.
func (in *Instance) sameString(s string) bool {
	p := in.put([]byte(s))
	theirs := in.opVal(abi.NewStringLen, in.cx(), uint64(p), uint64(len(s)))
	in.free(p)
	ours := in.NewString([]byte(s))
	defer in.Free(theirs)
	defer in.Free(ours)
	read1, ok1 := in.AppendString(nil, theirs)
	read2, ok2 := in.appendCString(nil, ours, math.MaxInt)
	_, _, direct := in.units(theirs)
	equal := in.opInt(abi.IsStrictEqual, in.cx(), uint64(theirs), uint64(ours)) > 0
	return ok1 && ok2 && direct && equal && string(read1) == s && string(read2) == s && in.sameHead(theirs, ours)
}

// sameHead compares the words that we rely on.
func (in *Instance) sameHead(a, b Value) bool {
	x, ok1 := in.bytesAt(a.pointer(), strData)
	y, ok2 := in.bytesAt(b.pointer(), strData)
	return ok1 && ok2 && binary.LittleEndian.Uint32(x[strLength:]) == binary.LittleEndian.Uint32(y[strLength:]) &&
		binary.LittleEndian.Uint32(x[strKind:])&kindMask == binary.LittleEndian.Uint32(y[strKind:])&kindMask
}
