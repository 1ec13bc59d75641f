package engine

import (
	"fmt"

	"edged/sandbox/engine/abi"
)

// runtimeLayout says which of the engine's own words are where package abi says.
type runtimeLayout struct{ jobs, heap bool }

// idle reports whether no promise job waits. known is false if only the engine can tell.
func (in *Instance) idle() (idle, known bool) {
	if !in.engine.inside.jobs || in.failure != nil {
		return false, false
	}
	head := in.known.runtime + abi.JobList
	next, ok := in.u32At(head)
	return next == head, ok
}

// learnRuntime compares what this file and HeapBytes read with what the engine itself says, while nothing waits and while something does.
func (e *Engine) learnRuntime(in *Instance) error {
	e.inside = runtimeLayout{}
	found := runtimeLayout{jobs: true, heap: true}
	compare := func() {
		e.inside.jobs = true
		idle, known := in.idle()
		e.inside.jobs = false
		found.jobs = found.jobs && known && idle != in.JobsPending()
		n, ok := in.u32At(abi.AllocatedSize)
		found.heap = found.heap && ok && int64(n) == in.HeapBytes()
	}
	for _, src := range []string{"1", "Promise.resolve(1).then(() => 1); queueMicrotask(() => 1); [new Array(1000).fill(1)]", "new Uint8Array(50000)"} {
		compare()
		v, err := in.Eval([]byte(src), "start")
		if err != nil {
			return fmt.Errorf("try out the runtime: %w", err)
		}
		compare()
		if _, err := in.RunJobs(10); err != nil {
			return fmt.Errorf("try out the runtime: %w", err)
		}
		compare()
		in.Free(v)
	}
	compare()
	e.inside = found
	return in.failure
}
