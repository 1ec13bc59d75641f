package wasmpass_test

import (
	"bytes"
	"context"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"
	"github.com/tetratelabs/wazero/experimental"

	"edged/sandbox/wasmpass"
)

func tenantFile(t testing.TB) []byte {
	t.Helper()
	b, err := os.ReadFile("../testdata/wasm/all.wasm")
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// A rewritten module is valid: the compiler takes it.
func TestTenantCompiles(t *testing.T) {
	m, err := wasmpass.RewriteTenant(tenantFile(t), "host")
	if err != nil {
		t.Fatal(err)
	}
	ctx := context.Background()
	rt := wazero.NewRuntimeWithConfig(ctx, wazero.NewRuntimeConfig().WithCoreFeatures(api.CoreFeaturesV2|experimental.CoreFeaturesExtendedConst))
	defer rt.Close(ctx)
	for _, code := range [][]byte{m.Code, wasmpass.MemoryHolder(), wasmpass.GlobalHolder(), wasmpass.TableHolder(wasmpass.TypeFuncref, 10), wasmpass.TableHolder(wasmpass.TypeExternref, 10)} {
		if _, err := rt.CompileModule(ctx, code); err != nil {
			t.Error(err)
		}
	}
}

// No input makes the rewriting panic, and what it makes of one can be decoded.
func FuzzTenant(f *testing.F) {
	f.Add(tenantFile(f))
	f.Fuzz(func(t *testing.T, b []byte) {
		m, err := wasmpass.RewriteTenant(b, "host")
		if err != nil {
			return
		}
		if _, err := wasmpass.Decode(m.Code); err != nil {
			t.Fatalf("what was written cannot be read: %v", err)
		}
	})
}

// costModule has one function of this body and so many locals.
func costModule(locals uint32, body []byte) []byte {
	leb := func(n uint32) (out []byte) {
		for ; n >= 0x80; n >>= 7 {
			out = append(out, byte(n)|0x80)
		}
		return append(out, byte(n))
	}
	code := slices.Concat([]byte{1}, leb(locals), []byte{tI32}, body, []byte{end})
	code = slices.Concat([]byte{1}, leb(uint32(len(code))), code)
	return wasmOf(sec(1, 1, 0x60, 0, 0), sec(3, 1, 0), slices.Concat([]byte{10}, leb(uint32(len(code))), code))
}

// A module of a few kilobytes can keep the compiler busy for minutes: it is refused before that, with a reason.
func TestTenantCosts(t *testing.T) {
	set := func(i int) []byte { return []byte{0x41, 0, 0x21, byte(i)&0x7f | 0x80, byte(i >> 7)} }
	nest := func(op byte, n int) (body []byte) {
		for i := range n {
			body = append(append(body, op, 0x40), set(i)...)
		}
		return append(body, bytes.Repeat([]byte{end}, n)...)
	}
	table := append([]byte{0x02, 0x40, 0x20, 0, 0x0e, 0xa0, 0x9c, 0x01}, make([]byte, 20001)...) // 20,000 targets
	for _, c := range []struct {
		name string
		code []byte
		want string
	}{
		{"loops in loops", costModule(200, nest(0x03, 200)), "too complex"},
		{"fewer of them", costModule(200, nest(0x03, 50)), ""},
		{"many blocks and locals", costModule(4000, nest(0x02, 4000)), "too complex"},
		{"branches", costModule(1, append(table, end)), "too complex"},
		{"locals", costModule(5000, nil), "too large"},
	} {
		if _, err := wasmpass.RewriteTenant(c.code, "h"); c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%s: %v, want %q", c.name, err, c.want)
		}
	}
}

// What this node cannot keep or reset is refused, and what the rewriting would make valid stays invalid.
func TestTenantRefuses(t *testing.T) {
	for _, c := range []struct {
		name string
		code []byte
	}{
		{"a constant is set", wasmOf(sec(1, 1, 0x60, 0, 0), sec(3, 1, 0), sec(6, 1, tI32, 0, 0x41, 0, end), sec(10, 1, 6, 0, 0x41, 1, 0x24, 0, end))},
		{"a constant expression calls", wasmOf(sec(1, 1, 0x60, 0, 1, tI32), sec(3, 1, 0), sec(6, 1, tI32, 0, 0x10, 0, end), sec(10, 1, 4, 0, 0x41, 1, end))},
		{"a mutable vector", wasmOf(sec(6, 1, 0x7b, 1, 0xfd, 12, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, end))},
		{"two memories", wasmOf(sec(5, 2, 0, 1, 0, 1))},
		{"a memory of too many pages", wasmOf(sec(5, 1, 0, 0x81, 0x80, 4))},
		{"a table whose maximum is below", wasmOf(sec(4, 1, 0x70, 1, 2, 1))},
		{"data that is not there", wasmOf(sec(12, 1))},
		{"a table for a segment that is not there", wasmOf(sec(9, 1, 0, 0x41, 0, end, 0))},
	} {
		if _, err := wasmpass.RewriteTenant(c.code, "h"); err == nil {
			t.Errorf("%s: accepted", c.name)
		}
	}
}
