package wasmpass_test

import (
	"context"
	"slices"
	"testing"

	"github.com/tetratelabs/wazero"

	"edged/sandbox/wasmpass"
)

// Nothing makes the pattern edits panic, and what they take for their pattern is as valid after them as before.
func FuzzPatterns(f *testing.F) {
	body := slices.Concat([]byte{0x20, 0, 0x41, 8, 0x6a, 0x22, 1, 0x28, 2, 0}, flagTest, []byte{0x20, 0, end})
	f.Add(flagModule(body, []byte{end}))
	f.Add(switchModule(words, switchOver))
	rt := wazero.NewRuntimeWithConfig(context.Background(), wazero.NewRuntimeConfigInterpreter())
	f.Cleanup(func() { rt.Close(context.Background()) })
	valid := func(t *testing.T, code []byte) bool {
		c, err := rt.CompileModule(t.Context(), code)
		if err == nil {
			c.Close(t.Context())
		}
		return err == nil
	}
	edits := map[string]func(*wasmpass.Module) error{
		"fold": func(m *wasmpass.Module) error {
			_, err := m.FoldSwitch()
			return err
		},
		"drop": func(m *wasmpass.Module) error {
			_, err := m.DropFlagTests(wasmpass.FlagTest{Function: 1, Offset: 9, Mask: 4, Setter: "set"})
			return err
		},
	}
	f.Fuzz(func(t *testing.T, code []byte) {
		for name, edit := range edits {
			m, err := wasmpass.Decode(code)
			if err != nil {
				return
			}
			if edit(m) == nil && valid(t, code) && !valid(t, m.Encode()) {
				t.Errorf("%s: a valid module became invalid", name)
			}
		}
	})
}
