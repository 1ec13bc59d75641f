package router

import (
	"context"
	"fmt"
	"net/netip"
	"strings"
	"testing"
	"time"

	"edged/router/table"
	"edged/sandbox/event"
)

// costly answers and says what that has cost.
func costly(_ context.Context, req *event.Request, res *event.Response) error {
	if r := res.Receipt; r != nil {
		*r = event.Receipt{Origin: event.Warm, Wall: 3 * time.Millisecond, CPU: 2 * time.Millisecond, Queue: 1500 * time.Nanosecond, Memory: 4096, BodyOut: 5,
			Subrequests: 2, Left: event.Headroom{CPU: time.Second, Wall: 2 * time.Second, Memory: 1 << 20, Subrequests: 8}, Final: true,
			Waits: append(r.Waits[:0], event.Wait{Name: "CACHE", Calls: 2, Time: time.Millisecond}, event.Wait{Name: `A"B`, Calls: 1})}
	}
	if strings.HasSuffix(string(req.URL), "/cpu") {
		return event.ErrCPU
	}
	res.Origin = event.Warm
	return answer(res, 200, "hello")
}

func (f *front) ask(t *testing.T, path, fields string) (code int, explain, receipt string) {
	t.Helper()
	c := f.dial(t)
	c.send("GET " + path + " HTTP/1.1\r\nHost: A.test:80\r\n" + fields + "\r\n")
	res, _ := c.response("GET")
	return res.StatusCode, res.Header.Get("Edged-Explain"), res.Header.Get("Edged-Receipt")
}

// Trusted peers that ask for it get the explanation with any response, and the receipt with that of a worker's code, failed ones too. Nobody else gets either, and no worker sees the asking.
func TestReceiptAndExplanation(t *testing.T) {
	v := serving(func(ctx context.Context, req *event.Request, res *event.Response) error {
		if len(field(req.Header, "edged-explain")) > 0 {
			return answer(res, 400, "the worker sees the asking")
		}
		return costly(ctx, req, res)
	})
	v.Assets = table.Assets{"logo.svg": {MediaType: "image/svg+xml", Open: nil}}
	const receipt = `sandbox=warm, admission-us=0, queue-us=1, wall-us=3000, cpu-us=2000, memory=4096, in=0, out=5, subrequests=2, ` +
		`waits=("CACHE";calls=2;us=1000 "A\"B";calls=1;us=0), left-cpu-us=1000000, left-wall-us=2000000, left-memory=1048576, left-subrequests=8, final`
	f := start(t, Options{Rule: func(host, _ string) Rule { return Rule{"endpoint", "r-" + host, 3} }}, v)
	if code, explain, got := f.ask(t, "/", ""); code != 200 || explain+got != "" {
		t.Errorf("not asked: %d, %q, %q", code, explain, got)
	}
	code, explain, got := f.ask(t, "/?x", "Edged-Explain: 1\r\n")
	if code != 200 || got != receipt {
		t.Errorf("%d, receipt %s", code, got)
	}
	for _, want := range []string{`host="a.test", rule=endpoint, resource="r-a.test", worker="w1", generation=3`, `chosen=weight, draw=`, `from=0, to=10000, version="v1"`,
		`answer=code, sandbox=warm`, `admission=admitted`} {
		if !strings.Contains(explain, want) {
			t.Errorf("no %s in %s", want, explain)
		}
	}
	if code, explain, got := f.ask(t, "/cpu", "edged-EXPLAIN:\r\n"); code != 500 || !strings.Contains(explain, "answer=hosted") || got != receipt {
		t.Errorf("%d, %s, %s", code, explain, got)
	}
	c := f.dial(t)
	c.send("GET / HTTP/1.1\r\nHost: b.test\r\nEdged-Explain: 1\r\n\r\nGARBAGE\r\n\r\n")
	if res, _ := c.response("GET"); res.Header.Get("Edged-Explain") != `host="b.test", answer=hosted` {
		t.Errorf("an unknown host: %s", res.Header.Get("Edged-Explain"))
	}
	if res, _ := c.response("GET"); res.StatusCode != 400 || res.Header.Get("Edged-Explain") != "" {
		t.Errorf("a head that was not understood: %d %s", res.StatusCode, res.Header.Get("Edged-Explain"))
	}
	f = start(t, Options{Diagnostics: []netip.Prefix{}}, v)
	if code, explain, got := f.ask(t, "/", "Edged-Explain: 1\r\n"); code != 200 || explain+got != "" {
		t.Errorf("a stranger got %d %q %q", code, explain, got)
	}
}

