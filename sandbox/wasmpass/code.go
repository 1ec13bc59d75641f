package wasmpass

// Opcodes that the pass reads or writes by name.
const (
	opUnreachable = 0x00
	opBlock       = 0x02
	opLoop        = 0x03
	opIf          = 0x04
	opEnd         = 0x0b
	opBr          = 0x0c
	opBrIf        = 0x0d
	opBrTable     = 0x0e
	opReturn      = 0x0f
	opCall        = 0x10
	opDrop        = 0x1a
	opLocalGet    = 0x20
	opLocalSet    = 0x21
	opLocalTee    = 0x22
	opGlobalGet   = 0x23
	opGlobalSet   = 0x24
	opTableGet    = 0x25
	opI32Load     = 0x28
	opI32Load8U   = 0x2d
	opFirstLoad   = 0x28
	opFirstStore  = 0x36
	opLastStore   = 0x3e
	opI32Const    = 0x41
	opI64Const    = 0x42
	opI32Eqz      = 0x45
	opI32Add      = 0x6a
	opI32Sub      = 0x6b
	opI32And      = 0x71
	opI32Shl      = 0x74
	opI32WrapI64  = 0xa7
	opI64ExtendU  = 0xad
	opI32FromF32  = 0xbc // i32.reinterpret_f32
	opI64FromF64  = 0xbd
	opF32FromI32  = 0xbe
	opF64FromI64  = 0xbf
	opRefFunc     = 0xd2
	prefixMisc    = 0xfc
	prefixSIMD    = 0xfd

	blockVoid = 0x40
)

// scanner splits code into instructions. A compiler that saw another boundary than we do could be led past a counter,
// so wherever an encoding could be read in two ways (padded opcode numbers, reference types in place of a value type)
// only the plain form is accepted. Index types are read as the compiler reads them, padded or not.
type scanner struct {
	reader
	op    byte
	start int    // of the instruction in b
	index uint32 // operand of call, ref.func, branches (the largest), locals, globals, tables; offset of a load or store
	sub   byte   // number behind the prefix of saturating and bulk instructions
	misc1 uint32 // their operands: segment or table, then table
	misc2 uint32
}

// next reads one instruction. It returns false at the end of the code and at the first fault (err).
func (s *scanner) next() bool {
	if s.err != nil || s.rest() == 0 {
		return false
	}
	s.start = s.pos
	s.op = s.byte()
	s.immediates()
	return s.err == nil
}

func (s *scanner) immediates() {
	switch op := s.op; {
	case op == opBlock, op == opLoop, op == opIf:
		s.blockType()
	case op == opCall, op == opRefFunc, op == opBr, op == opBrIf, op >= 0x20 && op <= 0x26: // locals, globals, tables
		s.index = s.u32()
	case op == opBrTable:
		s.index = 0
		for n := s.count(1); n >= 0 && s.err == nil; n-- { // one more for the default
			s.index = max(s.index, s.u32())
		}
	case op == 0x11: // call_indirect
		s.u32()
		s.u32()
	case op == 0x1c: // select with types
		if n := s.byte(); n != 1 {
			s.fail("select of %d types", n)
		}
		checkValueType(&s.reader, s.byte())
	case op >= 0x28 && op <= 0x3e: // loads and stores
		s.memarg()
	case op == 0x3f, op == 0x40: // memory.size, memory.grow
		s.zero()
	case op == 0xd0: // ref.null
		checkValueType(&s.reader, s.byte())
	case op == opI32Const:
		s.skipLEB(5)
	case op == opI64Const:
		s.skipLEB(10)
	case op == 0x43: // f32.const
		s.bytes(4)
	case op == 0x44: // f64.const
		s.bytes(8)
	case op == prefixMisc:
		s.misc()
	case op == prefixSIMD:
		s.simd()
	case op <= 0x01, op == 0x05, op == opEnd, op == opReturn, op == opDrop, op == 0x1b, op >= 0x45 && op <= 0xc4, op == 0xd1:
	default:
		s.fail("opcode %#x is not supported", op)
	}
}

func (s *scanner) memarg() {
	if align := s.u32(); align > 31 { // higher bits select a memory
		s.fail("alignment %d", align)
	}
	s.index = s.u32()
}

// blockType reads no type, a value type, or the index of a function type, which is a signed number that is not
// negative. Four bytes hold more types than fit into a module.
func (s *scanner) blockType() {
	for i := range 4 {
		c := s.byte()
		if _, ok := typeNames[c]; i == 0 && (ok || c == blockVoid) {
			return
		}
		if c < 0x80 {
			if c&0x40 != 0 {
				s.fail("block type is not supported")
			}
			return
		}
	}
	s.fail("block type is too long")
}

// zero reads the index of the only memory.
func (s *scanner) zero() {
	if c := s.byte(); c != 0 {
		s.fail("memory %d", c)
	}
}

func (s *scanner) misc() {
	sub := s.byte()
	s.sub, s.misc1, s.misc2 = sub, 0, 0
	switch sub {
	case 0, 1, 2, 3, 4, 5, 6, 7: // saturating truncation
	case 8: // memory.init
		s.misc1 = s.u32()
		s.zero()
	case 10: // memory.copy
		s.zero()
		s.zero()
	case 11: // memory.fill
		s.zero()
	case 12, 14: // table.init, table.copy
		s.misc1 = s.u32()
		s.misc2 = s.u32()
	case 9, 13, 15, 16, 17: // data.drop, elem.drop, table.grow, .size, .fill
		s.misc1 = s.u32()
	default:
		s.fail("opcode 0xfc %d is not supported", sub)
	}
}

func (s *scanner) simd() {
	sub := s.byte()
	if sub >= 0x80 && s.byte() != 1 { // the only plain way to write 128 to 255
		s.fail("opcode 0xfd %#x is not supported", sub)
	}
	switch {
	case sub <= 11, sub == 92, sub == 93: // v128.load, v128.store and kin
		s.memarg()
	case sub == 12, sub == 13: // v128.const, i8x16.shuffle
		s.bytes(16)
	case sub >= 21 && sub <= 34: // lanes
		s.byte()
	case sub >= 84 && sub <= 91: // lane loads and stores
		s.memarg()
		s.byte()
	}
}
