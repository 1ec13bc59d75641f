package engine

import (
	"encoding/binary"
	"fmt"
)

// How this build lays out an array of the language whose elements stand in a row. learnArrays checks it at start; without
// it elements are read through the engine's calls.
const (
	arrFlags  = 8 // a byte
	arrClass  = 10
	arrValues = 28 // pointer to the elements
	arrCount  = 32
	arrBytes  = 36

	flagRow    = 1 << 4 // the elements stand in a row
	classArray = 2

	maxElements = 1 << 16 // that PutItem reaches
)

// Items reads the first elements of an array that only the prelude can have made: plain values, no accessors. They are
// borrowed from the array. What the array does not have is undefined.
func (in *Instance) Items(array Value, into []Value) {
	if in.ItemsInPlace(array, into) {
		return
	}
	for i := range into {
		into[i] = in.GetIndex(array, uint32(i))
		in.Free(into[i]) // the array holds it
	}
}

// ItemsInPlace is Items for an array that is laid out as we know it and has all of these elements. It reports false for anything else. No
// code runs.
func (in *Instance) ItemsInPlace(array Value, into []Value) bool {
	row, ok := in.elements(array, uint32(len(into)))
	if !ok {
		return false
	}
	for i := range into {
		into[i] = Value(binary.LittleEndian.Uint64(row[i*8:]))
	}
	return true
}

// PutItem replaces the i-th element by v, whose ownership passes. It reports whether it did; if not, nothing has changed. No code of the worker's
// runs.
func (in *Instance) PutItem(array Value, i uint32, v Value) bool {
	row, ok := in.elements(array, min(i, maxElements)+1)
	if !ok || i >= maxElements {
		return false
	}
	if !in.watch.on {
		in.unseen()
	}
	old := Value(binary.LittleEndian.Uint64(row[i*8:]))
	binary.LittleEndian.PutUint64(row[i*8:], uint64(v))
	in.Free(old)
	return true
}

// elements returns the first n elements of an array that is laid out as we know it, a view, or false.
func (in *Instance) elements(array Value, n uint32) (row []byte, ok bool) {
	if !in.engine.arrays || in.failure != nil || !array.IsObject() {
		return nil, false
	}
	head, ok := in.bytesAt(array.pointer(), arrBytes)
	if !ok || head[arrFlags]&flagRow == 0 || u16(head[arrClass:]) != classArray {
		return nil, false
	}
	le := binary.LittleEndian
	if le.Uint32(head[arrCount:]) < n {
		return nil, false
	}
	return in.bytesAt(le.Uint32(head[arrValues:]), n*8)
}

// learnArrays compares what Items believes about arrays with what the engine itself says.
func (e *Engine) learnArrays(in *Instance) error {
	const some = `[[1, 'two', null, 2.5, undefined, {}, true, -7], [], new Array(9), { length: 8, 0: 1 },
		new Uint8Array(64), (function () { return arguments })(1, 2, 3, 4, 5, 6, 7, 8), Object.freeze([1, 2, 3, 4, 5, 6, 7, 8])]`
	list, err := in.Eval([]byte(some), "start")
	if err != nil {
		return fmt.Errorf("try out arrays: %w", err)
	}
	e.arrays = true
	for i := range uint32(7) {
		v := in.GetIndex(list, i)
		var got [8]Value
		found := in.ItemsInPlace(v, got[:])
		e.arrays = e.arrays && (found || i != 0)
		for k := range got {
			theirs := in.GetIndex(v, uint32(k))
			e.arrays = e.arrays && (!found || theirs == got[k])
			in.Free(theirs)
		}
		in.Free(v)
	}
	in.Free(list)
	return in.failure
}
