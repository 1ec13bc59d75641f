//go:build race

package sandbox

import "time"

// slack is what an invocation may overrun its limit by.
const slack = time.Second

// scale stretches bounds on elapsed time: the race detector slows the host, and other tests share the machine.
const scale = 20
