package wasmpass_test

import (
	"bytes"
	"context"
	"strings"
	"testing"

	"github.com/tetratelabs/wazero"

	"edged/internal/fault"
	"edged/sandbox/wasmpass"
)

func indexOf(t testing.TB, code, part []byte) int {
	t.Helper()
	i := bytes.Index(code, part)
	if i < 0 || bytes.Contains(code[i+1:], part) {
		t.Fatalf("%x is not there exactly once", part)
	}
	return i
}

// bodyModule is one function "->" with the given code, beside one memory and one immutable i32 global.
func bodyModule(code ...byte) []byte {
	return wasmOf(sec(1, 1, 0x60, 0, 0), sec(3, 1, 0), sec(5, 1, 0, 1), sec(6, 1, tI32, 0, 0x41, 0, end), codeSec(code))
}

// What the pass does not understand, or could understand in another way than the compiler does, is refused: a loop
// that is missed or a counter that a guest reaches would let it run for ever.
func TestDecodeRefuses(t *testing.T) {
	types := sec(1, 1, 0x60, 0, 0)
	for _, tc := range []struct {
		name string
		code []byte
		why  string // in the error, so that each case is refused for its own reason
	}{
		{"nothing", nil, "not a WebAssembly module"},
		{"another version", []byte("\x00asm\x02\x00\x00\x00"), "not a WebAssembly module"},
		{"cut section", []byte(header + "\x01\x05\x01"), "length 5 exceeds"},
		{"unknown section", wasmOf(sec(13, 0)), "unknown section"},
		{"section twice", wasmOf(types, types), "out of order"},
		{"sections out of order", wasmOf(sec(3, 0), types), "out of order"},
		{"bytes left over", wasmOf(sec(1, 0, 0)), "left over"},
		{"huge count", wasmOf(sec(1, 0xff, 0xff, 0xff, 0xff, 0x0f)), "entries in"},
		{"number over 32 bits", wasmOf(sec(1, 0xff, 0xff, 0xff, 0xff, 0x1f)), "over 32 bits"},
		{"number of six bytes", wasmOf(sec(1, 0x80, 0x80, 0x80, 0x80, 0x80, 0)), "too long"},
		{"type form", wasmOf(sec(1, 1, 0x5f, 0, 0)), "type form"},
		{"value type", wasmOf(sec(1, 1, 0x60, 1, 0x64, 0)), "value type"},
		{"type of import", wasmOf(types, sec(2, 1, 1, 'h', 1, 'f', 0, 1)), "type 1 of 1"},
		{"kind of import", wasmOf(types, sec(2, 1, 1, 'h', 1, 'f', 4, 0)), "import kind"},
		{"type of function", wasmOf(types, sec(3, 1, 1)), "type 1 of 1"},
		{"function without body", wasmOf(types, sec(3, 1, 0)), "1 functions but 0 bodies"},
		{"64-bit memory import", wasmOf(sec(2, 1, 1, 'h', 1, 'm', 2, 4, 1)), "limits"},
		{"table with initialiser", wasmOf(sec(4, 1, 0x40, 0, tFuncref, 0, 1)), "table type"},
		{"export that does not exist", wasmOf(sec(7, 1, 1, 'a', 0, 0)), "does not exist"},
		{"export of the counter to come", wasmOf(sec(7, 1, 1, 'a', 3, 0)), "does not exist"},
		{"export twice", wasmOf(sec(7, 2, 1, 'a', 2, 0, 1, 'a', 2, 0)), "two exports"},
		{"start that does not exist", wasmOf(sec(8, 0)), "start function"},
		{"element that does not exist", wasmOf(sec(9, 1, 0, 0x41, 0, end, 1, 0)), "function 0 of 0"},
		{"element expression that does not exist", wasmOf(sec(9, 1, 5, tFuncref, 1, 0xd2, 0, end)), "function 0 of 0"},
		{"element flag", wasmOf(sec(9, 1, 8, 0)), "element flag"},
		{"global of a function to come", wasmOf(sec(6, 1, tFuncref, 0, 0xd2, 0, end)), "function 0 of 0"},
		{"block in a constant", wasmOf(sec(6, 1, tI32, 0, 0x02, 0x40, end, end)), "control flow"},
		{"constant without end", wasmOf(sec(6, 1, tI32, 0, 0x41, 0)), "without end"},
		{"data offset", wasmOf(sec(11, 1, 0, 0x23, 0, end, 0)), "global 0 of 0"},
		{"data flag", wasmOf(sec(11, 1, 3, 0)), "data flag"},
		{"call of the helper to come", bodyModule(0x10, 1, end), "function 1 of 1"},
		{"reference to the helper to come", bodyModule(0xd2, 1, 0x1a, end), "function 1 of 1"},
		{"setting the counter to come", bodyModule(0x41, 0, 0x24, 1, end), "global 1 of 1"},
		{"reading the counter to come", bodyModule(0x23, 1, 0x1a, end), "global 1 of 1"},
		{"branch too far out", bodyModule(0x0c, 1, end), "branch to block 1 of 1"},
		{"conditional branch too far out", bodyModule(0x02, 0x40, 0x41, 0, 0x0d, 2, end, end), "branch to block 2 of 2"},
		{"table branch too far out", bodyModule(0x41, 0, 0x0e, 1, 1, 0, end), "branch to block 1 of 1"},
		{"branch much too far out", bodyModule(0x0c, 0xff, 0xff, 0xff, 0xff, 0x0f, end), "branch to block 4294967295"},
		{"open block", bodyModule(0x02, 0x40, end), "left open"},
		{"code after the end", bodyModule(end, 0x01), "after the end"},
		{"empty body", bodyModule(), "left open"},
		{"tail call", bodyModule(0x12, 0, end), "opcode 0x12"},
		{"try", bodyModule(0x06, 0x40, end, end), "opcode 0x6"},
		{"atomic", bodyModule(0xfe, 3, 0, end), "opcode 0xfe"},
		{"unknown misc", bodyModule(0xfc, 18, end), "0xfc 18"},
		{"padded misc", bodyModule(0xfc, 0x8a, 0, 0, 0, end), "0xfc 138"},
		{"padded SIMD", bodyModule(0xfd, 0x80, 0x80, 0, end), "0xfd 0x80"},
		{"SIMD over 255", bodyModule(0xfd, 0x80, 0x03, 0x40, end, end), "0xfd 0x80"},
		{"block of reference type", bodyModule(0x03, 0x63, 0x70, end, end), "block type"},
		{"padded block of reference type", bodyModule(0x03, 0xe3, 0x7f, 0x70, end, end), "block type"},
		{"padded block type", bodyModule(0x03, 0x80, 0x80, 0x80, 0x80, 0, end, end), "block type"},
		{"select of reference type", bodyModule(0x1c, 1, 0x63, 0x70, end), "value type"},
		{"select of two", bodyModule(0x1c, 2, tI32, tI32, end), "select of 2"},
		{"null of a type index", bodyModule(0xd0, 0x80, 0, 0x1a, end), "value type"},
		{"another memory", bodyModule(0x41, 0, 0x28, 0x42, 1, 0, 0x1a, end), "alignment"},
		{"grow of another memory", bodyModule(0x41, 0, 0x40, 1, 0x1a, end), "memory 1"},
		{"cut constant", bodyModule(0x44, 1, 2), "length 8 exceeds"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			_, err := wasmpass.Decode(tc.code)
			if fault.CodeOf(err) != fault.Invalid || !strings.Contains(err.Error(), tc.why) {
				t.Errorf("Decode = %v, want fault.Invalid with %q", err, tc.why)
			}
		})
	}
}

