package e2e

import (
	"encoding/json"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
)

// publicWorker does to its answer what the request's path and query say.
const publicWorker = `
const encode = (s) => new TextEncoder().encode(s);
const sleep = (ms) => new Promise((resolve) => setTimeout(resolve, ms));
export default { async fetch(request, env, ctx) {
	const url = new URL(request.url);
	const headers = new Headers();
	for (const [name, value] of url.searchParams) headers.append(name, value);
	switch (url.pathname) {
	case '/headers': return Response.json([...request.headers]);
	case '/url': return new Response(request.url);
	case '/set': return new Response('hello', { headers });
	case '/status': return new Response(null, { status: +url.searchParams.get('s') });
	case '/stream': return new Response(new ReadableStream({ start(c) { c.enqueue(encode('hello')); c.close(); } }), { headers });
	case '/broken': {
		let n = 0;
		return new Response(new ReadableStream({ pull(c) { if (n++ > 0) throw new Error('secret'); c.enqueue(encode('hello')); } }), { headers });
	}
	case '/text': return new Response(await request.text());
	case '/hang':
		await new Promise((resolve) => request.signal.addEventListener('abort', resolve));
		console.log('signal aborted');
		break;
	case '/flow': return new Response(new ReadableStream({
		async pull(c) { await sleep(20); c.enqueue(encode('.')); },
		cancel() { console.log('stream cancelled'); } }));
	case '/task':
		ctx.waitUntil(sleep(1500).then(() => console.log('task done')));
		return new Response('accepted');
	case '/throw': throw new Error('secret');
	}
	return new Response('default');
} }`

func deployPublic(n *node) {
	n.deploy(write(n.t, map[string]string{
		"worker.toml": "name = \"public\"\nmain = \"public.js\"\nhandlers = [\"fetch\"]\nendpoint = true\ndomains = [\"public.test\"]\n",
		"public.js":   publicWorker,
	}))
}

func (n *node) dial() net.Conn {
	n.t.Helper()
	c, err := net.Dial("tcp", n.info.HTTP)
	if err != nil {
		n.t.Fatal(err)
	}
	n.t.Cleanup(func() { c.Close() })
	if err := c.SetDeadline(time.Now().Add(limit)); err != nil {
		n.t.Fatal(err)
	}
	return c
}

// raw sends bytes and returns all that comes until the node closes the connection.
func (n *node) raw(send string) string {
	n.t.Helper()
	c := n.dial()
	if _, err := io.WriteString(c, send); err != nil {
		n.t.Fatal(err)
	}
	b, err := io.ReadAll(c)
	if err != nil {
		n.t.Fatalf("%q: %v after %q", send, err, b)
	}
	return string(b)
}

const lastGet = "GET /url HTTP/1.1\r\nHost: public.test\r\nConnection: close\r\n\r\n"

