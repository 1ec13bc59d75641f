package engine

import (
	"bytes"
	"cmp"
	"slices"

	"edged/sandbox/engine/abi"
	"edged/sandbox/event"
)

// Flags of the engine's serialiser.
const (
	writeBytecode    = 1 << 0
	writeStripSource = 1 << 4
	readBytecode     = 1 << 0
)

// Bytecode is a compiled script without its source text: toString of its functions shows "[native code]". The text of a
// function stands in memory once for each function around it, which for a large script is most of what it needs. Only
// Compile makes a Bytecode: what came from outside must never be run as one, since the engine does not check it.
type Bytecode struct{ code []byte }

// Compile compiles a classic script without running it. What that needed stays behind in this instance, which is why the
// bytecode is best run in another one. Errors as of Eval.
func (in *Instance) Compile(src []byte, file string) (Bytecode, error) {
	compiled := in.eval(src, file, evalScript|evalCompiled)
	if compiled.IsException() || in.failure != nil {
		return Bytecode{}, in.thrown()
	}
	defer in.Free(compiled)
	p := in.opPtr(abi.WriteObject, in.cx(), uint64(in.known.scratch), uint64(compiled), writeBytecode|writeStripSource)
	size, ok1 := in.u32At(in.known.scratch)
	code, ok2 := in.bytesAt(p, size)
	if in.failure != nil || p == 0 || !ok1 || !ok2 {
		in.fail(event.ErrMemory)
		return Bytecode{}, in.failure
	}
	return Bytecode{bytes.Clone(code)}, nil
}

// Run runs a compiled script as Eval would run its source. Errors as of Eval.
func (in *Instance) Run(b Bytecode) (Value, error) {
	p := in.put(b.code)
	if p == 0 {
		in.fail(event.ErrMemory)
		return Exception, in.failure
	}
	f := in.opVal(abi.ReadObject, in.cx(), uint64(p), uint64(len(b.code)), readBytecode)
	in.free(p)
	if f.IsException() || in.failure != nil {
		return Exception, in.thrown()
	}
	v := in.opVal(abi.EvalFunction, in.cx(), uint64(f))
	if v.IsException() || in.failure != nil {
		return Exception, in.thrown()
	}
	return v, nil
}

// union merges two lists of spans, each in rising order.
func union(a, b []span) []span {
	all := slices.Concat(a, b)
	slices.SortFunc(all, func(x, y span) int { return cmp.Compare(x.from, y.from) })
	out := all[:0]
	for _, s := range all {
		if n := len(out); n > 0 && s.from <= out[n-1].to {
			out[n-1].to = max(out[n-1].to, s.to)
		} else {
			out = append(out, s)
		}
	}
	return out
}
