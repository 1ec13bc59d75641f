package main

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"

	"edged/sandbox/engine/abi"
	"edged/sandbox/engine/wasm"
	"edged/sandbox/wasmpass"
)

type result struct {
	code     []byte
	manifest wasm.Manifest
	stats    wasmpass.MeterStats
}

// build runs the pass over the engine. A slow one lacks the edits that only make it faster.
func build(source []byte, slow bool) (result, error) {
	m, err := wasmpass.Decode(source)
	if err != nil {
		return result{}, err
	}
	if err := assert(m); err != nil {
		return result{}, err
	}
	if !slow {
		if err := speedUp(m); err != nil {
			return result{}, fmt.Errorf("the interpreter is not the one that the pass knows: %w", err)
		}
	}
	var res result
	entry, err := rewrite(m, &res.stats)
	if err != nil {
		return result{}, err
	}
	res.code = m.Encode()
	sum := sha256.Sum256(res.code)
	res.manifest = wasm.Manifest{
		Package:       abi.PackageName,
		Version:       abi.PackageVersion,
		PackageSHA256: abi.PackageSHA256,
		EngineSHA256:  hex.EncodeToString(sum[:]),
		ABI:           abi.Digest(),
		HostEntry:     entry,
		Countdown:     abi.Countdown,
	}
	return res, nil
}

// speedUp takes out of the interpreter what slows every instruction: the test whether to print it, and the table
// between opcode and code. It goes first, while the functions have the numbers that they are shipped with.
func speedUp(m *wasmpass.Module) error {
	folded, err := m.FoldSwitch()
	if err != nil {
		return err
	}
	dropped, err := m.DropFlagTests(wasmpass.FlagTest{
		Function: folded.Function, Offset: abi.DumpFlagOffset, Mask: abi.DumpFlagMask, Setter: abi.DumpFlagSetter,
	})
	if err != nil {
		return err
	}
	wantFolded := wasmpass.FoldStats{
		Function: abi.InterpreterFunc, Table: abi.SwitchTable, Targets: abi.SwitchTargets, Default: abi.SwitchDefault,
	}
	wantDropped := wasmpass.FlagStats{Sites: abi.DumpTests, Callees: abi.DumpCallees}
	if folded != wantFolded || dropped != wantDropped {
		return fmt.Errorf("found %+v and %+v, want %+v and %+v", folded, dropped, wantFolded, wantDropped)
	}
	return nil
}

// rewrite runs the pass and returns the table index of the host entry.
func rewrite(m *wasmpass.Module, stats *wasmpass.MeterStats) (uint32, error) {
	fastType, err := wasmpass.ParseFuncType(abi.FastType)
	if err != nil {
		return 0, err
	}
	fast, err := m.AddImport(abi.HostModule, abi.HostFast, fastType)
	if err != nil {
		return 0, err
	}
	entry, err := m.AppendTable(fast)
	if err != nil {
		return 0, err
	}
	interrupt, ok := m.ImportedFunc(abi.HostModule, abi.InterruptFn)
	if !ok {
		return 0, fmt.Errorf("%s.%s is not imported", abi.HostModule, abi.InterruptFn)
	}
	const imports = 1 // added above, before all functions
	*stats, err = m.AddMeter(wasmpass.Meter{Interrupt: interrupt, Countdown: abi.Countdown, Marked: abi.InterpreterFunc + imports})
	if err != nil {
		return 0, err
	}
	var names []string
	for _, x := range abi.Exports() {
		names = append(names, x.Name)
	}
	return entry, m.AddDispatcher(abi.Dispatcher, names)
}

// assert compares the engine with the abi and reports every difference.
func assert(m *wasmpass.Module) error {
	return errors.Join(assertImports(m), assertExports(m), assertState(m))
}

func assertImports(m *wasmpass.Module) error {
	type key struct{ module, name string }
	want := map[key]string{}
	for _, im := range abi.Imports() {
		want[key{im.Module, im.Name}] = im.Type
	}
	var errs []error
	for _, im := range m.Imports() {
		k := key{im.Module, im.Name}
		t, ok := want[k]
		switch {
		case !ok || im.Kind != wasmpass.Func:
			errs = append(errs, fmt.Errorf("import %s.%s (%s) is not one we provide", im.Module, im.Name, im.Kind))
		case im.Type.String() != t:
			errs = append(errs, fmt.Errorf("import %s.%s is of type %s, want %s", im.Module, im.Name, im.Type, t))
		}
		delete(want, k)
	}
	for _, im := range abi.Imports() {
		if _, missing := want[key{im.Module, im.Name}]; missing {
			errs = append(errs, fmt.Errorf("import %s.%s is missing", im.Module, im.Name))
		}
	}
	return errors.Join(errs...)
}

func assertExports(m *wasmpass.Module) error {
	have := map[string]wasmpass.Export{}
	for _, e := range m.Exports() {
		have[e.Name] = e
	}
	var errs []error
	for _, want := range abi.Exports() {
		e, ok := have[want.Name]
		switch {
		case !ok:
			errs = append(errs, fmt.Errorf("export %s is missing", want.Name))
		case e.Kind != wasmpass.Func || e.Type.String() != want.Type:
			errs = append(errs, fmt.Errorf("export %s is %s of type %s, want func of type %s", want.Name, e.Kind, e.Type, want.Type))
		}
	}
	for name, kind := range map[string]wasmpass.Kind{abi.Memory: wasmpass.Memory, abi.Table: wasmpass.Table, abi.StackPointer: wasmpass.Global} {
		if e, ok := have[name]; !ok || e.Kind != kind {
			errs = append(errs, fmt.Errorf("export %s is missing or not a %s", name, kind))
		}
	}
	return errors.Join(errs...)
}

// assertState sees that a snapshot of memory and stack pointer is all the state there is.
func assertState(m *wasmpass.Module) error {
	var errs []error
	mutable := 0
	for _, g := range m.Globals() {
		if g.Mutable {
			mutable++
		}
	}
	if mutable != 1 {
		errs = append(errs, fmt.Errorf("%d mutable globals, want only %s", mutable, abi.StackPointer))
	}
	for _, e := range m.Exports() {
		if e.Name == abi.StackPointer && !e.Mutable {
			errs = append(errs, fmt.Errorf("export %s is not mutable", abi.StackPointer))
		}
	}
	return errors.Join(errs...)
}
