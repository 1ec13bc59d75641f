package wasmpass_test

import (
	"encoding/binary"
	"slices"
	"strings"
	"testing"

	"edged/internal/fault"
	"edged/sandbox/wasmpass"
)

// switchOver is the switch of switchModule: a byte, kept in local 1; times 4; the table at 1024; minus 3; three labels.
var switchOver = []byte{0x20, 0, 0x2d, 0, 0, 0x22, 1, 0x41, 2, 0x74, 0x28, 2, 0x80, 8, 0x41, 3, 0x6b, 0x0e, 3, 0, 1, 2, 1}

// switchModule exports run(address): 10, 11 or 12, by what the table at 1024 says about the byte at that address. The
// table sends byte b to word tab(b); the word that the switch subtracts is label 0. Byte b lies at address b.
func switchModule(tab func(int) uint32, code []byte, extra ...byte) []byte {
	return switchModuleOf(code, extra, bytesSegment(), tableSegment(tab))
}

func switchModuleOf(code, extra []byte, segments ...[]byte) []byte {
	body := slices.Concat([]byte{1, 1, tI32, 0x02, 0x40, 0x02, 0x40, 0x02, 0x40}, code,
		[]byte{end, 0x41, 10, 0x0f, end, 0x41, 11, 0x0f, end, 0x41, 12}, extra, []byte{end})
	data := append([]byte{byte(len(segments))}, slices.Concat(segments...)...)
	return wasmOf(
		sec(1, 1, 0x60, 1, tI32, 1, tI32),
		sec(3, 1, 0),
		sec(5, 1, 0, 1),
		sec(7, 1, 3, 'r', 'u', 'n', 0, 0),
		sec(10, slices.Concat([]byte{1, byte(len(body))}, body)...),
		slices.Concat([]byte{11, byte(len(data)&0x7f) | 0x80, byte(len(data) >> 7)}, data),
	)
}

func bytesSegment() []byte {
	segment := []byte{0, 0x41, 0, end, 0x80, 2}
	for b := range 256 {
		segment = append(segment, byte(b))
	}
	return segment
}

func tableSegment(tab func(int) uint32) []byte {
	segment := []byte{0, 0x41, 0x80, 8, end, 0x80, 8}
	for b := range 256 {
		segment = binary.LittleEndian.AppendUint32(segment, tab(b))
	}
	return segment
}

// words sends most bytes to the three labels in turn, some below and above them.
func words(b int) uint32 {
	switch b {
	case 40:
		return 2 // minus 3: as far above as can be
	case 41:
		return 6 // the first above
	case 42:
		return 1 << 31
	}
	return 3 + uint32(b%3)
}

// All 256 bytes lead where the table led them, those outside the labels to the default; the table is not read any more.
func TestFoldSwitch(t *testing.T) {
	fromMinusOne := slices.Clone(switchOver)
	fromMinusOne[15] = 0x7f
	for name, code := range map[string][]byte{
		"from 3":  switchModule(words, switchOver),
		"from -1": switchModule(func(b int) uint32 { return words(b) - 4 }, fromMinusOne),
	} {
		t.Run(name, func(t *testing.T) {
			m := decode(t, code)
			stats, err := m.FoldSwitch()
			if err != nil || stats != (wasmpass.FoldStats{Function: 0, Table: 1024, Targets: 3, Default: 3}) {
				t.Fatalf("FoldSwitch = %+v, %v", stats, err)
			}
			folded := m.Encode()
			clear(folded[len(folded)-1024:]) // the table is the last thing in the module
			before, after := instantiate(t, code, nil, nil), instantiate(t, folded, nil, nil)
			for b := range uint64(256) {
				want := 10 + b%3
				if b >= 40 && b <= 42 {
					want = 11
				}
				if x, y := callExport(t, before, "run", b), callExport(t, after, "run", b); x != want || y != want {
					t.Errorf("byte %d leads to %d, folded to %d, want %d", b, x, y, want)
				}
			}
			if _, err := m.FoldSwitch(); fault.CodeOf(err) != fault.Invalid {
				t.Errorf("folded twice: %v", err)
			}
		})
	}
}

func TestFoldSwitchRefuses(t *testing.T) {
	other := func(at int, b byte) []byte {
		code := slices.Clone(switchOver)
		code[at] = b
		return code
	}
	table := tableSegment(words)
	moved := slices.Concat([]byte{0, 0x41, 0x84, 8}, table[4:]) // starts 4 bytes later
	wide := slices.Concat([]byte{0, 0x42}, table[2:])           // an i64.const
	passive := slices.Concat([]byte{1}, table[5:])
	for _, tc := range []struct {
		name string
		code []byte
		why  string
	}{
		{"none", loopModule(), "0 switches"},
		{"not a byte", switchModule(words, other(2, 0x2f)), "0 switches"},
		{"another scale", switchModule(words, other(8, 3)), "0 switches"},
		{"two", switchModule(words, switchOver, slices.Concat([]byte{0x1a, 0x02, 0x40, 0x02, 0x40}, switchOver, []byte{end, end, 0x41, 12})...), "2 switches"},
		{"the table is read elsewhere", switchModule(words, switchOver, 0x1a, 0x20, 0, 0x28, 2, 0xfc, 0x0f), "2 instructions"},
		{"the table's address is taken", switchModule(words, switchOver, 0x1a, 0x41, 0x80, 8), "2 instructions"},
		{"not all of it is data", switchModuleOf(switchOver, nil, moved), "fill 1024 bytes"},
		{"it is data twice", switchModuleOf(switchOver, nil, table, table), "fill 1024 bytes"},
		{"other data", switchModuleOf(switchOver, nil, bytesSegment()), "no data segment"},
		{"data somewhere", switchModuleOf(switchOver, nil, wide), "not constant"},
		{"data for later", switchModuleOf(switchOver, nil, passive, table), "flag 1"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if _, err := decode(t, tc.code).FoldSwitch(); fault.CodeOf(err) != fault.Invalid || !strings.Contains(err.Error(), tc.why) {
				t.Errorf("FoldSwitch = %v, want fault.Invalid with %q", err, tc.why)
			}
		})
	}
}
