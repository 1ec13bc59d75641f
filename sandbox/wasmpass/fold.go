package wasmpass

import (
	"encoding/binary"
	"errors"
	"fmt"

	"edged/internal/fault"
)

// FoldStats says what FoldSwitch found.
type FoldStats struct {
	Function uint32 // that has the switch
	Table    uint32 // address of the table in memory
	Targets  int    // distinct labels that the bytes lead to, the default one included
	Default  int    // bytes that lead to the default label
}

// byteValues is how many values the operand of a folded switch has.
const byteValues = 256

// FoldSwitch finds the one switch over a byte that goes through a table of label numbers in memory, which is what
// computed gotos are compiled to, and makes it look at the byte alone: the table's content is written into the switch.
// The table must be constant: one data segment fills it and nothing else in the module names an address in it. The
// error carries fault.Invalid, also where there is no such switch or more than one.
func (m *Module) FoldSwitch() (FoldStats, error) {
	const op = "wasmpass.FoldSwitch"
	var found []tableSwitch
	for i, b := range m.code {
		for _, s := range tableSwitches(instructions(b.code)) {
			s.body = i
			found = append(found, s)
		}
	}
	if len(found) != 1 {
		return FoldStats{}, fault.Newf(fault.Invalid, op, "%d switches go through a table, want 1", len(found))
	}
	stats, err := m.fold(found[0])
	return stats, fault.Wrap(fault.Invalid, op, err)
}

// tableSwitch is a switch through a table: in list, the instructions of the body.
type tableSwitch struct {
	body int
	list []instruction
	from int // the first instruction after the one that leaves the byte
}

// tableSwitches finds "load a byte, tee it; times 4; load from the table; minus a constant; br_table".
func tableSwitches(list []instruction) (found []tableSwitch) {
	for i := 2; i+5 < len(list); i++ {
		if list[i-2].op == opI32Load8U && list[i-1].op == opLocalTee &&
			list[i].isConst(2) && list[i+1].op == opI32Shl && list[i+2].op == opI32Load &&
			list[i+3].op == opI32Const && list[i+4].op == opI32Sub && list[i+5].op == opBrTable {
			found = append(found, tableSwitch{list: list, from: i})
		}
	}
	return found
}

func (m *Module) fold(s tableSwitch) (FoldStats, error) {
	table := s.list[s.from+2].index
	stats := FoldStats{Function: m.importedFuncs + uint32(s.body), Table: table}
	if err := m.checkTableUse(table); err != nil {
		return stats, err
	}
	words, err := m.dataAt(table, 4*byteValues)
	if err != nil {
		return stats, err
	}
	code := m.code[s.body].code
	br := s.list[s.from+5]
	labels := branchLabels(code[br.start+1 : br.end])
	last := uint32(len(labels) - 1)
	put := appendU32([]byte{opBrTable}, byteValues)
	seen := map[uint32]bool{}
	for i := range byteValues {
		n := binary.LittleEndian.Uint32(words[4*i:]) - uint32(s.list[s.from+3].value)
		if n >= last {
			n = last
			stats.Default++
		}
		seen[labels[n]] = true
		put = appendU32(put, labels[n])
	}
	stats.Targets = len(seen)
	put = appendU32(put, labels[last])
	m.code[s.body].code = applyCuts(code, []cut{{start: s.list[s.from].start, end: br.end, put: put}})
	return stats, nil
}

// checkTableUse sees that one instruction names an address inside the table.
func (m *Module) checkTableUse(table uint32) error {
	inside := func(addr uint32) bool { return addr-table < 4*byteValues }
	uses := 0
	for _, b := range m.code {
		for _, in := range instructions(b.code) {
			memory := in.op >= opFirstLoad && in.op <= opLastStore
			if (memory && inside(in.index)) || (in.op == opI32Const && inside(uint32(in.value))) {
				uses++
			}
		}
	}
	if uses != 1 {
		return fmt.Errorf("%d instructions name an address in the table, want 1", uses)
	}
	return nil
}

// branchLabels reads the operands of a br_table, the default label last.
func branchLabels(operands []byte) []uint32 {
	r := &reader{b: operands}
	labels := make([]uint32, 0, len(operands))
	for n := r.u32() + 1; n > 0; n-- { // Decode bounded the count
		labels = append(labels, r.u32())
	}
	return labels
}

// dataAt returns n bytes that one active segment puts at a constant address, if no other segment touches them.
func (m *Module) dataAt(addr, n uint32) (found []byte, err error) {
	if m.data == nil {
		return nil, errors.New("there is no data")
	}
	r := &reader{b: m.data}
	for k := r.u32(); k > 0 && r.err == nil; k-- {
		if flag := r.u32(); flag != 0 {
			return nil, fmt.Errorf("a data segment has flag %d", flag)
		}
		offset := instructions(readConstExpr(r))
		content := r.bytes(r.u32())
		if r.err != nil || len(offset) != 2 || offset[0].op != opI32Const {
			return nil, errors.New("the address of a data segment is not constant")
		}
		start := uint64(uint32(offset[0].value))
		end := start + uint64(len(content))
		if end <= uint64(addr) || start >= uint64(addr)+uint64(n) {
			continue
		}
		if found != nil || start > uint64(addr) || end < uint64(addr)+uint64(n) {
			return nil, fmt.Errorf("several data segments or none fill %d bytes at %d", n, addr)
		}
		found = content[uint64(addr)-start:][:n]
	}
	if found == nil {
		return nil, fmt.Errorf("no data segment fills %d bytes at %d", n, addr)
	}
	return found, r.err
}
