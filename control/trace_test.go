package control

import (
	"context"
	"net/http/httptest"
	"testing"

	"edged/internal/trace"
	"edged/internal/trace/tracetest"
)

// A request that one voter hands on stays in its trace: the leader's span is below the forward's, whatever traceparent its client has sent.
func TestForwardsStayInTheirTrace(t *testing.T) {
	r := tracetest.Start(t, false)
	tracers := map[string]*trace.Tracer{}
	for _, name := range []string{"n-1", "n-2"} { // with a ratio of 0: they record what a member that asks them does
		tracer, err := trace.New(trace.Options{Endpoint: r.URL + "/v1/traces", Instance: name})
		if err != nil {
			t.Fatal(err)
		}
		tracers[name] = tracer
	}
	f := startFleet(t, 2, func(name string, o *Options) { o.Tracer = tracers[name] })
	leader := f.leader()
	asked := f.others(leader)[0]
	recording, err := trace.New(trace.Options{Endpoint: r.URL + "/v1/traces", Ratio: 1})
	if err != nil {
		t.Fatal(err)
	}
	req := httptest.NewRequest("GET", root+"/resources", nil)
	req.Header.Set("Authorization", "Bearer "+f.token)
	req.Header.Set("traceparent", "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-00")
	rec := httptest.NewRecorder()
	recording.Handler(false, asked.c.Handler()).ServeHTTP(rec, req)
	if rec.Code != 200 {
		t.Fatalf("%d %s", rec.Code, rec.Body)
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	for _, tracer := range []*trace.Tracer{recording, tracers["n-1"], tracers["n-2"]} {
		_ = tracer.Run(ctx) // the flush; it returns nil
	}
	spans := r.Spans()
	if got := tracetest.Tree(spans); got != "GET\n  control.forward\n    GET\n" {
		t.Fatalf("the tree is\n%s", got)
	}
	for _, s := range spans {
		if s.TraceID != spans[0].TraceID || s.TraceID == "0af7651916cd43dd8448eb211c80319c" {
			t.Errorf("%+v is not of the trace", s)
		}
		if s.Name == "control.forward" && s.Attributes["edged.member"] != leader.name {
			t.Errorf("the forward is %+v", s)
		}
	}
}
