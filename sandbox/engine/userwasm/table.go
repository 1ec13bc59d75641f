package userwasm

import (
	"context"

	"github.com/tetratelabs/wazero/api"

	"edged/sandbox/engine"
	"edged/sandbox/wasmpass"
)

type tableRecord struct {
	Elem     byte
	Max      uint32
	Declared bool     // Max was
	Entries  []uint64 // only in a snapshot: references as records.go writes them
}

// table is a table of functions, or of values of JavaScript.
type table struct {
	tableRecord
	get, set, growBy, sizeOf api.Function
	holder                   api.Module
}

// newTable makes a table of null entries and returns its number, -1 if there is no room for it.
func (c *state) newTable(elem byte, min, max uint32, declared bool) (int32, error) {
	if len(c.tables) >= maxTables || min > maxEntries {
		return -1, nil
	}
	if !declared {
		max = maxEntries
	}
	t := &table{tableRecord: tableRecord{Elem: elem, Max: max, Declared: declared}}
	if err := t.open(c); err != nil {
		return -1, err
	}
	if t.grow(c, min, 0) < 0 {
		return -1, nil
	}
	c.tables = append(c.tables, t)
	return int32(len(c.tables) - 1), nil
}

func (t *table) open(c *state) (err error) {
	if t.holder, err = c.hold(context.Background(), 't', t.Elem); err != nil {
		return err
	}
	t.get, t.set = t.holder.ExportedFunction(wasmpass.TableGet), t.holder.ExportedFunction(wasmpass.TableSet)
	t.growBy, t.sizeOf = t.holder.ExportedFunction(wasmpass.TableGrow), t.holder.ExportedFunction(wasmpass.TableSize)
	return nil
}

func (t *table) size() uint32 {
	var s [1]uint64
	if t.sizeOf.CallWithStack(context.Background(), s[:]) != nil {
		return 0
	}
	return uint32(s[0])
}

// room tells a tenant's code whether it may grow the table by n entries: 1 or 0. What it says is taken.
func (t *table) room(c *state, n uint32) uint32 {
	if uint64(t.size())+uint64(n) > uint64(t.Max) || uint64(c.entries)+uint64(n) > maxEntries {
		return 0
	}
	c.entries += n
	return 1
}

// grow adds n entries that refer to ref and returns how many there were, -1 if that cannot be.
func (t *table) grow(c *state, n uint32, ref uint64) int64 {
	if t.room(c, n) == 0 {
		return -1
	}
	s := [2]uint64{ref, uint64(n)}
	if t.growBy.CallWithStack(context.Background(), s[:]) != nil {
		return -1
	}
	return int64(int32(uint32(s[0])))
}

// at returns an entry; ok is false if there is none.
func (t *table) at(i uint32) (ref uint64, ok bool) {
	s := [1]uint64{uint64(i)}
	err := t.get.CallWithStack(context.Background(), s[:])
	return s[0], err == nil
}

func (t *table) put(i uint32, ref uint64) bool {
	s := [2]uint64{uint64(i), ref}
	return t.set.CallWithStack(context.Background(), s[:]) == nil
}

// fits reports whether the table can be imported as want says.
func (t *table) fits(want wasmpass.TableType) bool {
	return t.Elem == want.Elem && t.size() >= want.Min && (!want.HasMax || t.Declared && t.Max <= want.Max)
}

// toRef turns a value into a reference for a table or global of a reference type; ok is false if an exception is pending.
func (c *state) toRef(v engine.Value, elem byte) (ref uint64, ok bool) {
	if elem == wasmpass.TypeExternref {
		return c.externIn(v)
	}
	if v.IsNull() {
		return 0, true
	}
	f := c.byValue[v]
	if f == nil {
		c.in.ThrowType("WebAssembly: the value is neither null nor an exported function")
		return 0, false
	}
	return f.ref(c)
}

// fromRef is the reverse; the value is the caller's.
func (c *state) fromRef(ref uint64, elem byte) engine.Value {
	switch {
	case elem == wasmpass.TypeExternref:
		return c.externOut(ref)
	case ref == 0:
		return engine.Null
	}
	f := c.functionAt(ref)
	if f == nil {
		return c.in.ThrowType("WebAssembly: the reference is not known")
	}
	return f.script(c)
}
