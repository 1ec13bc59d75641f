package sandbox

import (
	"context"
	"os"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"edged/sandbox/event"
)

// An idle sandbox gives its memory back and stays ready: its next invocation begins in it, from the image (module-worker §7).
func TestIdleSandboxPagesOut(t *testing.T) {
	s := newBox(t, Options{})
	v := openWorker(t, s, `const big = new Uint8Array(4 << 20).fill(7); let n = 0;
		export default { fetch() { n++; let sum = 0; for (let i = 0; i < big.length; i += 512) { sum += big[i]; } big[5] = 1; return new Response(n + " " + sum) } }`)
	const want = "1 57344"
	if got := text(t, v); got != want {
		t.Fatalf("got %q, want %q", got, want)
	}
	s.pageOut(time.Now().Add(-time.Hour))
	if v.ready[0].out {
		t.Error("memory was taken from a sandbox that has just worked")
	}
	before := residentFilePages(t)
	s.pageOut(time.Now().Add(time.Hour))
	if !v.ready[0].out {
		t.Fatal("the idle sandbox kept its memory")
	}
	if fell := before - residentFilePages(t); runtime.GOOS == "linux" && fell < 4<<20 {
		t.Errorf("resident memory fell by %d bytes, want the 4 MiB that the worker has touched, at least", fell)
	}
	for range 3 {
		var res event.Response
		if err := v.Serve(context.Background(), request(), &res); err != nil {
			t.Fatal(err)
		}
		if got := collect(&res); got.body != want || res.Origin != event.Hot {
			t.Fatalf("got %q by a sandbox that is %v, want %q by a hot one", got.body, res.Origin, want)
		}
	}
}

// What a sandbox of isolation worker has learned is not in its image: it keeps its memory.
func TestWorkerIsolationKeepsItsMemory(t *testing.T) {
	s := newBox(t, Options{Isolation: IsolateWorker})
	v := openWorker(t, s, `let n = 0; export default { fetch() { return new Response(String(++n)) } }`)
	for i := range 3 {
		if got, want := text(t, v), strconv.Itoa(i+1); got != want {
			t.Fatalf("got %q, want %q", got, want)
		}
		s.pageOut(time.Now().Add(time.Hour))
	}
}

// residentFilePages is the process's resident memory behind which there are files, in bytes.
func residentFilePages(t *testing.T) int {
	t.Helper()
	b, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return 0
	}
	sum := 0
	for line := range strings.Lines(string(b)) {
		f := strings.Fields(line)
		if len(f) > 1 && (f[0] == "RssFile:" || f[0] == "RssShmem:") {
			n, _ := strconv.Atoi(f[1])
			sum += n << 10
		}
	}
	return sum
}