// Explain says the same without a request: per version, what answers.
func TestExplain(t *testing.T) {
	asset := &table.Asset{MediaType: "text/plain", Size: 1}
	site := &table.Version{UID: "site", Assets: table.Assets{"index.html": asset}, SPA: true}
	first := &table.Version{UID: "first", HasFetch: true, RunWorkerFirst: true, Handler: handlerFunc(hello), Assets: table.Assets{"a/b": asset}}
	broken := &table.Version{UID: "broken", HasFetch: true}
	r, err := New(Options{MaxInflight: 1, MaxQueue: 1, Rule: func(_, deployment string) Rule { return Rule{Generation: uint64(7 * len(deployment))} }})
	if err != nil {
		t.Fatal(err)
	}
	tab, err := table.Build(map[string]*table.Worker{
		"a.test": {UID: "w", Deployment: "d", Versions: []table.Weighted{{Version: site, Weight: 500}, {Version: first, Weight: 1500}, {Version: broken, Weight: 8000}}},
		"b.test": {UID: "x"}})
	if err != nil {
		t.Fatal(err)
	}
	r.Publish(tab)
	for _, c := range []struct{ method, host, path, want string }{
		{"GET", "A.test.:8080", "/a/b", "a.test true w d 7 at_once [{site 0 500 asset  index.html 0 0} {first 500 2000 code  a/b 0 0} {broken 2000 10000 hosted not_serving  0 0}]"},
		{"POST", "a.test", "/a/b", "a.test true w d 7 at_once [{site 0 500 hosted not_found  0 0} {first 500 2000 code   0 0} {broken 2000 10000 hosted not_serving  0 0}]"},
		{"GET", "b.test", "/", "b.test true x  0 at_once []"},
		{"GET", "c.test", "/", "c.test false   0 at_once []"},
		{"GET", strings.Repeat("x", 300), "/", " false   0 at_once []"},
	} {
		e := r.Explain([]byte(c.method), []byte(c.host), []byte(c.path))
		if got := fmt.Sprint(e.Host, " ", e.Known, " ", e.Worker, " ", e.Deployment, " ", e.Rule.Generation, " ", e.Admission.Verdict, " ", e.Choices); got != c.want {
			t.Errorf("%s %s%s\n%s, want\n%s", c.method, c.host, c.path, got, c.want)
		}
	}
	if !r.gate.take() {
		t.Fatal("the gate is empty")
	}
	if a := r.gate.state(); a != (Admission{"waits", 1, 1, 0, 1}) {
		t.Errorf("%+v", a)
	}
}

