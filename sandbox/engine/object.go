package engine

import (
	"encoding/binary"
	"fmt"

	"edged/sandbox/engine/abi"
)

// How this build lays out what it counts references to, objects, and promises. learnObjects checks it at start; without it
// all of it is asked through the engine's calls.
const (
	refCount    = 4       // before what the value points to: strings, symbols, big numbers and objects alike
	refPlenty   = 1 << 30 // more references than a counter is trusted with here
	objShape    = 12      // what objects share that were made in the same way: prototype, names and kinds of properties
	objProps    = 16      // pointer to the values of the properties
	objData     = 24      // pointer to what the class keeps
	objBytes    = 28
	promState   = 0
	promResult  = 24
	promBytes   = 32
	classObject = 1
)

// objectLayout is what of the above holds.
type objectLayout struct {
	counts   bool
	shapes   bool
	promises uint16 // the class of promises; 0 if they are not laid out so
}

// Refs returns how many references there are to v, weak ones aside; 0 if v is no reference, or that is not known here.
func (in *Instance) Refs(v Value) int32 {
	b, n := in.counter(v)
	if b == nil || in.failure != nil {
		return 0
	}
	return n
}

// counter returns where the references to v are counted, and what is there; nil if there is nothing that can be trusted.
func (in *Instance) counter(v Value) (b []byte, n int32) {
	if !in.engine.objects.counts {
		return nil, 0
	}
	switch v.tag() {
	case tagObject, tagString, tagRope, tagSymbol, tagBigInt:
	default:
		return nil, 0
	}
	b, ok := in.bytesAt(v.pointer()-refCount, 4)
	if !ok {
		return nil, 0
	}
	if n = int32(binary.LittleEndian.Uint32(b)); n < 1 || n >= refPlenty {
		return nil, 0
	}
	return b, n
}

// count changes a counter of references by d where it is, and reports whether it could: a value that nobody else holds is
// freed by the engine.
func (in *Instance) count(v Value, d int32) bool {
	b, n := in.counter(v)
	if b == nil || n+d < 1 {
		return false
	}
	if !in.watch.on {
		in.unseen()
	}
	binary.LittleEndian.PutUint32(b, uint32(n+d))
	return true
}

// Twin returns the value of the first property of an object that is like sample in all but values: made by the same
// constructor and changed by nobody since. It is borrowed from the object. No code runs. ok is false for everything else,
// and for a build that lays objects out in another way.
func (in *Instance) Twin(v, sample Value) (first Value, ok bool) {
	if !in.engine.objects.shapes || in.failure != nil || !v.IsObject() || !sample.IsObject() {
		return Undefined, false
	}
	mine, ok1 := in.bytesAt(v.pointer(), objBytes)
	theirs, ok2 := in.bytesAt(sample.pointer(), objBytes)
	if !ok1 || !ok2 || u16(mine[arrClass:]) != classObject {
		return Undefined, false
	}
	le := binary.LittleEndian
	if le.Uint32(mine[objShape:]) != le.Uint32(theirs[objShape:]) {
		return Undefined, false
	}
	p, ok := in.u64At(le.Uint32(mine[objProps:]))
	return Value(p), ok
}

// promise returns what a promise keeps: its state, and its result as the promise holds it.
func (in *Instance) promise(v Value) (state PromiseState, result Value, ok bool) {
	class := in.engine.objects.promises
	if class == 0 || !v.IsObject() {
		return NotPromise, Undefined, false
	}
	head, ok := in.bytesAt(v.pointer(), objBytes)
	if !ok {
		return NotPromise, Undefined, false
	}
	if u16(head[arrClass:]) != class {
		return NotPromise, Undefined, true
	}
	data, ok := in.bytesAt(binary.LittleEndian.Uint32(head[objData:]), promBytes)
	if !ok {
		return NotPromise, Undefined, false
	}
	state = PromiseState(binary.LittleEndian.Uint32(data[promState:]))
	if state < Pending || state > Rejected {
		return NotPromise, Undefined, false
	}
	return state, Value(binary.LittleEndian.Uint64(data[promResult:])), true
}

