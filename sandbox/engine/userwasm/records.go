package userwasm

import (
	"bytes"
	"encoding/gob"

	"github.com/tetratelabs/wazero/api"

	"edged/internal/fault"
	"edged/sandbox/engine"
	"edged/sandbox/wasmpass"
)

// setup is what the prelude gave: values of the guest, which are the same in every clone.
type setup struct {
	CompileError, LinkError, RuntimeError uint64
	ToList                                uint64 // iterable -> array
	Externs                               uint64 // the array of values that a tenant's code refers to
	Count                                 uint32 // of them
}

type moduleRecord struct {
	Path  string // of a file of the bundle
	Bytes []byte // else, its bytes: only in a snapshot
}

// records are a state without what runs. References to functions are written as 1 + instance<<32 + index, all others as they are.
type records struct {
	Setup     setup
	Modules   []moduleRecord
	Memories  []memoryRecord
	Tables    []tableRecord
	Globals   []globalRecord
	Instances []instanceRecord
	Functions []functionRecord
}

// begin reads the records of the image, at the first use after a reset.
func (c *state) begin() {
	if c.begun {
		return
	}
	c.begun = true
	img := c.in.Image()
	if img == nil || len(img.Extra()) == 0 {
		c.live = true
		c.index()
		return
	}
	r := img.Decoded(decodeRecords).(*records)
	c.setup = r.Setup
	for _, m := range r.Modules {
		c.modules = append(c.modules, &moduleRef{record: m})
	}
	for _, m := range r.Memories {
		c.memories = append(c.memories, &memory{memoryRecord: m, state: c})
		c.windows += m.Capacity
	}
	c.live = len(r.Tables)+len(r.Globals)+len(r.Instances) == 0
	c.index()
}

func (c *state) index() {
	c.byRef, c.byValue = map[uint64]*function{}, map[engine.Value]*function{}
	c.byModule = map[api.Module]*instance{}
}

// ready makes what the records describe. False if an exception is pending.
func (c *state) ready() bool {
	c.begin()
	if c.live {
		return true
	}
	c.live = true
	if err := c.revive(c.in.Image().Decoded(decodeRecords).(*records)); err != nil {
		c.live = false
		if c.in.Err() == nil && err != errThrown {
			c.in.ThrowError("Error", "WebAssembly: the instances of the snapshot cannot be made: "+reason(err))
		}
		return false
	}
	return true
}

func (c *state) revive(r *records) error {
	for _, t := range r.Tables {
		x := &table{tableRecord: t}
		x.Entries = nil
		if err := x.open(c); err != nil {
			return err
		}
		x.grow(c, uint32(len(t.Entries)), 0)
		c.tables = append(c.tables, x)
	}
	for _, g := range r.Globals {
		x := &global{globalRecord: g}
		if err := x.open(c); err != nil {
			return err
		}
		c.globals = append(c.globals, x)
	}
	for i, rec := range r.Instances {
		m := c.module(rec.Module)
		if m == nil {
			return errThrown
		}
		in := &instance{state: c, instanceRecord: rec, number: int32(i), module: m}
		in.State = nil
		if err := c.start(in); err != nil {
			return err
		}
		c.instances = append(c.instances, in)
	}
	for _, f := range r.Functions {
		c.addFunction(c.instances[f.Instance], f)
	}
	return c.fill(r)
}

// fill sets what may refer to functions.
func (c *state) fill(r *records) error {
	for i, t := range r.Tables {
		for k, n := range t.Entries {
			if n == 0 {
				continue
			}
			ref, err := c.unpack(n, t.Elem)
			if err != nil {
				return err
			}
			c.tables[i].put(uint32(k), ref)
		}
	}
	for i, g := range r.Globals {
		n, err := c.unpack(g.Value, g.Type)
		if err != nil {
			return err
		}
		c.globals[i].cell.Set(n)
	}
	for i, rec := range r.Instances {
		in := c.instances[i]
		for k, n := range rec.State {
			v, err := c.unpack(n, in.module.State[k])
			if err != nil {
				return err
			}
			in.cell(k).Set(v)
		}
	}
	return nil
}

func (c *state) pack(n uint64, typ byte) (uint64, error) {
	if typ != wasmpass.TypeFuncref || n == 0 {
		return n, nil
	}
	p, ok := c.find(n)
	if !ok {
		return 0, fault.New(fault.Internal, "userwasm.Save", "a reference leads nowhere")
	}
	return 1 + uint64(p.in.number)<<32 + uint64(p.index), nil
}

func (c *state) unpack(n uint64, typ byte) (uint64, error) {
	if typ != wasmpass.TypeFuncref || n == 0 {
		return n, nil
	}
	at, index := (n-1)>>32, uint32(n-1)
	if at < uint64(len(c.instances)) {
		if ref, ok := c.instances[at].refer(index); ok {
			return ref, nil
		}
	}
	return 0, fault.New(fault.Internal, "userwasm.revive", "a reference leads nowhere")
}

// Save is engine.Companion's.
func (c *state) Save() ([]byte, error) {
	if !c.begun || !c.live { // nothing was used since the image that this instance comes from
		if img := c.in.Image(); img != nil && (!c.begun || len(c.modules) == len(img.Decoded(decodeRecords).(*records).Modules)) {
			return img.Extra(), nil
		}
		if !c.begun {
			return nil, nil
		}
		if !c.ready() {
			return nil, fault.New(fault.Internal, "userwasm.Save", "the instances of the image cannot be made")
		}
	}
	r := &records{Setup: c.setup}
	for _, m := range c.modules {
		rec := m.record
		if rec.Path == "" && m.module != nil {
			rec.Bytes = m.module.source
		}
		r.Modules = append(r.Modules, rec)
	}
	for _, m := range c.memories {
		r.Memories = append(r.Memories, m.memoryRecord)
	}
	if err := c.saveValues(r); err != nil {
		return nil, err
	}
	for _, f := range c.functions {
		r.Functions = append(r.Functions, f.functionRecord)
	}
	var b bytes.Buffer
	if err := gob.NewEncoder(&b).Encode(r); err != nil {
		return nil, fault.Wrap(fault.Internal, "userwasm.Save", err)
	}
	return b.Bytes(), nil
}

func (c *state) saveValues(r *records) (err error) {
	keep := func(n uint64, typ byte) uint64 {
		v, e := c.pack(n, typ)
		if e != nil && err == nil {
			err = e
		}
		return v
	}
	for _, t := range c.tables {
		rec := t.tableRecord
		for i := range t.size() {
			n, _ := t.at(i)
			rec.Entries = append(rec.Entries, keep(n, t.Elem))
		}
		r.Tables = append(r.Tables, rec)
	}
	for _, g := range c.globals {
		rec := g.globalRecord
		rec.Value = keep(g.cell.Get(), g.Type)
		r.Globals = append(r.Globals, rec)
	}
	for _, in := range c.instances {
		rec := in.instanceRecord
		for i, typ := range in.module.State {
			rec.State = append(rec.State, keep(in.cell(i).Get(), typ))
		}
		r.Instances = append(r.Instances, rec)
	}
	return err
}

// decodeRecords reads what Save wrote. An image's file is private to the node and has a checksum.
func decodeRecords(extra []byte) any {
	r := &records{}
	if gob.NewDecoder(bytes.NewReader(extra)).Decode(r) != nil {
		return &records{}
	}
	return r
}
