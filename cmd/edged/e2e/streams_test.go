package e2e

import (
	"bufio"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// peerWorker is what a caller reaches through its service binding; outside does the same.
const peerWorker = `
const encode = (s) => new TextEncoder().encode(s);
const sleep = (ms) => new Promise((resolve) => setTimeout(resolve, ms));
export default { async fetch(request, env, ctx) {
	switch (new URL(request.url).pathname) {
	case '/echo': return new Response(request.body.pipeThrough(new TransformStream()));
	case '/cut': { let n = 0; return new Response(new ReadableStream({ pull(c) { if (n++ > 0) throw new Error('x'); c.enqueue(encode('hello')); } })); }
	case '/cookies': return new Response('c', { headers: [['set-cookie', 'a=1'], ['set-cookie', 'b=2']] });
	case '/204': return new Response(null, { status: 204, headers: { 'x-a': 'b' } });
	case '/304': return new Response(null, { status: 304, headers: { 'x-a': 'b' } });
	case '/flow': return new Response(new ReadableStream({ async pull(c) { await sleep(20); c.enqueue(encode('.')); }, cancel() { console.log('peer stream cancelled'); } }));
	case '/hang': await new Promise((r) => request.signal.addEventListener('abort', r)); console.log('peer signal aborted'); break;
	case '/task': ctx.waitUntil(sleep(1500).then(() => console.log('peer task done'))); return new Response('accepted');
	}
	return new Response('hello', { headers: { 'x-a': 'b' } });
} }`

// forwarder passes a request on, through its binding or to the outside.
const forwarder = `export default { async fetch(request, env) {
	const url = new URL(request.url), [, way, ...path] = url.pathname.split('/');
	const to = new Request((way === 's' ? 'http://peer' : env.OUTSIDE) + '/' + path.join('/'), request);
	return way === 's' ? env.PEER.fetch(to) : fetch(to);
} }`

// outside is a server that workers reach with fetch.
type outside struct {
	*httptest.Server
	gone    chan string  // paths of requests whose client left
	flooded atomic.Int64 // bytes of /flood
}

func startOutside(t *testing.T) *outside {
	o := &outside{gone: make(chan string, 10)}
	o.Server = httptest.NewServer(o)
	t.Cleanup(o.Close)
	return o
}

func (o *outside) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("X-A", "b")
	flush := func() { _ = http.NewResponseController(w).Flush() }
	switch r.URL.Path {
	case "/echo":
		_ = http.NewResponseController(w).EnableFullDuplex()
		flush()
		for b := make([]byte, 1000); ; {
			n, err := r.Body.Read(b)
			w.Write(b[:n])
			flush()
			if err != nil {
				return
			}
		}
	case "/cut":
		io.WriteString(w, "hello")
		flush()
		panic(http.ErrAbortHandler)
	case "/cookies":
		w.Header().Add("Set-Cookie", "a=1")
		w.Header().Add("Set-Cookie", "b=2")
		io.WriteString(w, "c")
	case "/204":
		w.WriteHeader(204)
	case "/304":
		w.WriteHeader(304)
	case "/flow", "/hang":
		if r.URL.Path == "/flow" {
			io.WriteString(w, ".")
			flush()
		}
		<-r.Context().Done()
		o.gone <- r.URL.Path
	case "/flood":
		for b := make([]byte, 64<<10); ; {
			n, err := w.Write(b)
			o.flooded.Add(int64(n))
			if err != nil {
				o.gone <- r.URL.Path
				return
			}
		}
	default:
		io.WriteString(w, "hello")
	}
}

// startForwarder runs a node with a worker that forwards to a peer and to the outside, under /s and /f.
func startForwarder(t *testing.T) (*node, *outside, string) {
	o := startOutside(t)
	at, err := url.Parse(o.URL)
	if err != nil {
		t.Fatal(err)
	}
	rules := write(t, map[string]string{"egress": "allow 127.0.0.1 " + at.Port() + "\ndefault none\n"})
	n := start(t, t.TempDir(), "--egress", filepath.Join(rules, "egress"))
	peer := n.served("peer", peerWorker, object{"handlers": []string{"fetch"}})
	worker := n.served("forwarder", forwarder, object{"handlers": []string{"fetch"}, "vars": object{"OUTSIDE": o.URL}, "serviceBindings": []bound{{"PEER", ref{peer}}}})
	return n, o, strings.TrimPrefix(n.address("forwarder", worker), "http://")
}

