package wasmpass

import (
	"math"

	"edged/internal/fault"
)

// Meter says how a module is made to ask its host now and then whether it may go on.
type Meter struct {
	Interrupt uint32 // index of the function called, of type "-> i32"; its result is dropped
	Countdown int32  // steps between two calls; 0 means 10,000
	Entries   bool   // count function entries too: a call tree can run for ever without a loop
	Marked    uint32 // index of a function whose loops are told apart: they set MarkExport before they ask; 0 for none
}

// defaultCountdown keeps the gap between two polls of the JavaScript engine at 0.07 ms (p50) and 0.22 ms (p99); it
// costs 2 % of a CPU-bound run.
const defaultCountdown = 10_000

// MeterStats says what AddMeter found.
type MeterStats struct {
	Functions int // functions the module defined before
	Loops     int // loop heads, each of which counts now
	Bulk      int // memory.copy and memory.fill instructions, each of which counts by its length now
}

// CounterExport is the name under which a metered module exports its counter, a mutable i32 global. The host sets it
// back to the countdown when it restores an instance.
const CounterExport = "__fuel"

// MarkExport is the name under which a module with a marked function exports a mutable i32 global. It is 1 in a call of
// the interrupt function that a loop of the marked function made; the host sets it back to 0.
const MarkExport = "__marked"

// AddMeter adds a counter, takes one from it at the head of every loop (and at every function entry, if asked) and one
// per 64 bytes before every bulk memory instruction, and has a helper call the interrupt function and refill the counter
// when it reaches zero.
func (m *Module) AddMeter(opt Meter) (MeterStats, error) {
	const op = "wasmpass.AddMeter"
	if opt.Countdown == 0 {
		opt.Countdown = defaultCountdown
	}
	if opt.Countdown < 0 || opt.Countdown == math.MaxInt32 { // the refill is one larger
		return MeterStats{}, fault.Newf(fault.Invalid, op, "countdown %d", opt.Countdown)
	}
	if opt.Interrupt >= m.numFuncs() || m.typeOf(opt.Interrupt) != (FuncType{Results: string(rune(i32))}) {
		return MeterStats{}, fault.New(fault.Invalid, op, "the interrupt function is not of type -> i32")
	}
	if opt.Marked != 0 && (opt.Marked < m.importedFuncs || opt.Marked >= m.numFuncs()) {
		return MeterStats{}, fault.Newf(fault.Invalid, op, "function %d cannot be marked: the module does not define it", opt.Marked)
	}
	stats := MeterStats{Functions: len(m.funcs)}
	full := appendS32([]byte{opI32Const}, opt.Countdown)
	counter := m.addGlobal(global{typ: i32, mutable: true, init: append(full[:len(full):len(full)], opEnd)})
	if err := m.addExport(op, export{name: CounterExport, kind: Global, index: counter}); err != nil {
		return MeterStats{}, err
	}
	refill := m.addFunc(FuncType{}, refillCode(opt.Interrupt, counter, opt.Countdown))
	st := steps{take: takeCode(counter), refill: appendU32([]byte{opCall}, refill)}
	plain := st.refill
	marked, err := m.addMark(op, opt.Marked, refill)
	if err != nil {
		return MeterStats{}, err
	}
	for i := range stats.Functions {
		st.refill = plain
		if opt.Marked != 0 && m.importedFuncs+uint32(i) == opt.Marked {
			st.refill = marked
		}
		code, loops := st.insert(m.code[i].code, opt.Entries)
		m.code[i].code = code
		stats.Loops += loops
	}
	stats.Bulk = m.chargeBulk(stats.Functions, counter, refill)
	return stats, nil
}

// addMark returns what the loops of a marked function do instead of calling refill, nil if none is marked.
func (m *Module) addMark(op string, function, refill uint32) ([]byte, error) {
	if function == 0 {
		return nil, nil
	}
	mark := m.addGlobal(global{typ: i32, mutable: true, init: []byte{opI32Const, 0, opEnd}})
	if err := m.addExport(op, export{name: MarkExport, kind: Global, index: mark}); err != nil {
		return nil, err
	}
	code := appendU32([]byte{opI32Const, 1, opGlobalSet}, mark)
	code = append(appendU32(append(code, opCall), refill), opEnd)
	return appendU32([]byte{opCall}, m.addFunc(FuncType{}, code)), nil
}

// refillCode gives one step more than the countdown, since the step that found the counter empty is taken again.
func refillCode(interrupt, counter uint32, countdown int32) []byte {
	code := appendU32([]byte{opCall}, interrupt)
	code = append(code, opDrop)
	code = appendS32(append(code, opI32Const), countdown+1)
	code = appendU32(append(code, opGlobalSet), counter)
	return append(code, opEnd)
}

// takeCode takes one step from the counter and leaves whether that was the last.
func takeCode(counter uint32) []byte {
	code := appendU32([]byte{opGlobalGet}, counter)
	code = append(appendS32(append(code, opI32Const), -1), opI32Add)
	code = appendU32(append(code, opGlobalSet), counter)
	code = appendU32(append(code, opGlobalGet), counter)
	return append(code, opI32Eqz)
}
