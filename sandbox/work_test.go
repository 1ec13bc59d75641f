package sandbox

import (
	"context"
	"strings"
	"testing"
	"time"

	"edged/internal/fault"
	"edged/sandbox/event"
)

// longWork is a derivation of some 15 seconds, the longest there is.
const longWork = `const long = async () => crypto.subtle.deriveBits({ name: 'PBKDF2', hash: 'SHA-512', salt: new Uint8Array(8), iterations: 1e8 },
	await crypto.subtle.importKey('raw', new Uint8Array(8), 'PBKDF2', false, ['deriveBits']), 512);
`

const keygen = `crypto.subtle.generateKey({ name: 'RSA-PSS', modulusLength: 1024, publicExponent: new Uint8Array([1, 0, 1]), hash: 'SHA-256' }, false, ['sign', 'verify'])`

// Work beside the guest brings its result, in an invocation as in a load; a key that a module made is part of the snapshot.
func TestWorkBesideTheGuest(t *testing.T) {
	for _, isolation := range []Isolation{IsolateRequest, IsolateWorker} {
		s := newBox(t, Options{Isolation: isolation})
		v := openWorker(t, s, `const common = await `+keygen+`; const data = new Uint8Array([1]), a = { name: 'RSA-PSS', saltLength: 32 };
			const first = await crypto.subtle.sign(a, common.privateKey, data);
			`+keygen+`; // nobody waits for this one
			`+fetcher(`const own = await Promise.all([`+keygen+`, `+keygen+`]);
				const sig = await crypto.subtle.sign(a, own[0].privateKey, data);
				return new Response([await crypto.subtle.verify(a, own[0].publicKey, sig, data), await crypto.subtle.verify(a, own[1].publicKey, sig, data), await crypto.subtle.verify(a, common.publicKey, first, data)].join())`))
		for range 3 {
			if got := text(t, v); got != "true,false,true" {
				t.Errorf("%v: %q", isolation, got)
			}
		}
		idle(t, v)
	}
}

// Work counts against the CPU limit of its invocation, several pieces together, and the limit ends it.
func TestWorkHasTheCPULimit(t *testing.T) {
	s := newBox(t, Options{MaxCPU: 300 * time.Millisecond, MaxWall: time.Minute})
	for name, body := range map[string]string{
		"one":     `await long(); return new Response()`,
		"several": `await Promise.all(Array.from({ length: 20 }, long)); return new Response()`,
		"caught":  `try { await long(); } catch {} return new Response('survived')`,
		"load":    ``,
	} {
		v := openWorker(t, s, longWork+fetcher(body))
		if name == "load" {
			_, err := s.Inspect(context.Background(), graphOf(longWork+"await long(); export default { fetch() {} }"), []string{"fetch"})
			wantErr(t, err, event.ErrCPU)
			continue
		}
		wantErr(t, serveErr(v), event.ErrCPU)
		idle(t, v)
	}
}

// A guest whose work goes on holds no slot: others run meanwhile. When its client leaves the work ends.
func TestWorkHoldsNobodyUp(t *testing.T) {
	var log logs
	s := newBox(t, Options{MaxRunning: 1, MaxCPU: time.Minute, MaxWall: time.Minute, Console: log.add})
	v := openWorker(t, s, longWork+fetcher(`if (request.headers.get('x-long')) { console.log('begun'); await long(); } return new Response('hello')`))
	ctx, leave := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() {
		req := request()
		req.Header = []byte("x-long\n1\n")
		var res event.Response
		done <- v.Serve(ctx, req, &res)
	}()
	log.await(t, "begun")
	for range 50 {
		if got := text(t, v); got != "hello" {
			t.Fatal(got)
		}
	}
	leave()
	if err := <-done; fault.CodeOf(err) != fault.Canceled {
		t.Errorf("error %v", err)
	}
	s.stopAll(t, v)
}

// stopAll ends what a version has going on and fails the test if that does not happen soon.
func (s *Sandbox) stopAll(t *testing.T, v *Version) {
	t.Helper()
	v.stop()
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	if err := v.Retire(ctx); err != nil {
		t.Fatalf("the version's work does not end: %v", err)
	}
}

// Work that nobody waits for does not hold the answer up and ends with the invocation; so does work at the wall limit.
func TestWorkEndsWithItsInvocation(t *testing.T) {
	s := newBox(t, Options{MaxCPU: time.Minute, MaxWall: 2 * time.Second})
	v := openWorker(t, s, longWork+fetcher(`if (request.url.endsWith('q=1')) { long(); long(); long(); `+keygen+`; return new Response('hello') } await long()`))
	for range 3 {
		if got := text(t, v); got != "hello" {
			t.Errorf("got %q", got)
		}
	}
	req := request()
	req.URL = []byte("http://worker.test/")
	var res event.Response
	wantErr(t, v.Serve(context.Background(), req, &res), event.ErrWall)
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	if err := v.Retire(ctx); err != nil {
		t.Errorf("work outlives its invocation: %v", err)
	}
}

// waitUntil keeps work going after the response.
func TestWorkAfterTheResponse(t *testing.T) {
	var log logs
	s := newBox(t, Options{Console: log.add})
	v := openWorker(t, s, fetcher(`ctx.waitUntil(`+keygen+`.then((pair) => console.log('made', pair.privateKey.type))); return new Response('early')`))
	if got := text(t, v); got != "early" {
		t.Errorf("got %q", got)
	}
	log.await(t, "made private")
	idle(t, v)
}

// The number of operations that are open at once is bounded.
func TestWorkIsBounded(t *testing.T) {
	s := newBox(t, Options{MaxOperations: 2})
	v := openWorker(t, s, fetcher(`const all = await Promise.allSettled([`+strings.Repeat(keygen+",", 4)+`]); return new Response(all.map((r) => r.status[0] + (r.reason?.name ?? '')).join())`))
	if got := text(t, v); got != "f,f,rRangeError,rRangeError" {
		t.Errorf("got %q", got)
	}
	idle(t, v)
}
