package wasmpass

// steps writes the counting into function bodies.
//
// A loop is given a second way to its head for the case that the counter is empty:
//
//	block T              ;; out
//	  loop
//	    block            ;; empty
//	      take, br_if 0
//	      block T
//	        the body
//	      end
//	      br 2           ;; out
//	    end
//	    call refill
//	    br 0             ;; again, with a full counter
//	  end
//	  unreachable
//	end
//
// The call lies behind the body, and meets the other ways to the head there. Written into the head, as "take, if, call
// refill, end", it made one more place where the compiler has to bring everything that a call may change into line,
// and the bytecode interpreter 5 % slower.
type steps struct {
	take   []byte // takes a step and leaves whether to refill
	refill []byte // the call

	// weigh, if not nil, is take for so many bytes of code between two steps.
	weigh func(size int) []byte
}

// of returns the steps for a stretch of size bytes.
func (st steps) of(size int) steps {
	if st.weigh != nil {
		st.take = st.weigh(size)
	}
	return st
}

// The blocks around a loop's body, of which the head is the second.
const (
	loopBlocks = 4
	loopHead   = 1
)

// label is an open block of the original code: where a branch to it must lead now, counted from the outermost block.
type label struct {
	at     int
	opened int // blocks that its end must close
}

// insert returns code with a step at the head of every loop, and at the entry if asked, and the number of loops.
func (st steps) insert(code []byte, entry bool) (out []byte, loops int) {
	out = make([]byte, 0, len(code)+len(code)/16+16)
	if entry {
		out = st.of(len(code)).appendInline(out)
	}
	var sizes map[int]int
	if st.weigh != nil {
		sizes = loopSizes(code)
	}
	s := scanner{reader: reader{b: code}} // checked by Decode: no fault can occur
	labels := []label{{opened: 1}}
	depth, last := 1, 0 // open blocks of the new code; what is copied of the old
	for s.next() {
		switch s.op {
		case opBlock, opIf:
			labels = append(labels, label{at: depth, opened: 1})
			depth++
		case opLoop:
			loops++
			out = append(out, code[last:s.start]...)
			last = s.pos
			l := label{at: depth, opened: 1}
			if t := code[s.start+1 : s.pos]; len(t) == 1 && isPlainBlockType(t[0]) {
				l = label{at: depth + loopHead, opened: loopBlocks}
				out = st.of(sizes[s.start]).appendHead(out, t[0])
			} else {
				out = st.of(sizes[s.start]).appendInline(append(out, code[s.start:s.pos]...))
			}
			labels = append(labels, l)
			depth += l.opened
		case opEnd:
			l := labels[len(labels)-1]
			labels = labels[:len(labels)-1]
			depth -= l.opened
			if l.opened == loopBlocks {
				out = st.appendTail(append(out, code[last:s.start]...))
				last = s.pos
			}
		case opBr, opBrIf, opBrTable:
			out = appendBranch(append(out, code[last:s.start]...), code[s.start:s.pos], labels, depth)
			last = s.pos
		}
	}
	return append(out, code[last:]...), loops
}

// loopSizes returns how many bytes of code each loop of a body holds, by where it begins.
func loopSizes(code []byte) map[int]int {
	sizes := map[int]int{}
	s := scanner{reader: reader{b: code}} // checked by Decode: no fault can occur
	open := []int{-1}
	for s.next() {
		switch s.op {
		case opBlock, opIf:
			open = append(open, -1)
		case opLoop:
			open = append(open, s.start)
		case opEnd:
			if from := open[len(open)-1]; from >= 0 {
				sizes[from] = s.pos - from
			}
			open = open[:len(open)-1]
		}
	}
	return sizes
}

func (st steps) appendHead(out []byte, t byte) []byte {
	out = append(out, opBlock, t, opLoop, blockVoid, opBlock, blockVoid)
	out = append(out, st.take...)
	return append(out, opBrIf, 0, opBlock, t)
}

func (st steps) appendTail(out []byte) []byte {
	out = append(out, opEnd, opBr, 2, opEnd)
	out = append(out, st.refill...)
	return append(out, opBr, 0, opEnd, opUnreachable, opEnd)
}

// appendInline leaves the operand stack as it was, so it fits at any point of any function: at entries, and in loops
// that take parameters, which have no place outside.
func (st steps) appendInline(out []byte) []byte {
	out = append(out, opLoop, blockVoid)
	out = append(out, st.take...)
	out = append(out, opIf, blockVoid)
	out = append(out, st.refill...)
	return append(out, opBr, 1, opEnd, opEnd)
}

// isPlainBlockType reports whether a loop's type is no type or one value type: then it takes no parameters.
func isPlainBlockType(t byte) bool {
	_, ok := typeNames[t]
	return ok || t == blockVoid
}

// appendBranch writes a branch of the old code, with labels counted in the new.
func appendBranch(out, branch []byte, labels []label, depth int) []byte {
	out = append(out, branch[0])
	r := reader{b: branch, pos: 1}
	n := uint32(1)
	if branch[0] == opBrTable {
		n = r.u32()
		out = appendU32(out, n)
		n++
	}
	for ; n > 0; n-- {
		l := labels[len(labels)-1-int(r.u32())] // Decode saw that the block is open
		out = appendU32(out, uint32(depth-1-l.at))
	}
	return out
}
