//go:build !race

package sandbox

import "time"

// slack is what an invocation may overrun its limit by.
const slack = 100 * time.Millisecond

// scale stretches bounds on elapsed time: other tests share the machine.
const scale = 5
