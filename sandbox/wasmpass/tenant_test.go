package wasmpass_test

import (
	"context"
	"os"
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
