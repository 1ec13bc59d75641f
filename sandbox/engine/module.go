package engine

import (
	"bytes"
	"errors"
	"net/url"

	"edged/internal/fault"
	"edged/sandbox/engine/abi"
)

// Loader finds the modules of one graph. It is called on the instance's goroutine and must not call into it.
type Loader interface {
	// Resolve turns a specifier, written in the module called base, into the canonical name of a module.
	Resolve(base, specifier string) (name string, err error)
	// Load returns the source of a module as JavaScript text; it is not kept.
	Load(name string) (src []byte, err error)
}

// Attacher is a Loader that adds to what import.meta of a module has, before the module is evaluated. It may call into the
// instance; an error refuses the module.
type Attacher interface {
	Attach(in *Instance, name string, meta Value) error
}

// maxModuleName bounds what the guest may ask a Loader for.
const maxModuleName = 64 << 10

// ErrSyntax marks a module or script that is no JavaScript, or whose imports name an export that does not exist.
var ErrSyntax = errors.New("the module is not valid JavaScript")

// Module is a module whose evaluation has begun.
type Module struct {
	// Namespace holds its exports; Promise is settled when the evaluation, with all its top-level awaits, is. Both are
	// the caller's.
	Namespace, Promise Value
}

// EvalModule compiles a module and all it imports, then begins to evaluate it; jobs are not run. name is its canonical
// name, src its text. The error wraps what the Loader returned if that is why; it is ErrSyntax, around a *ScriptError,
// if it or a module it imports cannot be compiled or linked; else as of Call. What evaluation throws arrives in the
// promise.
func (in *Instance) EvalModule(name string, src []byte) (Module, error) {
	in.modErr = nil
	in.loaded[name] = 0
	m := in.compileModule(name, src)
	if m.IsException() || in.failure != nil {
		return Module{}, in.moduleError()
	}
	ptr := uint64(m.pointer())
	promise := in.opVal(abi.EvalFunction, in.cx(), uint64(m))
	if promise.IsException() || in.failure != nil {
		return Module{}, in.moduleError()
	}
	ns := in.opVal(abi.GetModuleNamespace, in.cx(), ptr)
	if ns.IsException() || in.failure != nil {
		return Module{}, in.thrown()
	}
	return Module{Namespace: ns, Promise: promise}, nil
}

// moduleError tells apart who is to blame: the loader, the text, or a limit.
func (in *Instance) moduleError() error {
	err := in.thrown()
	if in.failure != nil {
		return in.failure
	}
	if in.modErr != nil {
		return in.modErr
	}
	var script *ScriptError
	if errors.As(err, &script) && script.Name == "SyntaxError" {
		return errors.Join(ErrSyntax, err)
	}
	return err
}

// compileModule registers the module under its name and compiles what it imports, deeper and deeper, through
// guestNormalize.
func (in *Instance) compileModule(name string, src []byte) Value {
	m := in.eval(src, name, evalModule|evalCompiled)
	if m.tag() != tagModule {
		return Exception
	}
	meta := in.opVal(abi.GetImportMeta, in.cx(), uint64(m.pointer()))
	if meta.IsException() {
		return Exception
	}
	ok := in.SetProp(meta, "url", in.NewString([]byte(ModuleURL(name))))
	if a, more := in.Loader.(Attacher); more && ok {
		if err := a.Attach(in, name, meta); err != nil {
			in.Free(meta)
			in.moduleFailed(err)
			return Exception
		}
	}
	in.Free(meta)
	if !ok {
		return Exception
	}
	return m
}

// ModuleURL is what import.meta.url says in the module of a name: a file URL, so that it can be the base of others.
func ModuleURL(name string) string {
	return (&url.URL{Scheme: "file", Path: "/" + name}).String()
}

// guestNormalize is asked for each import. It does more than to name the module: it compiles it here, because only
// who compiles a module holds it and can fill import.meta. The engine then finds it loaded and never asks for its text.
func guestNormalize(in *Instance, s []uint64) {
	base, ok1 := in.cString(uint32(s[0]))
	spec, ok2 := in.cString(uint32(s[1]))
	if !ok1 || !ok2 || in.Loader == nil {
		s[0] = in.refuseModule("cannot import " + spec)
		return
	}
	if in.depth == 1 { // not from inside of compileModule
		in.finishModules()
	}
	name, err := in.Loader.Resolve(base, spec)
	if err != nil {
		s[0] = in.moduleFailed(err)
		return
	}
	if !in.isLoaded(name) {
		src, err := in.Loader.Load(name)
		if err != nil {
			s[0] = in.moduleFailed(err)
			return
		}
		in.loaded[name] = 0
		if in.compileModule(name, src).IsException() {
			delete(in.loaded, name)
			s[0] = 0 // the exception is pending
			return
		}
	}
	s[0] = uint64(in.put([]byte(name)))
}

// finishModules makes up for a fault of the engine: a module that has no top-level await, and waited for one of a module
// below it, counts as waiting when it has run, so that a later import() of it, or of what imports it, would wait for ever.
func (in *Instance) finishModules() {
	const most = 4096 // modules; a bundle has 512 files
	head := in.known.context + abi.ModuleList
	link := head
	for range most {
		var ok bool
		if link, ok = in.u32At(link); !ok || link == head {
			return
		}
		m, ok := in.bytesAt(link-abi.ModuleLink, abi.ModuleBytes)
		if !ok {
			return
		}
		if m[abi.ModuleStatus] == abi.ModuleEvaluated {
			m[abi.ModuleWaits] = 0
		}
	}
}

func (in *Instance) isLoaded(name string) bool {
	if _, ok := in.loaded[name]; ok {
		return true
	}
	return in.image != nil && in.image.hasModule(name)
}

// guestLoad is reached only if a module that was compiled is gone from the engine's list.
func guestLoad(in *Instance, s []uint64) {
	s[0] = in.refuseModule("the module failed before")
}

func (in *Instance) moduleFailed(err error) uint64 {
	if in.modErr == nil {
		in.modErr = err
	}
	msg := fault.Detail(err)
	if msg == "" {
		msg = fault.NameOf(err)
	}
	if named := fault.NamedOf(err); named != nil { // import() rejects with the contract's word
		in.ThrowError(named.Error(), msg)
		return 0
	}
	return in.refuseModule(msg)
}

func (in *Instance) refuseModule(msg string) uint64 {
	in.ThrowType(msg)
	return 0
}

// cString reads a NUL-terminated string of bounded length.
func (in *Instance) cString(p uint32) (string, bool) {
	m := in.mem.view()
	if p == 0 || uint64(p) >= uint64(len(m)) {
		return "", false
	}
	b := m[p:]
	b = b[:min(len(b), maxModuleName)]
	n := bytes.IndexByte(b, 0)
	if n < 0 {
		return "", false
	}
	return string(b[:n]), true
}
