package abi_test

import (
	"testing"

	"edged/sandbox/engine/abi"
	"edged/sandbox/wasmpass"
)

// Every operation has a row, no export has two, and every type can be read.
func TestTablesAreComplete(t *testing.T) {
	seen := map[string]bool{}
	for i, x := range abi.Exports() {
		if x.Name == "" || seen[x.Name] || abi.Op(i).Name() != x.Name {
			t.Errorf("operation %d is named %q", i, x.Name)
		}
		seen[x.Name] = true
		checkType(t, x)
	}
	for _, im := range abi.Imports() {
		checkType(t, im.Func)
	}
	checkType(t, abi.Func{Name: abi.HostFast, Type: abi.FastType})
	if name := abi.Op(len(abi.Exports())).Name(); name != "" {
		t.Errorf("an operation beyond the table is named %q", name)
	}
}

func checkType(t *testing.T, f abi.Func) {
	t.Helper()
	if ft, err := wasmpass.ParseFuncType(f.Type); err != nil || ft.String() != f.Type {
		t.Errorf("%s is of type %q: %v", f.Name, f.Type, err)
	}
}

// The pass and the engine mean the same export.
func TestCounterName(t *testing.T) {
	if abi.Counter != wasmpass.CounterExport {
		t.Errorf("%q, but the pass writes %q", abi.Counter, wasmpass.CounterExport)
	}
}
