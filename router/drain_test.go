package router

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"testing"
	"time"

	"edged/sandbox/event"
)

// node-surface §2, SIGTERM: stop accepting, close idle connections, let running requests finish and close theirs.
func TestDrainLetsRunningRequestsFinish(t *testing.T) {
	entered, release := make(chan struct{}), make(chan struct{})
	f := start(t, Options{}, serving(func(_ context.Context, _ *event.Request, res *event.Response) error {
		close(entered)
		<-release
		return answer(res, 200, "finished")
	}))
	unused := f.dial(t)
	kept := f.dial(t)
	kept.send("GET / HTTP/1.1\r\nHost: nobody.test\r\n\r\n")
	kept.response("GET")
	running := f.dial(t)
	running.send("GET / HTTP/1.1\r\nHost: a.test\r\n\r\n")
	wait(t, "the handler", entered)
	f.stop()
	kept.closed()
	unused.closed()
	if nc, err := net.Dial("tcp", f.addr); err == nil {
		_ = nc.Close()
		t.Error("still accepting")
	}
	close(release)
	if res, body := running.response("GET"); body != "finished" || !res.Close {
		t.Errorf("got %q, close %t", body, res.Close)
	}
	running.closed()
	if err := <-f.done; !errors.Is(err, context.Canceled) {
		t.Error(err)
	} else {
		f.done <- err
	}
}

// A trusted proxy that keeps connections ready and has sent nothing on them does not hold up a drain.
func TestDrainClosesConnectionsOfIdleProxies(t *testing.T) {
	f := start(t, Options{TrustedProxies: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}, DrainTimeout: 2 * patience}, serving(hello))
	ready := f.dial(t)
	served := f.dial(t) // when it has its answer, the node has accepted the one before it
	served.send("GET / HTTP/1.1\r\nHost: a.test\r\n\r\n")
	served.response("GET")
	f.stop()
	ready.closed()
	f.done <- wait(t, "Run", f.done)
}

// After DrainTimeout what is left is cut: context first, so that a handler can end, then the connection.
func TestDrainEnds(t *testing.T) {
	entered, ended := make(chan struct{}), make(chan error, 1)
	f := start(t, Options{DrainTimeout: 20 * time.Millisecond}, serving(func(ctx context.Context, _ *event.Request, _ *event.Response) error {
		close(entered)
		<-ctx.Done()
		ended <- context.Cause(ctx)
		return ctx.Err()
	}))
	c := f.dial(t)
	c.send("GET / HTTP/1.1\r\nHost: a.test\r\n\r\n")
	wait(t, "the handler", entered)
	s := f.dial(t) // a client that stops in the middle of a head must not hold the drain either
	s.send("GET / HT")
	f.stop()
	if err := wait(t, "the cut", ended); !errors.Is(err, errDrainOver) {
		t.Errorf("cause %v", err)
	}
	c.closed()
	s.closed()
	f.done <- wait(t, "Run", f.done)
}
