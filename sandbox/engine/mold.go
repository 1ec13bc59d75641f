package engine

import (
	"bytes"
	"encoding/binary"
	"fmt"
)

// Mold is what some values of the guest were like, byte for byte: how many references there are to each, what weakly refers to it, its
// properties or elements. What fits its mold later is what it was, and nobody else has it. The zero value fits nothing.
type Mold struct {
	spans []moldSpan
	was   []byte
	full  bool
}

type moldSpan struct{ at, n uint32 }

// kindBytes is what a mold holds of a string besides its counter, from strKind on: not the length and the text, which Rewrite changes, but the
// kind and the hash, by which a string shows that it has become the name of a property.
const kindBytes = 4

// Known reports whether m is a mold of anything.
func (m *Mold) Known() bool { return m.full }

// Forget makes m fit nothing.
func (m *Mold) Forget() { m.spans, m.was, m.full = m.spans[:0], m.was[:0], false }

// Cast makes m the mold of what values are now: strings, arrays without properties of their own, and objects with one property at most,
// which is the caller's to know, that share their form with another object that lives as long, for the engine changes a form that only one
// has in place. It reports false, and m fits nothing, if one of them is of another kind, has a form for itself, or is laid out in a way
// we do not know. No code runs.
func (in *Instance) Cast(m *Mold, values ...Value) bool {
	m.Forget()
	if !in.engine.molds {
		return false
	}
	return in.cast(m, values)
}

func (in *Instance) cast(m *Mold, values []Value) bool {
	for _, v := range values {
		if !in.castOne(m, v) {
			return false
		}
	}
	for _, s := range m.spans {
		b, ok := in.bytesAt(s.at, s.n)
		if !ok {
			return false
		}
		m.was = append(m.was, b...)
	}
	m.full = true
	return true
}

func (in *Instance) castOne(m *Mold, v Value) bool {
	p := v.pointer()
	add := func(at, n uint32) { m.spans = append(m.spans, moldSpan{at, n}) }
	switch v.tag() {
	case tagString:
		add(p-refCount, refCount)
		add(p+strKind, kindBytes)
		return true
	case tagObject:
	default:
		return false
	}
	head, ok := in.bytesAt(p, objBytes)
	if !ok {
		return false
	}
	add(p-refCount, refCount)
	le := binary.LittleEndian
	if n, ok := in.u32At(le.Uint32(head[objShape:]) - refCount); !ok || n < 2 {
		return false
	}
	switch u16(head[arrClass:]) {
	case classObject:
		add(p+arrFlags, objBytes-arrFlags)
		add(le.Uint32(head[objProps:]), 8)
		return true
	case classArray:
		head, ok := in.bytesAt(p, arrBytes)
		if !ok || head[arrFlags]&flagRow == 0 || le.Uint32(head[arrCount:]) > maxElements {
			return false
		}
		add(p+arrFlags, arrBytes-arrFlags)
		add(le.Uint32(head[objProps:]), 8) // the length
		add(le.Uint32(head[arrValues:]), le.Uint32(head[arrCount:])*8)
		return true
	}
	return false
}

// Fits reports whether the values that m was cast from are what they were. No code runs.
func (in *Instance) Fits(m *Mold) bool {
	if !m.full || in.failure != nil {
		return false
	}
	was := m.was
	for _, s := range m.spans {
		b, ok := in.bytesAt(s.at, s.n)
		if !ok || !bytes.Equal(b, was[:s.n]) {
			return false
		}
		was = was[s.n:]
	}
	return true
}

// Sole reports whether there is one reference to a string, the caller's, and Rewrite may change it.
func (in *Instance) Sole(v Value) bool {
	if !in.engine.molds || in.failure != nil || v.tag() != tagString {
		return false
	}
	b, ok := in.bytesAt(v.pointer()-refCount, refCount+strKind+kindBytes)
	return ok && binary.LittleEndian.Uint32(b) == 1 && binary.LittleEndian.Uint32(b[refCount+strKind:]) == 0
}

