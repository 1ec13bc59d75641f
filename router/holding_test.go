package router

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"edged/sandbox/event"
)

// checkInflight compares the gauge as it is shown.
func checkInflight(t *testing.T, reg prometheus.Gatherer, n int) {
	t.Helper()
	const name = "edged_router_invocations_inflight"
	want := fmt.Sprintf("# HELP %s Invocations at work, streaming included.\n# TYPE %s gauge\n%s %d\n", name, name, name, n)
	if err := testutil.GatherAndCompare(reg, strings.NewReader(want), name); err != nil {
		t.Error(err)
	}
}

// What Holding and the gauge say of a request: at work, answered, over; and of the next on its connection.
func TestHolding(t *testing.T) {
	reg := prometheus.NewRegistry()
	s, goOn := newSource(), make(chan struct{})
	f := start(t, Options{Metrics: NewMetrics(reg)}, serving(func(_ context.Context, req *event.Request, res *event.Response) error {
		<-goOn
		if strings.HasSuffix(string(req.URL), "/stream") {
			res.Status, res.Stream, res.Length = 200, s, -1
			return nil
		}
		return answer(res, 200, "hello")
	}))
	check := func(when string, working, streaming int) {
		t.Helper()
		until(t, when, func() bool {
			h := f.Holding(time.Now(), 1)
			return h.Working == working && h.Streaming == streaming && len(h.Oldest) == working && f.gate.busy.Load() == int64(working)
		})
		checkInflight(t, reg, working)
	}
	c := f.dial(t)
	c.send("GET /stream HTTP/1.1\r\nHost: a.test\r\n\r\n")
	check("the worker is at work", 1, 0)
	goOn <- struct{}{}
	res := c.head("GET")
	check("the response has begun", 1, 1)
	close(s.pieces)
	if err := res.Body.Close(); err != nil {
		t.Error(err)
	}
	check("it is over", 0, 0)
	for _, body := range []string{"\r\n", "Content-Length: 2\r\n\r\nhi"} {
		c.send("POST / HTTP/1.1\r\nHost: a.test\r\n" + body)
		check("the next request is at work", 1, 0)
		goOn <- struct{}{}
		c.response("POST")
		check("it is over", 0, 0)
	}
}
