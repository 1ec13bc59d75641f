package wasmpass

// A bulk instruction is one turn of no loop, however many bytes it moves. To keep a guest that repeats large ones from
// running for seconds between two polls, each takes a step for every 64 bytes, which are about as long as a step.
const bulkStepShift = 6

const (
	miscCopy  = 10
	miscFill  = 11
	opI32LtS  = 0x48
	opI32ShrU = 0x76
)

// chargeBulk replaces the memory.copy and memory.fill instructions of the first functions of the module by calls of a
// function that takes their steps first. It returns how many it replaced.
func (m *Module) chargeBulk(functions int, counter, refill uint32) (sites int) {
	helpers := map[byte]uint32{} // instruction -> function, made when the first is found
	helper := func(op byte) uint32 {
		fn, ok := helpers[op]
		if !ok {
			fn = m.addFunc(FuncType{Params: string([]byte{i32, i32, i32})}, bulkCode(op, counter, refill))
			helpers[op] = fn
		}
		return fn
	}
	for i := range functions {
		code, n := replaceBulk(m.code[i].code, helper)
		m.code[i].code = code
		sites += n
	}
	return sites
}

// bulkCode has the parameters of the instruction: destination, source or value, length.
func bulkCode(op byte, counter, refill uint32) []byte {
	code := appendU32([]byte{opGlobalGet}, counter)
	code = append(code, opLocalGet, 2, opI32Const, bulkStepShift, opI32ShrU, opI32Sub)
	code = appendU32(append(code, opGlobalSet), counter)
	code = appendU32(append(code, opGlobalGet), counter)
	code = append(code, opI32Const, 1, opI32LtS, opIf, blockVoid)
	code = appendU32(append(code, opCall), refill)
	code = append(code, opEnd, opLocalGet, 0, opLocalGet, 1, opLocalGet, 2, prefixMisc, op, 0)
	if op == miscCopy {
		code = append(code, 0)
	}
	return append(code, opEnd)
}

func replaceBulk(code []byte, helper func(op byte) uint32) (out []byte, sites int) {
	s := scanner{reader: reader{b: code}} // checked by Decode: no fault can occur
	last := 0
	for s.next() {
		if s.op != prefixMisc {
			continue
		}
		if op := code[s.start+1]; op == miscCopy || op == miscFill {
			out = appendU32(append(append(out, code[last:s.start]...), opCall), helper(op))
			last = s.pos
			sites++
		}
	}
	if out == nil {
		return code, 0
	}
	return append(out, code[last:]...), sites
}