// Rewrite gives a string another content: one character for each byte. The caller knows that nobody has it but those who are to see the new
// one, and that it was made with as many characters at least: nothing here can tell. It reports whether it did. No code runs.
func (in *Instance) Rewrite(v Value, b []byte) bool {
	if !in.engine.layout.flat || in.failure != nil || v.tag() != tagString {
		return false
	}
	dst, ok := in.bytesAt(v.pointer(), strData+uint32(len(b))+1)
	if !ok {
		return false
	}
	if !in.watch.on {
		in.unseen()
	}
	binary.LittleEndian.PutUint32(dst[strLength:], uint32(len(b)))
	dst[strData+copy(dst[strData:], b)] = 0
	return true
}

// learnMolds sees whether a mold tells all that can happen to a value: each of these changes one and must be noticed.
func (e *Engine) learnMolds(in *Instance) error {
	const some = `(() => {
		class A { constructor(x) { this.x = x } }
		const shared = [new A(1), {}, []], kept = [shared];
		const keep = (v) => { kept.push(v) };
		return [
			() => new A('one'), [
				(v) => { v.x = 'two' }, (v) => { v.y = 1 }, (v) => { v[Symbol()] = 1 }, (v) => { delete v.x }, keep, Object.preventExtensions, Object.freeze,
				(v) => Object.setPrototypeOf(v, null), (v) => Object.defineProperty(v, 'x', { enumerable: false }), (v) => { v.y = 1; delete v.y },
				(v) => keep(new WeakRef(v)), (v) => keep(new WeakMap([[v, 1]])), (v) => keep(new WeakSet([v])), (v) => new WeakSet([v]),
				(v) => { const f = new FinalizationRegistry(() => 1); f.register(v, 1); keep(f) }, (v) => { v.x = v }],
			() => ({}), [(v) => { v.x = 1 }, keep, (v) => keep(new WeakRef(v)), (v) => Object.seal(v), (v) => { v.__proto__ = null }],
			() => [1, 'two', null], [
				(v) => { v[0] = 2 }, (v) => { v[2] = v }, (v) => v.push(1), (v) => { v.pop() }, (v) => v.reverse(), (v) => { v.x = 1 }, (v) => { v.length = 1 }, (v) => { v.length = 9 },
				keep, Object.freeze, (v) => keep(new WeakRef(v)), (v) => { delete v[1] }, (v) => { v[7] = 1 }],
			() => 'a text for the mold'.repeat(500), [
				keep, (v) => { ({ [v]: 1 }) }, (v) => keep({ [v]: 1 }), (v) => keep(v.slice(5, 6000)), (v) => keep(v + 'more'), (v) => keep(new Map([[v, 1]])),
				(v) => keep(Symbol.for(v)), (v) => keep(Symbol(v))],
		]
	})()`
	list, err := in.Eval([]byte(some), "start")
	if err != nil {
		return fmt.Errorf("try out molds: %w", err)
	}
	e.molds = e.objects.counts && e.objects.shapes && e.arrays && e.layout.flat && in.knowsMolds(list)
	in.Free(list)
	return in.failure
}

func (in *Instance) knowsMolds(list Value) bool {
	known := true
	for kind := uint32(0); kind < 8; kind += 2 {
		mk := in.GetIndex(list, kind)
		for _, change := range in.row(list, kind+1) {
			v, err := in.Call(mk, Undefined)
			if err != nil {
				return false
			}
			var m Mold
			if !in.cast(&m, []Value{v}) || !in.Fits(&m) {
				known = false
			}
			got, err := in.Call(change, Undefined, v)
			if err != nil || in.Fits(&m) {
				known = false
			}
			in.Free(got)
			in.Free(v)
		}
		in.Free(mk)
	}
	return known
}
