package wasmpass

// A pattern edit replaces a few instructions that it knows to the byte. These are the means to recognise them.

// instruction is one instruction of a body by its place in the code.
type instruction struct {
	op         byte
	start, end int
	index      uint32 // as the scanner's
	value      int32  // of i32.const
}

// instructions lists a body that Decode has checked.
func instructions(code []byte) []instruction {
	list := make([]instruction, 0, len(code)/2)
	s := scanner{reader: reader{b: code}}
	for s.next() {
		in := instruction{op: s.op, start: s.start, end: s.pos, index: s.index}
		if s.op == opI32Const {
			in.value = s32(code[s.start+1 : s.pos])
		}
		list = append(list, in)
	}
	return list
}

// s32 reads a signed LEB128 that fills b.
func s32(b []byte) int32 {
	var v int64
	for i, c := range b {
		v |= int64(c&0x7f) << (7 * i)
	}
	if n := 7 * len(b); n < 64 && v&(1<<(n-1)) != 0 {
		v |= -1 << n
	}
	return int32(v)
}

func (in instruction) isConst(v int32) bool { return in.op == opI32Const && in.value == v }

// cut is a part of a body, by its bytes, and what takes its place.
type cut struct {
	start, end int
	put        []byte
}

// applyCuts makes the cuts, which are in order and do not overlap.
func applyCuts(code []byte, cuts []cut) []byte {
	out := make([]byte, 0, len(code))
	last := 0
	for _, c := range cuts {
		out = append(append(out, code[last:c.start]...), c.put...)
		last = c.end
	}
	return append(out, code[last:]...)
}