// node-surface §7: each malformed or ambiguous request is refused whole, and nothing behind it is taken for a request.
func TestAmbiguousRequestsAreRefused(t *testing.T) {
	t.Parallel()
	n := start(t, t.TempDir())
	deployPublic(n)
	head := "POST /text HTTP/1.1\r\nHost: public.test\r\n"
	for _, tt := range []struct{ send, want string }{
		{head + "Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", "400 bad_request"},
		{head + "Content-Length: 5\r\nContent-Length: 5\r\n\r\nhello", "400 bad_request"},
		{head + "Content-Length: +5\r\n\r\nhello", "400 bad_request"},
		{head + "Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n", "400 bad_request"},
		{head + "Transfer-Encoding : chunked\r\n\r\n0\r\n\r\n", "400 bad_request"},
		{head + "X: a\r\n folded\r\n\r\n", "400 bad_request"},
		{head + "X: a\nY: b\r\n\r\n", "400 bad_request"},
		{"GET / HTTP/1.1\r\nHost: public.test:65536\r\n\r\n", "400 bad_request"},
		{"GET / HTTP/1.1\r\nHost: a\r\nHost: public.test\r\n\r\n", "400 bad_request"},
		{"GET http://other.test/ HTTP/1.1\r\nHost: public.test\r\n\r\n", "400 bad_request"},
		{"GET / HTTP/1.1\r\nHost: public.test\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n", "501 not_implemented"},
		{"GET /" + strings.Repeat("a", 20<<10) + " HTTP/1.1\r\n", "414 url_too_long"},
		{"GET / HTTP/1.1\r\nHost: public.test\r\nX: " + strings.Repeat("a", 40<<10) + "\r\n\r\n", "431 headers_too_large"},
		{head + "Content-Length: 104857601\r\n\r\n", "413 body_too_large"},
	} {
		got := n.raw(tt.send + lastGet)
		status, code, _ := strings.Cut(tt.want, " ")
		if !strings.HasPrefix(got, "HTTP/1.1 "+status+" ") || !strings.Contains(got, "\r\nEdged-Error: "+code+"\r\n") || strings.Count(got, "HTTP/1.1") != 1 {
			t.Errorf("%.80q...\n got %q\nwant %s, once", tt.send, got, tt.want)
		}
	}
	// What a worker does not read is thrown away, never read as a request.
	smuggled := "GET /text HTTP/1.1\r\nHost: smuggled.test\r\n\r\n"
	for _, send := range []string{
		fmt.Sprintf("POST / HTTP/1.1\r\nHost: public.test\r\nContent-Length: %d\r\n\r\n%s", len(smuggled), smuggled),
		fmt.Sprintf("POST / HTTP/1.1\r\nHost: public.test\r\nTransfer-Encoding: chunked\r\n\r\n%x\r\n%s\r\n0\r\n\r\n", len(smuggled), smuggled),
		fmt.Sprintf("GET / HTTP/1.1\r\nHost: public.test\r\nContent-Length: %d\r\n\r\n%s", len(smuggled), smuggled),
	} {
		got := n.raw(send + lastGet)
		if strings.Count(got, "HTTP/1.1 200") != 2 || !strings.HasSuffix(got, "http://public.test/url") {
			t.Errorf("%.60q...\n got %q\nwant two answers, the second to the second request", send, got)
		}
	}
}

