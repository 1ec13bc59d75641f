package sandbox

import (
	"edged/internal/fault"
	"edged/sandbox/engine"
	"edged/sandbox/engine/userwasm"
	"edged/sandbox/modgraph"
)

// loader finds the modules of a version. WebAssembly modules are more than text: what stands for one finds the compiled
// module in its import.meta.
type loader struct {
	*modgraph.Graph
	imported engine.Value // the prelude's function that makes a WebAssembly.Module
}

var (
	_ engine.Attacher = loader{}
	_ userwasm.Owner  = (*guest)(nil)
)

// Attach is engine.Attacher's.
func (l loader) Attach(in *engine.Instance, name string, meta engine.Value) error {
	if l.Wasm(name) == nil {
		return nil
	}
	n, err := userwasm.Import(in, name)
	if err != nil {
		return modgraph.ErrSyntax.Newf(opLoad, "module %q cannot be compiled as WebAssembly: %s", name, userwasm.Reason(err))
	}
	v, err := in.Call(l.imported, engine.Undefined, engine.Int(n))
	if err != nil {
		return err
	}
	if !in.SetProp(meta, modgraph.MetaModule, v) {
		return fault.New(fault.Internal, opLoad, "the module cannot be handed over")
	}
	return nil
}

// Library is userwasm.Owner's.
func (g *guest) Library() *userwasm.Library { return g.version.library }

// Binary is userwasm.Owner's.
func (g *guest) Binary(path string) []byte {
	if g.version.maps.graph == nil {
		return nil
	}
	return g.version.maps.graph.Wasm(path)
}