// Every exchange is told to the access log once it is over: what answered it, what went in and out, and what it cost.
func TestAccess(t *testing.T) {
	told := make(chan string, 16)
	v := serving(costly)
	opt := Options{Diagnostics: []netip.Prefix{}, Access: func(a *Access) {
		cost := ""
		if a.Receipt != nil {
			cost = a.Receipt.CPU.String()
		}
		told <- fmt.Sprintf("%s %s %s %d %s %s in %d out %v %s %s cost %s", a.Method, a.Host, a.Path, a.Status, a.Error, a.Answer, a.In, a.Out > 0, a.Worker, a.Version, cost)
	}}
	f := start(t, opt, v)
	for _, c := range []struct{ send, want string }{
		{"POST /p?q=secret HTTP/1.1\r\nHost: a.test\r\nContent-Length: 3\r\n\r\nabc", "POST a.test /p 200  code in 3 out true w1 v1 cost 2ms"},
		{"GET /cpu HTTP/1.1\r\nHost: a.test\r\n\r\n", "GET a.test /cpu 500 cpu_exceeded hosted in 0 out true w1 v1 cost 2ms"},
		{"GET / HTTP/1.1\r\nHost: b.test\r\n\r\n", "GET b.test / 404 unknown_host hosted in 0 out true   cost "},
		{"GET\r\n\r\n", "   400 bad_request hosted in 0 out true   cost "},
	} {
		d := f.dial(t)
		d.send(c.send)
		d.response("GET")
		if got := wait(t, "the access log", told); got != c.want {
			t.Errorf("told\n%s, want\n%s", got, c.want)
		}
	}
}

// Who watches a worker is told of the requests that its code is not called for: files and refusals.
func TestRefusalsAreTold(t *testing.T) {
	told := make(chan event.Invocation, 16)
	opt := Options{MaxInflight: 1, MaxQueue: 1, QueueTimeout: time.Millisecond, Watch: func(worker string) func(*event.Invocation) {
		if worker != "w1" {
			return nil
		}
		return func(i *event.Invocation) { told <- *i }
	}}
	v := serving(hello)
	v.Assets = table.Assets{"logo.svg": {MediaType: "image/svg+xml"}}
	f := start(t, opt, v)
	check := func(want string) {
		t.Helper()
		i := wait(t, "a watcher", told)
		if got := fmt.Sprintf("%s %s %s %d %s %s", i.Kind, i.Method, i.URL, i.Status, i.Outcome, i.Version); got != want {
			t.Errorf("told %s, want %s", got, want)
		}
	}
	c := f.dial(t)
	c.send("HEAD /logo.svg?secret HTTP/1.1\r\nHost: a.test\r\n\r\n")
	c.response("HEAD")
	check("asset HEAD http://a.test/logo.svg 200 ok v1")
	if !f.gate.take() {
		t.Fatal("the gate is empty")
	}
	f.get(t, "/x")
	check("fetch GET http://a.test/x 503 overloaded v1")
	f.gate.leave(new(table.Party))
	f.get(t, "/x") // the sandbox room tells of it
	if len(told) > 0 {
		t.Errorf("told of an invocation: %+v", <-told)
	}
}

// A receipt in a header or a log costs the request no allocation.
func TestReceiptDoesNotAllocate(t *testing.T) {
	c := &conn{r: &Router{}, diagnosed: true, version: &table.Version{UID: "v1"}}
	var res event.Response
	res.Receipt = &c.receipt
	if err := costly(t.Context(), &event.Request{}, &res); err != nil {
		t.Fatal(err)
	}
	c.why.reached = true
	dst := make([]byte, 0, 4096)
	if n := testing.AllocsPerRun(100, func() { dst = c.appendReceipt(dst[:0]) }); n > 0 {
		t.Errorf("%v allocations", n)
	}
}

// BenchmarkReceipt is what the fields for trusted peers cost one response.
func BenchmarkReceipt(b *testing.B) {
	c := &conn{r: &Router{}, diagnosed: true, version: &table.Version{UID: "0198c0de-0000-7000-8000-000000000000"}}
	c.receipt = event.Receipt{Origin: event.Hot, Wall: 52 * time.Microsecond, CPU: 48 * time.Microsecond, Memory: 86016, BodyOut: 11, Final: true,
		Left: event.Headroom{CPU: 9_999_952 * time.Microsecond, Wall: 29_999_948 * time.Microsecond, Memory: 120 << 20, Subrequests: 1000}}
	c.why.reached = true
	dst := make([]byte, 0, 4096)
	b.ReportAllocs()
	for b.Loop() {
		dst = c.appendReceipt(dst[:0])
	}
}
