package wasmpass_test

import (
	"bytes"
	"slices"
	"strings"
	"testing"

	"edged/internal/fault"
	"edged/sandbox/wasmpass"
)

// flagTest is "if (byte 9 of a structure & 4) call func 0(7)" after an address that the caller writes.
var flagTest = []byte{0x2d, 0, 9, 0x41, 4, 0x71, 0x04, 0x40, 0x41, 7, 0x10, 0, end}

// flagModule has an imported function h.d, func 1 with the given body ("i32 -> i32", one i32 local), and func 2, "set",
// which stores its parameter at offset 9 of address 0. Func 3 is a bystander.
func flagModule(body, bystander []byte, elements ...byte) []byte {
	set := []byte{0x41, 0, 0x20, 0, 0x3a, 0, 9, end}
	return wasmOf(
		sec(1, 3, 0x60, 1, tI32, 0, 0x60, 1, tI32, 1, tI32, 0x60, 0, 0),
		sec(2, 1, 1, 'h', 1, 'd', 0, 0),
		sec(3, 3, 1, 0, 2),
		sec(4, 1, tFuncref, 0, 1),
		sec(5, 1, 0, 1),
		sec(7, 2, 3, 'r', 'u', 'n', 0, 1, 3, 's', 'e', 't', 0, 2),
		sec(9, append([]byte{1, 0, 0x41, 0, end, byte(len(elements))}, elements...)...),
		sec(10, slices.Concat([]byte{3, byte(len(body) + 3), 1, 1, tI32}, body,
			[]byte{byte(len(set) + 1), 0}, set, []byte{byte(len(bystander) + 1), 0}, bystander)...),
	)
}

func drop(t *testing.T, code []byte) (*wasmpass.Module, wasmpass.FlagStats, error) {
	t.Helper()
	m := decode(t, code)
	stats, err := m.DropFlagTests(wasmpass.FlagTest{Function: 1, Offset: 9, Mask: 4, Setter: "set"})
	return m, stats, err
}

// The test goes, with as much of its address as serves nothing else, and what is around it stays.
func TestDropFlagTests(t *testing.T) {
	rest := []byte{0x20, 1, 0x20, 0, 0x6a, end}
	for _, tc := range []struct {
		name           string
		address, stays []byte
	}{
		{"local", []byte{0x20, 0}, nil},
		{"load", []byte{0x20, 0, 0x28, 2, 8}, nil},
		{"sum", []byte{0x20, 0, 0x41, 8, 0x6a, 0x28, 2, 0}, nil},
		{"local that is kept", []byte{0x20, 0, 0x41, 8, 0x6a, 0x22, 1, 0x28, 2, 0}, []byte{0x20, 0, 0x41, 8, 0x6a, 0x21, 1}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			// Twice, with something between that looks like a beginning.
			body := slices.Concat(tc.address, flagTest, []byte{0x41, 1, 0x1a}, tc.address, flagTest, rest)
			m, stats, err := drop(t, flagModule(body, []byte{end}))
			if err != nil || stats != (wasmpass.FlagStats{Sites: 2, Callees: 1}) {
				t.Fatalf("DropFlagTests = %+v, %v", stats, err)
			}
			want := flagModule(slices.Concat(tc.stays, []byte{0x41, 1, 0x1a}, tc.stays, rest), []byte{end})
			w := decode(t, want)
			if got := w.Encode(); !slices.Equal(got, want) {
				t.Fatal("the module to compare with is not in its plainest form")
			}
			if exports := m.Exports(); len(exports) != 1 || exports[0].Name != "run" {
				t.Errorf("exports are %v: the flag can still be set", exports)
			}
			if !slices.Equal(codeOf(m), codeOf(w)) {
				t.Errorf("got\n%x, want\n%x", codeOf(m), codeOf(w))
			}
		})
	}
}

// codeOf returns the bytes of the code section.
func codeOf(m *wasmpass.Module) []byte {
	for b := m.Encode()[len(header):]; len(b) > 1; b = b[2+int(b[1]):] { // the sections of these tests are short
		if b[0] == 10 {
			return b[2 : 2+int(b[1])]
		}
	}
	return nil
}