// module-worker §3.1, service-binding §3: through a service call and through a fetch, over real sockets, both bodies stream
// before their ends are known, a failed body is a cut one, responses without a body have none, repeated headers stay apart.
func TestForwardedStreams(t *testing.T) {
	n, _, host := startForwarder(t)
	for _, way := range []string{"s", "f"} {
		t.Run(way, func(t *testing.T) {
			c := n.dial()
			fmt.Fprintf(c, "POST /%s/echo HTTP/1.1\r\nHost: %s\r\nTransfer-Encoding: chunked\r\n\r\n", way, host)
			in := bufio.NewReader(c)
			res, err := http.ReadResponse(in, nil)
			if err != nil || res.StatusCode != 200 || res.ContentLength != -1 {
				t.Fatalf("before a byte of the body: %v %v", res, err)
			}
			buf := make([]byte, 3)
			for _, piece := range []string{"one", "two", "six"} {
				fmt.Fprintf(c, "3\r\n%s\r\n", piece)
				if _, err := io.ReadFull(res.Body, buf); err != nil || string(buf) != piece {
					t.Fatalf("got %q, %v; want %q before the next piece exists", buf, err, piece)
				}
			}
			io.WriteString(c, "0\r\n\r\n")
			if rest, err := io.ReadAll(res.Body); err != nil || len(rest) != 0 {
				t.Errorf("the end: %q, %v", rest, err)
			}
			a, err := n.ask(n.client(n.info.HTTP, nil), "GET", "http://"+host+"/"+way+"/cut", nil)
			if a.status != 200 || a.body != "hello" || err == nil {
				t.Errorf("cut: %d %q, %v; want a head, a piece and an error", a.status, a.body, err)
			}
			for _, x := range []struct {
				method, path string
				status       int
			}{{"GET", "/204", 204}, {"GET", "/304", 304}, {"HEAD", "/x", 200}} {
				a, err := n.ask(n.client(n.info.HTTP, nil), x.method, "http://"+host+"/"+way+x.path, nil)
				if err != nil || a.status != x.status || a.body != "" || a.header.Get("X-A") != "b" {
					t.Errorf("%s %s: %+v, %v", x.method, x.path, a, err)
				}
			}
			if got := n.get("http://" + host + "/" + way + "/cookies").header["Set-Cookie"]; len(got) != 2 {
				t.Errorf("cookies: %q", got)
			}
		})
	}
}

// module-worker §3.1, §3.4: a client that leaves aborts the signal and cancels the stream of whoever the request was
// forwarded to, within a second; a callee's waitUntil task outlives its response and the SIGTERM.
func TestClientsLeaveForwardedRequests(t *testing.T) {
	n, o, host := startForwarder(t)
	var left []time.Time
	for _, path := range []string{"/s/hang", "/s/flow", "/f/hang", "/f/flow"} {
		c := n.dial()
		fmt.Fprintf(c, "GET %s HTTP/1.1\r\nHost: %s\r\n\r\n", path, host)
		if strings.HasSuffix(path, "flow") {
			if _, err := io.ReadFull(c, make([]byte, 20)); err != nil {
				t.Fatal(err)
			}
		} else {
			n.until("request at work", func() bool {
				a, err := n.ask(n.client(n.info.Admin, nil), http.MethodGet, "http://admin/metrics", nil)
				return err == nil && strings.Contains(a.body, "\nedged_router_invocations_inflight 1\n")
			})
			<-time.After(100 * time.Millisecond) // for the second hop, of which nothing tells
		}
		left = append(left, time.Now())
		c.Close()
		if path[1] == 'f' {
			select {
			case <-o.gone:
			case <-time.After(10 * time.Second):
				t.Errorf("%s: the outside was not told", path)
			}
		}
		n.until("end of the request", func() bool {
			a, err := n.ask(n.client(n.info.Admin, nil), http.MethodGet, "http://admin/metrics", nil)
			return err == nil && strings.Contains(a.body, "\nedged_router_invocations_inflight 0\n")
		})
	}
	expect(t, "task", n.get("http://"+host+"/s/task"), 200, "accepted")
	if code := n.stop(); code != 0 {
		t.Errorf("exit %d", code)
	}
	for i, line := range []string{"peer signal aborted", "peer stream cancelled"} {
		at, ok := n.said(line)
		if took := at.Sub(left[i]); !ok || took > 5*time.Second { // a second, on a machine that others share
			t.Errorf("%q: %t, after %v", line, ok, took)
		}
	}
	if _, ok := n.said("peer task done"); !ok {
		t.Error("the callee's task did not outlive its response")
	}
}

// module-worker §3.1: back-pressure reaches a peer behind two hops: what nobody reads is not produced without end.
func TestBackPressureReachesTheOutside(t *testing.T) {
	n, o, host := startForwarder(t)
	c := n.dial()
	fmt.Fprintf(c, "GET /f/flood HTTP/1.1\r\nHost: %s\r\n\r\n", host)
	if _, err := io.ReadFull(c, make([]byte, 1<<20)); err != nil {
		t.Fatal(err)
	}
	last, same := int64(-1), 0
	n.until("rest", func() bool {
		if now := o.flooded.Load(); now == last {
			same++
		} else {
			last, same = now, 0
		}
		return same > 30
	})
	if last > 64<<20 {
		t.Errorf("%d bytes were produced for a client that reads none", last)
	}
	c.Close()
	select {
	case <-o.gone:
	case <-time.After(20 * time.Second):
		t.Error("the outside goes on for nobody")
	}
}