// learnObjects compares what this file believes with what the engine itself says.
func (e *Engine) learnObjects(in *Instance) error {
	const some = `(() => {
		class A { constructor(x) { this.x = x } }
		class B { constructor(x) { this.x = x } }
		const changed = (f) => { const a = new A(5); f(a); return a };
		return [
			[new A('sample'), new A('one'), new A({}), new A(-1.5), new A(null)],
			[new B('one'), { x: 'one' }, ['one'], new Proxy(new A(1), {}), Object.create(A.prototype), changed((a) => { a.y = 1 }),
				changed((a) => { delete a.x }), changed(Object.freeze), changed((a) => Object.setPrototypeOf(a, {})),
				changed((a) => Object.defineProperty(a, 'x', { get() { return 1 } })), () => 1, Promise.resolve(1)],
			[Promise.resolve('done'), Promise.reject('failed'), new Promise(() => {}), Promise.resolve(-0.5)],
			[{}, 'text', 'pieces'.repeat(500) + 'x'.repeat(3000), Symbol('s'), 12345678901234567890n, () => 1],
		]
	})()`
	list, err := in.Eval([]byte(some), "start")
	if err != nil {
		return fmt.Errorf("try out objects: %w", err)
	}
	e.objects = objectLayout{counts: true, shapes: true}
	in.learnCounts(in.row(list, 3))
	in.learnShapes(in.row(list, 0), in.row(list, 1))
	in.learnPromises(in.row(list, 2), in.row(list, 1))
	in.Free(list)
	return in.failure
}

// row returns the elements of the i-th list, borrowed from it.
func (in *Instance) row(lists Value, i uint32) []Value {
	list := in.GetIndex(lists, i)
	defer in.Free(list)
	length := in.GetProp(list, "length")
	n, _ := length.Int()
	out := make([]Value, n)
	for k := range out {
		out[k] = in.GetIndex(list, uint32(k))
		in.Free(out[k])
	}
	return out
}

// learnCounts sees whether the engine counts where we do.
func (in *Instance) learnCounts(values []Value) {
	at := func(v Value) uint32 {
		n, _ := in.u32At(v.pointer() - refCount)
		return n
	}
	for _, v := range values {
		before := at(v)
		twice := in.opVal(abi.DupValue, in.cx(), uint64(v))
		during := at(v)
		in.op(abi.FreeValue, in.cx(), uint64(twice))
		if twice != v || before < 1 || during != before+1 || at(v) != before {
			in.engine.objects.counts = false
		}
	}
}

// learnShapes sees whether the objects that are alike, and only those, are found to be, with their values.
func (in *Instance) learnShapes(alike, other []Value) {
	for _, v := range alike {
		want := in.GetProp(v, "x")
		if got, ok := in.Twin(v, alike[0]); !ok || got != want {
			in.engine.objects.shapes = false
		}
		in.Free(want)
	}
	for _, v := range other {
		if _, ok := in.Twin(v, alike[0]); ok {
			in.engine.objects.shapes = false
		}
	}
}

// learnPromises finds the class of promises and sees whether their state and result are where we think.
func (in *Instance) learnPromises(promises, other []Value) {
	head, ok := in.bytesAt(promises[0].pointer(), objBytes)
	if !ok {
		return
	}
	class := u16(head[arrClass:])
	for _, v := range promises {
		in.MarkHandled(v)
		wantState, want := in.PromiseState(v), in.PromiseResult(v)
		in.engine.objects.promises = class
		state, result, ok := in.promise(v)
		in.engine.objects.promises = 0
		in.Free(want)
		if !ok || state != wantState || state != Pending && result != want {
			return
		}
	}
	for _, v := range other[:len(other)-1] {
		if h, ok := in.bytesAt(v.pointer(), objBytes); !ok || u16(h[arrClass:]) == class {
			return
		}
	}
	in.engine.objects.promises = class
}