// Whatever is not the known shape, to the byte, may not be taken for it: the build must fail instead.
func TestDropFlagTestsRefuses(t *testing.T) {
	ok := slices.Concat([]byte{0x20, 0}, flagTest, []byte{0x20, 0, end})
	with := func(at int, b ...byte) []byte { // ok with other bytes from at on
		return slices.Concat(ok[:at], b, ok[at+len(b):])
	}
	body := func(parts ...[]byte) []byte { return slices.Concat(slices.Concat(parts...), []byte{0x20, 0, end}) }
	quiet := []byte{end}
	for _, tc := range []struct {
		name string
		code []byte
		why  string
	}{
		{"another mask", flagModule(with(6, 8), quiet), "known way"},
		{"another operation", flagModule(with(7, 0x72), quiet), "known way"},
		{"the setter has two names", bytes.Replace(flagModule(ok, quiet), []byte("run\x00\x01"), []byte("run\x00\x02"), 1), "also exported"},
		{"another use", flagModule(body([]byte{0x20, 0, 0x2d, 0, 9, 0x1a}), quiet), "known way"},
		{"a value comes out", flagModule(body([]byte{0x20, 0}, flagTest[:6], []byte{0x04, tI32, 0x41, 1, 0x05, 0x41, 2, end, 0x1a}), quiet), "known way"},
		{"an else", flagModule(body([]byte{0x20, 0}, flagTest[:12], []byte{0x05, 0x01, end}), quiet), "more than a call"},
		{"more after the call", flagModule(body([]byte{0x20, 0}, flagTest[:12], []byte{0x01, end}), quiet), "more than a call"},
		{"no call", flagModule(body([]byte{0x20, 0}, flagTest[:8], []byte{0x01, 0x01, end}), quiet), "opcode 0x1"},
		{"a write before the call", flagModule(body([]byte{0x20, 0}, flagTest[:8], []byte{0x20, 0, 0x22, 0, 0x10, 0, end}), quiet), "opcode 0x22"},
		{"a branch", flagModule(body([]byte{0x20, 0}, flagTest[:8], []byte{0x0c, 0, 0x41, 7, 0x10, 0, end}), quiet), "opcode 0xc"},
		{"a result", flagModule(body([]byte{0x20, 0}, flagTest[:8], []byte{0x41, 7, 0x10, 1, end}), quiet), "of type i32 -> i32"},
		{"too many arguments", flagModule(body([]byte{0x20, 0}, flagTest[:8], []byte{0x41, 7, 0x41, 7, 0x10, 0, end}), quiet), "2 arguments"},
		{"an address that a call gives", flagModule(body([]byte{0x20, 0, 0x10, 1}, flagTest), quiet), "comes from opcode 0x10"},
		{"an address of several parts", flagModule(body([]byte{0x41, 1, 0x20, 0, 0x22, 1, 0x6a}, flagTest), quiet), "several parts"},
		{"the setter is called", flagModule(ok, []byte{0x41, 0, 0x10, 2, end}), "used inside"},
		{"the setter is in the table", flagModule(ok, quiet, 2), "used inside"},
		{"the setter is referred to", flagModule(ok, []byte{0xd2, 2, 0x1a, end}), "used inside"},
		{"another function sets", flagModule(ok, []byte{0x41, 0, 0x41, 1, 0x3b, 0, 9, end}), "function 3 writes"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if _, _, err := drop(t, tc.code); fault.CodeOf(err) != fault.Invalid || !strings.Contains(err.Error(), tc.why) {
				t.Errorf("DropFlagTests = %v, want fault.Invalid with %q", err, tc.why)
			}
		})
	}
	for name, opt := range map[string]wasmpass.FlagTest{
		"an imported function":  {Function: 0, Offset: 9, Mask: 4, Setter: "set"},
		"no such function":      {Function: 4, Offset: 9, Mask: 4, Setter: "set"},
		"no such setter":        {Function: 1, Offset: 9, Mask: 4, Setter: "put"},
		"setter of another one": {Function: 1, Offset: 8, Mask: 4, Setter: "set"},
	} {
		if _, err := decode(t, flagModule(ok, quiet)).DropFlagTests(opt); fault.CodeOf(err) != fault.Invalid {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, stats, err := drop(t, flagModule(ok, quiet)); err != nil || stats.Sites != 1 {
		t.Errorf("the known shape: %+v, %v", stats, err)
	}
}
