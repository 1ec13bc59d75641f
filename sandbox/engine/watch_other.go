//go:build !(linux && (amd64 || arm64))

package engine

// watching is nothing here.
type watching struct{ on bool }

// Watch does nothing on this system: Reset copies everything.
func (in *Instance) Watch() {}

// Unwatch does nothing on this system.
func (in *Instance) Unwatch() {}

func (in *Instance) endWatch() {}

func (in *Instance) unseen() {}

func (in *Instance) private(e *Engine) ([]span, error) { return in.mem.written(&e.table, e.reset) }
