package abi

// What the pass must find in this one build so that it may edit the interpreter's loop: a build that differs in any of
// these numbers is another interpreter, and `make engine` refuses it. They were read off the disassembly.
const (
	InterpreterFunc = 93        // index of the bytecode interpreter in the engine as shipped
	SwitchTable     = 1_090_288 // address of the table that its dispatch goes through, one word per opcode
	SwitchTargets   = 226       // distinct places that the 256 opcodes lead to
	SwitchDefault   = 1         // bytes among them that are no opcode of this build

	DumpFlagOffset = 761               // of the byte in a JSRuntime that has the bit "print each instruction"
	DumpFlagMask   = 128               // that bit
	DumpFlagSetter = "JS_SetDumpFlags" // the export that alone sets it; the pass takes it away
	DumpTests      = 223               // tests of the bit in the interpreter
	DumpCallees    = 2                 // functions they call: one per instruction, one at a function's entry
)
