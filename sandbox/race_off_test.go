//go:build !race

package sandbox

// scale stretches bounds on elapsed time: other tests share the machine.
const scale = 5
