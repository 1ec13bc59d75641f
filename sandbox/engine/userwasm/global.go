package userwasm

import (
	"context"

	"github.com/tetratelabs/wazero/api"

	"edged/sandbox/engine"
	"edged/sandbox/wasmpass"
)

type globalRecord struct {
	Type    byte
	Mutable bool
	Value   uint64 // only in a snapshot, as records.go writes it
}

// global is one that scripts or several modules can reach.
type global struct {
	globalRecord
	holder api.Module
	cell   api.MutableGlobal
}

// newGlobal makes a global that holds zero or null and returns its number, -1 if there are too many.
func (c *state) newGlobal(typ byte, mutable bool) (int32, error) {
	if len(c.globals) >= maxGlobals {
		return -1, nil
	}
	g := &global{globalRecord: globalRecord{Type: typ, Mutable: mutable}}
	if err := g.open(c); err != nil {
		return -1, err
	}
	c.globals = append(c.globals, g)
	return int32(len(c.globals) - 1), nil
}

func (g *global) open(c *state) (err error) {
	if g.holder, err = c.hold(context.Background(), 'g', 0); err != nil {
		return err
	}
	g.cell = g.holder.ExportedGlobal(wasmpass.GlobalName(g.Type)).(api.MutableGlobal)
	return nil
}

func (g *global) value(c *state) engine.Value { return c.fromWasm(g.cell.Get(), g.Type) }

// assign converts and sets; false if an exception is pending.
func (g *global) assign(c *state, v engine.Value) bool {
	n, ok := c.toWasm(v, g.Type)
	if ok {
		g.cell.Set(n)
	}
	return ok
}
