//go:build !race

package sandbox

import (
	"context"
	"testing"

	"edged/sandbox/event"
)

// The way of a small request allocates nothing.
func TestServeDoesNotAllocate(t *testing.T) {
	s := newBox(t, Options{})
	v := openWorker(t, s, fetcher(`return new Response('Hello', {headers: {a: '1', b: '2', c: '3'}})`))
	var res event.Response
	req := request()
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	if n := testing.AllocsPerRun(200, func() {
		res.Reset()
		if err := v.Serve(ctx, req, &res); err != nil {
			t.Fatal(err)
		}
	}); n > 0 {
		t.Errorf("%v allocations per request", n)
	}
}
