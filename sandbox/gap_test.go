package sandbox

import (
	"context"
	"errors"
	"testing"
	"time"

	"edged/sandbox/event"
)

// module-worker §6: a limit holds for code that does nearly all of its work inside single instructions and host calls, which
// no loop counts. While such code cannot be stopped, the Go runtime cannot stop the world either, and every other worker
// of the node would wait with it.
func TestHeavyStepsDoNotHideFromLimits(t *testing.T) {
	const limit = 200 * time.Millisecond
	for name, loop := range map[string]string{
		"fill":   "const a = new Uint8Array(4e7); for (;;) a.fill(1)",
		"copy":   "const a = new Uint8Array(4e7); for (;;) a.copyWithin(0, 1)",
		"digest": "const a = new Uint8Array(2e7); for (;;) crypto.subtle.digest('SHA-512', a)",
		"decode": "const a = new Uint8Array(1e7), d = new TextDecoder(); for (;;) d.decode(a)",
	} {
		t.Run(name, func(t *testing.T) {
			s := newBox(t, Options{MaxCPU: limit, MaxMemoryBytes: 64 << 20})
			v := openWorker(t, s, fetcher(loop))
			inTime(t, limit, func() {
				var res event.Response
				if err := v.Serve(context.Background(), request(), &res); !errors.Is(err, event.ErrCPU) {
					t.Errorf("error %v, want cpu_exceeded", err)
				}
			})
		})
	}
}
