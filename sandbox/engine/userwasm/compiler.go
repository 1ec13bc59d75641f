package userwasm

import "runtime"

// Compiler bounds how many modules are compiled at once. Safe for concurrent use.
type Compiler struct{ slots chan struct{} }

// NewCompiler returns a Compiler for this machine: half of its processors may compile.
func NewCompiler() *Compiler {
	return &Compiler{slots: make(chan struct{}, max(1, runtime.GOMAXPROCS(0)/2))}
}
