package userwasm

import (
	"context"
	"strconv"

	"github.com/tetratelabs/wazero/api"
	"github.com/tetratelabs/wazero/experimental"

	"edged/sandbox/engine"
	"edged/sandbox/wasmpass"
)

type instanceRecord struct {
	Module    int32
	Memory    int32 // -1: none
	Tables    []int32
	Globals   []int32
	Functions []binding // by position among the imports
	State     []uint64  // only in a snapshot: the module's own globals, as records.go writes them
}

// instance is one instance of a module.
type instance struct {
	instanceRecord
	state   *state
	number  int32
	module  *Module
	running api.Module
	depth   api.MutableGlobal
	line    api.MutableGlobal
	deep    bool // a call that has not returned, or one inside of it, used much stack
	refOf   api.Function
	byIndex map[uint32]*function
}

// instantiate makes an instance; resolve finds what it imports, by the names of wasmpass. Nothing of the module runs.
func (m *Module) instantiate(ctx context.Context, resolve func(name string) api.Module) (api.Module, error) {
	ctx = experimental.WithImportResolver(ctx, func(name string) api.Module {
		if name[:1] == hostModule {
			return nil // the runtime has it
		}
		return resolve(name)
	})
	return m.library.runtime.InstantiateModule(ctx, m.compiled, plain())
}

// start makes the running part of an instance whose imports are linked.
func (c *state) start(in *instance) error {
	var failed error
	running, err := in.module.instantiate(context.Background(), func(name string) api.Module {
		switch n := number(name); name[:1] {
		case wasmpass.MemoryModule:
			m, err := c.memories[in.Memory].module()
			failed = err
			return m
		case wasmpass.TableModule:
			return c.tables[in.Tables[n]].holder
		default:
			return c.globals[in.Globals[n]].holder
		}
	})
	if failed != nil {
		return failed
	}
	if err != nil {
		return err
	}
	c.made = append(c.made, running)
	in.running = running
	in.depth = running.ExportedGlobal(wasmpass.DepthExport).(api.MutableGlobal)
	in.line = running.ExportedGlobal(wasmpass.LineExport).(api.MutableGlobal)
	in.byIndex = map[uint32]*function{}
	c.byModule[running] = in
	return nil
}

// newInstance links, makes and begins an instance. nil if an exception is pending.
func (c *state) newInstance(module int32, m *Module, values []given) *instance {
	if len(c.instances) >= maxInstances {
		c.in.ThrowRange("WebAssembly: too many instances")
		return nil
	}
	in := &instance{state: c, number: int32(len(c.instances)), module: m, instanceRecord: instanceRecord{Module: module}}
	if !c.link(in, values) || !c.own(in) {
		return nil
	}
	if c.entries += uint32(len(m.Slots)); c.entries > maxEntries {
		c.in.ThrowRange("WebAssembly: too many functions are referred to")
		return nil
	}
	if err := c.start(in); err != nil {
		c.throwClass(c.setup.LinkError, reason(err))
		return nil
	}
	c.instances = append(c.instances, in) // also if it fails from here on: what it put into tables stays there
	if !c.enter(in, in.running.ExportedFunction(wasmpass.InitExport), make([]uint64, 1)) {
		return nil
	}
	return in
}

// exports returns what an instance exports, a pair of kind and value for each: the function, or a number. Exception if there is no
// room for them.
func (c *state) exports(in *instance) engine.Value {
	items := make([]engine.Value, 0, 2*len(in.module.Exports))
	for _, l := range in.module.Exports {
		v := engine.Undefined
		switch l.Kind {
		case wasmpass.Func:
			f := c.functionOf(in, l.Index)
			if f == nil {
				return c.in.ThrowRange("WebAssembly: too many functions")
			}
			if v = f.script(c); v.IsException() {
				return v
			}
		case wasmpass.Table:
			v = engine.Int(in.Tables[l.Index])
		case wasmpass.Memory:
			v = engine.Int(in.Memory)
		case wasmpass.Global:
			v = engine.Int(in.Globals[l.Index])
		}
		items = append(items, engine.Int(int32(l.Kind)), v)
	}
	return c.in.NewArray(items...)
}

// cell is one of the module's own globals.
func (in *instance) cell(i int) api.MutableGlobal {
	return in.running.ExportedGlobal(wasmpass.StateExport + strconv.Itoa(i)).(api.MutableGlobal)
}
