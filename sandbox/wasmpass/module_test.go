package wasmpass_test

import (
	"bytes"
	"context"
	"slices"
	"testing"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"

	"edged/sandbox/wasmpass"
)

// A small assembler: enough to write modules by hand below.
const header = "\x00asm\x01\x00\x00\x00"

func wasmOf(sections ...[]byte) []byte {
	return append([]byte(header), slices.Concat(sections...)...)
}

func sec(id byte, payload ...byte) []byte {
	return append([]byte{id, byte(len(payload))}, payload...)
}

// codeSec writes one body per element, each without locals.
func codeSec(bodies ...[]byte) []byte {
	payload := []byte{byte(len(bodies))}
	for _, b := range bodies {
		payload = append(payload, byte(len(b)+1), 0)
		payload = append(payload, b...)
	}
	return sec(10, payload...)
}

const (
	tI32     = 0x7f
	tI64     = 0x7e
	tF32     = 0x7d
	tF64     = 0x7c
	tFuncref = 0x70
	end      = 0x0b
)

// callModule has every place where a function index can stand: calls, ref.func in code, an export, a start function,
// element segments of both shapes, a global. Each exported function returns a number that tells which function ran.
func callModule() []byte {
	return wasmOf(
		sec(1, 2, 0x60, 0, 1, tI32, 0x60, 0, 0), // 0: -> i32, 1: ->
		sec(2, 1, 1, 'h', 1, 'f', 0, 0),         // func 0: h.f
		sec(3, 7, 0, 0, 0, 0, 0, 0, 1),
		sec(4, 2, tFuncref, 1, 2, 2, tFuncref, 0, 1), // tables 0 (at most 2) and 1
		sec(6, 2, tFuncref, 0, 0xd2, 1, end, tI32, 1, 0x41, 0, end),
		sec(7, 6, 1, 'a', 0, 1, 1, 'b', 0, 2, 1, 'c', 0, 3, 1, 'd', 0, 4, 1, 'e', 0, 5, 1, 'g', 0, 6),
		sec(8, 7),
		sec(9, 3,
			0, 0x41, 0, end, 1, 1, // table 0, entry 0: func 1
			6, 1, 0x41, 0, end, tFuncref, 1, 0xd2, 1, end, // table 1, entry 0: func 1, as an expression
			3, 0, 1, 1), // declares func 1
		codeSec(
			[]byte{0x41, 11, end},                // 1: 11
			[]byte{0x10, 1, 0x41, 10, 0x6a, end}, // 2: 10 + func 1
			[]byte{0x10, 0, end},                 // 3: h.f
			[]byte{0x41, 0, 0x11, 0, 0, end},     // 4: through table 0
			[]byte{0x41, 0, 0x11, 0, 1, end},     // 5: through table 1
			[]byte{0x23, 1, // 6: what start left, + func 1 by the global, + func 1 by ref.func
				0x41, 0, 0x23, 0, 0x26, 0, 0x41, 0, 0x11, 0, 0, 0x6a,
				0x41, 0, 0xd2, 1, 0x26, 0, 0x41, 0, 0x11, 0, 0, 0x6a, end},
			[]byte{0x41, 30, 0x24, 1, end}, // 7: start
		),
	)
}

// loopModule exports run(n), which goes round a loop n times, and deep(n), which calls itself n times.
func loopModule() []byte {
	return wasmOf(
		sec(1, 2, 0x60, 1, tI32, 0, 0x60, 0, 1, tI32),
		sec(2, 1, 1, 'h', 1, 'f', 0, 1),
		sec(3, 2, 0, 0),
		sec(7, 2, 3, 'r', 'u', 'n', 0, 1, 4, 'd', 'e', 'e', 'p', 0, 2),
		codeSec(
			[]byte{0x03, 0x40, 0x20, 0, 0x41, 0x7f, 0x6a, 0x22, 0, 0x0d, 0, end, end},
			[]byte{0x20, 0, 0x04, 0x40, 0x20, 0, 0x41, 0x7f, 0x6a, 0x10, 2, end, end},
		),
	)
}

func decode(t testing.TB, code []byte) *wasmpass.Module {
	t.Helper()
	m, err := wasmpass.Decode(code)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// instantiate runs a module with h.f and h.g, which return what the given functions do.
func instantiate(t testing.TB, code []byte, f, g func() uint64) api.Module {
	t.Helper()
	ctx := t.Context()
	rt := wazero.NewRuntimeWithConfig(ctx, wazero.NewRuntimeConfigInterpreter())
	t.Cleanup(func() { rt.Close(context.WithoutCancel(ctx)) })
	host := rt.NewHostModuleBuilder("h")
	for name, fn := range map[string]func() uint64{"f": f, "g": g} {
		host.NewFunctionBuilder().WithGoModuleFunction(api.GoModuleFunc(func(_ context.Context, _ api.Module, s []uint64) {
			s[0] = fn()
		}), nil, []api.ValueType{api.ValueTypeI32}).Export(name)
	}
	if _, err := host.Instantiate(ctx); err != nil {
		t.Fatal(err)
	}
	mod, err := rt.InstantiateWithConfig(ctx, code, wazero.NewModuleConfig().WithName(""))
	if err != nil {
		t.Fatal(err)
	}
	return mod
}

func callExport(t testing.TB, mod api.Module, name string, args ...uint64) uint64 {
	t.Helper()
	r, err := mod.ExportedFunction(name).Call(t.Context(), args...)
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	if len(r) == 0 {
		return 0
	}
	return r[0]
}

func number(n uint64) func() uint64 { return func() uint64 { return n } }

func funcType(t testing.TB, text string) wasmpass.FuncType {
	t.Helper()
	ft, err := wasmpass.ParseFuncType(text)
	if err != nil {
		t.Fatal(err)
	}
	return ft
}

// Decoding and encoding a module gives the same module.
func TestEncodeKeepsModule(t *testing.T) {
	for name, code := range map[string][]byte{"calls": callModule(), "loops": loopModule(), "empty": wasmOf()} {
		if got := decode(t, code).Encode(); !bytes.Equal(got, code) {
			t.Errorf("%s: got\n%x, want\n%x", name, got, code)
		}
	}
}

// A module says what it imports and exports, with types.
func TestModuleDescribesItself(t *testing.T) {
	m := decode(t, callModule())
	if im := m.Imports(); len(im) != 1 || im[0].Module != "h" || im[0].Name != "f" || im[0].Kind != wasmpass.Func || im[0].Type.String() != "-> i32" {
		t.Errorf("imports = %v", im)
	}
	if ex := m.Exports(); len(ex) != 6 || ex[1] != (wasmpass.Export{Name: "b", Index: 2, Type: funcType(t, "-> i32")}) {
		t.Errorf("exports = %v", ex)
	}
	if g := m.Globals(); !slices.Equal(g, []wasmpass.GlobalInfo{{}, {Mutable: true}}) {
		t.Errorf("globals = %v", g)
	}
	for _, text := range []string{"->", "-> i64", "i32 i64 f32 f64 ->", "v128 funcref -> externref"} {
		if got := funcType(t, text).String(); got != text && " "+got != text {
			t.Errorf("type %q is written %q", text, got)
		}
	}
	for _, text := range []string{"", "i32", "i33 ->"} {
		if _, err := wasmpass.ParseFuncType(text); err == nil {
			t.Errorf("type %q is accepted", text)
		}
	}
}
