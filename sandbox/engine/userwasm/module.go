package userwasm

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"

	"edged/internal/fault"
	"edged/sandbox/wasmpass"
)

// Module is a compiled module. Immutable.
type Module struct {
	*wasmpass.Tenant
	source   []byte
	library  *Library
	compiled wazero.CompiledModule
}

// newModule rewrites, compiles and tries out a module.
func (l *Library) newModule(b []byte, number int) (*Module, error) {
	t, err := wasmpass.RewriteTenant(b, hostName(number))
	if err != nil {
		return nil, fmt.Errorf("%w: %s", errInvalid, reason(err))
	}
	for i, table := range t.Tables {
		if table.Import < 0 && table.Min > maxEntries {
			return nil, fmt.Errorf("%w: table %d has %d entries; the most is %d", errInvalid, i, table.Min, maxEntries)
		}
	}
	ctx := context.Background()
	compiled, err := l.runtime.CompileModule(ctx, t.Code)
	if err != nil {
		return nil, fmt.Errorf("%w: %s", errInvalid, reason(err))
	}
	m := &Module{Tenant: t, source: b, library: l, compiled: compiled}
	if err := m.makeHost(ctx, l.runtime, hostName(number)); err != nil {
		return nil, fault.Wrap(fault.Internal, "userwasm.compile", err)
	}
	return m, m.tryOut(ctx)
}

// Reason says why a module was refused, in one line for whoever wrote it.
func Reason(err error) string {
	return strings.TrimPrefix(reason(err), errInvalid.Error()+": ")
}

// reason is an error's own text, without the operations that it went through, in one short line.
func reason(err error) string {
	s := err.Error()
	if d := fault.Detail(err); d != "" {
		s = d
	}
	if _, why, ok := strings.Cut(s, fault.Invalid.String()+": "); ok {
		s = why
	}
	s, _, _ = strings.Cut(s, "\n")
	const most = 300
	return strings.ToValidUTF8(s[:min(len(s), most)], "")
}

// makeHost makes the functions that the module imports. One host module serves all instances: who calls is told by the
// caller's module and the context.
func (m *Module) makeHost(ctx context.Context, rt wazero.Runtime, name string) error {
	b := rt.NewHostModuleBuilder(name)
	i32 := api.ValueTypeI32
	define := func(name string, f func(c *state, in *instance, stack []uint64), params, results []api.ValueType) {
		guarded := func(ctx context.Context, caller api.Module, stack []uint64) {
			c := ctx.(*callContext).state
			defer c.guard()
			f(c, c.byModule[caller], stack)
		}
		b.NewFunctionBuilder().WithGoModuleFunction(api.GoModuleFunc(guarded), params, results).Export(name)
	}
	define(wasmpass.PollName, func(c *state, _ *instance, s []uint64) { c.in.Checkpoint(); s[0] = 0 }, nil, []api.ValueType{i32})
	define(wasmpass.OverflowName, func(_ *state, in *instance, _ []uint64) { in.deeper() }, nil, nil)
	define(wasmpass.RoomName, func(c *state, in *instance, s []uint64) {
		s[0] = uint64(c.tables[in.Tables[uint32(s[0])]].room(c, uint32(s[1])))
	}, []api.ValueType{i32, i32}, []api.ValueType{i32})
	for i, l := range m.Imports {
		if l.Kind == wasmpass.Func {
			define(strconv.Itoa(i), func(c *state, in *instance, s []uint64) { c.callImport(in, i, s) }, []byte(l.Func.Params), []byte(l.Func.Results))
		}
	}
	_, err := b.Instantiate(ctx)
	return err
}

// tryOut instantiates the module for the first time, alone, as wazero needs it. Nothing of the module runs.
func (m *Module) tryOut(ctx context.Context) error {
	var made []api.Module
	defer func() {
		for _, x := range made {
			_ = x.Close(ctx)
		}
	}()
	resolve := func(kind byte, elem byte) api.Module {
		x, err := m.library.runtime.InstantiateModule(ctx, m.library.holder(kind, elem), plain())
		if err != nil {
			return nil
		}
		made = append(made, x)
		return x
	}
	x, err := m.instantiate(ctx, func(name string) api.Module {
		switch n := number(name); name[:1] {
		case wasmpass.MemoryModule:
			return resolve('m', 0)
		case wasmpass.TableModule:
			return resolve('t', m.Tables[n].Elem)
		default:
			return resolve('g', 0)
		}
	})
	if err != nil {
		return fmt.Errorf("%w: %s", errInvalid, reason(err))
	}
	made = append(made, x)
	return nil
}

// hostName is the name of the module that has the functions which the module of a number imports.
func hostName(number int) string { return hostModule + strconv.Itoa(number) }

const hostModule = "h"

// number is what stands behind the first letter of an import's module.
func number(name string) int {
	n, _ := strconv.Atoi(name[1:])
	return n
}

// holder returns what holds a memory, a table of a type, or a global.
func (l *Library) holder(kind, elem byte) wazero.CompiledModule {
	switch {
	case kind == 'm':
		return l.holders.memory
	case kind == 'g':
		return l.holders.globals
	case elem == wasmpass.TypeFuncref:
		return l.holders.funcs
	}
	return l.holders.externs
}