// module-worker §3.1, node-surface §7: what a worker says of its answer never breaks the framing nor passes for the node.
func TestAnswersAreFramedByTheNode(t *testing.T) {
	t.Parallel()
	n := start(t, t.TempDir())
	deployPublic(n)
	for _, tt := range []struct {
		path, want string   // the end of the answer, or "500" for worker_error
		has, lacks []string // field lines
	}{
		{"/set?content-length=5", "\r\n\r\nhello", []string{"Content-Length: 5"}, nil},
		{"/set?content-length=4", "500", nil, nil},
		{"/set?content-length=5&content-length=5", "500", nil, nil},
		{"/set?transfer-encoding=chunked&connection=close&keep-alive=1&upgrade=x&trailer=y", "\r\n\r\nhello", []string{"Content-Length: 5"},
			[]string{"ransfer-", "onnection: c", "eep-", "pgrade", "railer"}},
		{"/set?edged-error=x&Edged-Version=y&set-cookie=b&set-cookie=a", "\r\n\r\nhello", []string{"set-cookie: b\r\nset-cookie: a"}, []string{"Edged-Error", ": y"}},
		{"/set?x=%01", "500", nil, nil},
		{"/set?x=a%0d%0aInjected:1", "500", nil, []string{"Injected"}},
		{"/status?s=204", "\r\n\r\n", []string{"HTTP/1.1 204 No Content"}, []string{"ontent-", "ransfer-"}},
		{"/status?s=205", "\r\n\r\n", []string{"Content-Length: 0"}, nil},
		{"/status?s=304", "\r\n\r\n", nil, []string{"ontent-", "ransfer-"}},
		{"/status?s=101", "500", nil, nil},
		{"/status?s=199", "500", nil, nil},
		{"/status?s=600", "500", nil, nil},
		{"/throw", "500", nil, []string{"secret"}},
		{"/stream", "\r\n\r\n5\r\nhello\r\n0\r\n\r\n", []string{"Transfer-Encoding: chunked"}, []string{"ontent-Length"}},
		{"/stream?content-length=5", "\r\n\r\nhello", []string{"Content-Length: 5"}, []string{"ransfer-"}},
	} {
		got := n.raw("GET " + tt.path + " HTTP/1.1\r\nHost: public.test\r\n\r\n" + lastGet)
		at := max(0, strings.LastIndex(got, "HTTP/1.1 200 OK"))
		first, second := got[:at], got[at:]
		if tt.want == "500" {
			tt.want, tt.has = "\r\n\r\nworker_error\n", append(tt.has, "HTTP/1.1 500 ", "Edged-Error: worker_error")
		}
		if !strings.HasSuffix(first, tt.want) || !strings.HasSuffix(second, "http://public.test/url") {
			t.Errorf("%s: got %q", tt.path, got)
		}
		for _, line := range tt.has {
			if !strings.Contains(first, line) {
				t.Errorf("%s: no %q in %q", tt.path, line, first)
			}
		}
		for _, line := range tt.lacks {
			if strings.Contains(first, line) {
				t.Errorf("%s: %q in %q", tt.path, line, first)
			}
		}
	}
	// An error after the head is a visible cut: no last chunk, or fewer bytes than declared.
	for path, want := range map[string]string{"/broken": "\r\n\r\n5\r\nhello\r\n", "/broken?content-length=9": "\r\n\r\nhello"} {
		if got := n.raw("GET " + path + " HTTP/1.1\r\nHost: public.test\r\n\r\n" + lastGet); !strings.HasSuffix(got, want) {
			t.Errorf("%s: got %q, want the connection closed after %q", path, got, want)
		}
	}
	// The client's claims about itself do not reach the worker.
	a := n.do("GET", "http://public.test/headers", nil, "Edged-Error", "x", "X-Forwarded-For", "192.0.2.1", "Forwarded", "for=x", "X-Real-Ip", "192.0.2.1")
	for _, claim := range []string{"edged-", "192.0.2.1", `"forwarded"`} {
		if strings.Contains(a.body, claim) || !strings.Contains(a.body, `["x-forwarded-for","127.0.0.1"]`) {
			t.Errorf("the worker sees %s", a.body)
		}
	}
}

// said returns when the worker wrote a line, and whether it did. The node has ended.
func (n *node) said(text string) (at time.Time, ok bool) {
	for line := range strings.Lines(n.log.String()) {
		var entry struct {
			Time       time.Time
			Room, Text string
		}
		if json.Unmarshal([]byte(line), &entry) == nil && entry.Room == "console" && entry.Text == text {
			return entry.Time, true
		}
	}
	return at, false
}