// Names would be wrong after an edit, so custom sections go.
func TestDecodeDropsCustomSections(t *testing.T) {
	custom := sec(0, 4, 'n', 'a', 'm', 'e', 1, 2, 3)
	code := append(append([]byte(header), custom...), loopModule()[len(header):]...)
	if got := decode(t, append(code, custom...)).Encode(); !bytes.Equal(got, loopModule()) {
		t.Errorf("got %x", got)
	}
}

// Nothing makes the pass panic; what it lets through can be edited and read again; and what compiled before the edits
// compiles after them. What did not still does not after the counting, which takes every body apart.
func FuzzInstrument(f *testing.F) {
	f.Add(callModule())
	f.Add(loopModule())
	f.Add(branchModule())
	f.Add(bodyModule(0x02, 0x40, 0x0e, 1, 0, 0, end, 0x41, 0, 0x41, 0, 0x41, 0, 0xfc, 11, 0, end))
	f.Add(bodyModule(0xfd, 12, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 0xfd, 0x81, 1, 0x1a, end))
	f.Add(wasmOf(sec(2, 3, 1, 'h', 1, 't', 1, tFuncref, 0, 1, 1, 'h', 1, 'm', 2, 1, 1, 2, 1, 'h', 1, 'g', 3, tI64, 1)))
	rt := wazero.NewRuntimeWithConfig(context.Background(), wazero.NewRuntimeConfigInterpreter())
	f.Cleanup(func() { rt.Close(context.Background()) })
	compile := func(t *testing.T, code []byte) error {
		c, err := rt.CompileModule(t.Context(), code)
		if err == nil {
			c.Close(t.Context())
		}
		return err
	}
	f.Fuzz(func(t *testing.T, code []byte) {
		m, err := wasmpass.Decode(code)
		if err != nil {
			return
		}
		valid := compile(t, m.Encode()) == nil // without custom sections, which may be at fault
		edited := edit(m)
		if edited == nil {
			return
		}
		again, err := wasmpass.Decode(edited)
		if err != nil {
			t.Fatalf("the result cannot be decoded: %v", err)
		}
		if !bytes.Equal(again.Encode(), edited) {
			t.Fatal("the result is not stable")
		}
		if err := compile(t, edited); valid && err != nil {
			t.Fatalf("a valid module became invalid: %v", err)
		}
		if counted := count(t, code); !valid && counted != nil && compile(t, counted) == nil {
			t.Fatal("an invalid module became valid")
		}
	})
}

// count makes the edits that counting needs; nil if a name is taken.
func count(t *testing.T, code []byte) []byte {
	m := decode(t, code)
	fn, err := m.AddImport("env", "interrupt", wasmpass.FuncType{Results: "\x7f"})
	if err != nil {
		return nil
	}
	if _, err := m.AddMeter(wasmpass.Meter{Interrupt: fn, Entries: true}); err != nil {
		return nil
	}
	return m.Encode()
}

// edit makes every edit that the module admits; nil if a name is taken.
func edit(m *wasmpass.Module) []byte {
	fn, err := m.AddImport("env", "interrupt", wasmpass.FuncType{Results: "\x7f"})
	if err != nil {
		return nil
	}
	m.AppendTable(fn) // refused where there is no table, and then changes nothing
	var names []string
	for _, e := range m.Exports() {
		if e.Kind == wasmpass.Func && len(e.Type.Results) < 2 && !strings.ContainsAny(e.Type.Params+e.Type.Results, "\x7b\x70\x6f") {
			names = append(names, e.Name)
		}
	}
	if _, err := m.AddMeter(wasmpass.Meter{Interrupt: fn, Entries: true}); err != nil {
		return nil
	}
	if m.AddDispatcher("x", names) != nil {
		return nil
	}
	return m.Encode()
}
