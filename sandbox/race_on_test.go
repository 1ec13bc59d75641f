//go:build race

package sandbox

// scale stretches bounds on elapsed time: the race detector slows the host, and other tests share the machine.
const scale = 20