// module-worker §3.1, §3.4 and node-surface §2: a client that leaves aborts request.signal and cancels the response stream
// within a second; a task given to waitUntil outlives client and SIGTERM, as long as the drain lasts.
func TestClientsLeaveAndTasksStay(t *testing.T) {
	n := start(t, t.TempDir())
	deployPublic(n)
	hang, flow, task := n.dial(), n.dial(), n.dial()
	for c, path := range map[net.Conn]string{hang: "/hang", flow: "/flow", task: "/task"} {
		if _, err := io.WriteString(c, "GET "+path+" HTTP/1.1\r\nHost: public.test\r\n\r\n"); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := io.ReadAtLeast(flow, make([]byte, 1000), 300); err != nil { // the head and some of the body
		t.Fatal(err)
	}
	if _, err := task.Read(make([]byte, 1000)); err != nil {
		t.Fatal(err)
	}
	left := time.Now()
	for _, c := range []net.Conn{hang, flow, task} {
		c.Close()
	}
	if code := n.stop(); code != 0 {
		t.Errorf("exit %d", code)
	}
	for _, text := range []string{"signal aborted", "stream cancelled"} {
		if at, ok := n.said(text); !ok || at.Sub(left) > 1500*time.Millisecond {
			t.Errorf("%q: %v, %v after the client left", text, ok, at.Sub(left))
		}
	}
	if _, ok := n.said("task done"); !ok {
		t.Error("the task was cut off by the node's stop")
	}
}

// node-surface §7: a version whose code is gone or altered on the disk answers 503 not_serving, and nothing else runs in
// its place; its neighbours serve.
func TestDamagedVersionIsNotServed(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	n := start(t, dir)
	deployPublic(n)
	address := n.deploy(hello(t, ""))
	n.stop()
	blobs, err := filepath.Glob(filepath.Join(dir, "artifacts", "blobs", "*"))
	if err != nil {
		t.Fatal(err)
	}
	var code string
	for _, name := range blobs {
		if b, err := os.ReadFile(name); err == nil && strings.Contains(string(b), "hello ") && strings.Contains(string(b), "export") {
			code = name
		}
	}
	good, err := os.ReadFile(code)
	if err != nil {
		t.Fatal(err)
	}
	altered := strings.Replace(string(good), "hello ", "HELLO ", 1)
	for _, damage := range []func() error{
		func() error { return os.WriteFile(code, []byte(altered), 0o600) },
		func() error { return os.Remove(code) },
	} {
		if err := damage(); err != nil {
			t.Fatal(err)
		}
		if err := os.RemoveAll(filepath.Join(dir, "sandbox", "images")); err != nil {
			t.Fatal(err)
		}
		n = start(t, dir)
		if a := n.get(address + "/x"); a.status != 503 || a.header.Get("Edged-Error") != "not_serving" {
			t.Errorf("got %+v, want 503 not_serving", a)
		}
		if a := n.get("http://public.test/"); a.body != "default" {
			t.Errorf("its neighbour: %+v", a)
		}
		n.stop()
	}
	if err := os.WriteFile(code, good, 0o600); err != nil {
		t.Fatal(err)
	}
	if a := start(t, dir).get(address + "/x"); a.body != "hello /x" {
		t.Errorf("after the code was restored: %+v", a)
	}
}

// module-worker §6: code that spends its time inside single engine instructions meets its limit, and does not make others
// wait: the Go runtime stops the world now and then, and a guest that cannot be stopped would stop everybody.
func TestHeavyGuestsDoNotStallOthers(t *testing.T) {
	n := start(t, t.TempDir(), "--max-cpu", "1s")
	deployPublic(n)
	n.deploy(write(t, map[string]string{
		"worker.toml": "name = \"heavy\"\nmain = \"heavy.js\"\nhandlers = [\"fetch\"]\ndomains = [\"heavy.test\"]\n",
		"heavy.js":    `export default { fetch() { const a = new Uint8Array(1e8); for (;;) a.fill(1); } }`,
	}))
	var attack sync.WaitGroup
	done := make(chan struct{})
	attack.Go(func() {
		defer close(done)
		a, err := n.ask(n.client(n.info.HTTP, nil), "GET", "http://heavy.test/", nil)
		if err != nil || a.header.Get("Edged-Error") != "cpu_exceeded" {
			t.Errorf("the heavy worker: %v %+v", err, a)
		}
	})
	defer attack.Wait()
	admin, worst := n.client(n.info.Admin, nil), time.Duration(0)
	for over := false; !over; {
		select {
		case <-done:
			over = true
		default:
		}
		began := time.Now()
		if _, err := n.ask(admin, "GET", "http://admin/debug/pprof/heap?gc=1", nil); err != nil { // stops the world
			t.Fatal(err)
		}
		if a := n.get("http://public.test/"); a.body != "default" {
			t.Fatalf("got %+v", a)
		}
		worst = max(worst, time.Since(began))
	}
	if worst > 3*time.Second { // without polls it is as long as the guest runs: tens of seconds
		t.Errorf("another worker's request took %v", worst)
	}
}
