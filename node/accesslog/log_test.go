package accesslog

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"

	"edged/internal/fault"
	"edged/internal/testkit"
	"edged/router"
	"edged/sandbox/event"
)

func TestMain(m *testing.M) { testkit.Main(m) }

func access(path string) *router.Access {
	return &router.Access{Start: time.UnixMilli(1767225600000), Took: 1500 * time.Microsecond, Peer: netip.MustParseAddr("192.0.2.1"), Method: []byte("GET"),
		Host: []byte("a.test"), Path: []byte(path), Minor: 1, Status: 200, Answer: "code", Out: 120, Worker: "w", Version: "v",
		Receipt: &event.Receipt{Origin: event.Hot, CPU: time.Millisecond, Final: true}}
}

// written runs a log until all that waits is written.
func written(t *testing.T, l *Log) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := l.Run(ctx); !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
}

// A line says who asked what, what answered and what it cost. What clients send cannot break a line, and is bounded.
func TestLine(t *testing.T) {
	var out bytes.Buffer
	l, err := Open(Options{Path: "-", Out: &out})
	if err != nil {
		t.Fatal(err)
	}
	l.Write(access("/x"))
	l.Write(access("/\"\\\n\xff" + strings.Repeat("y", 1<<14)))
	written(t, l)
	lines := strings.Split(strings.TrimSuffix(out.String(), "\n"), "\n")
	if len(lines) != 2 {
		t.Fatalf("%d lines", len(lines))
	}
	const want = `{"at":"2026-01-01T00:00:00.000Z","ms":1.5,"peer":"192.0.2.1","proto":"HTTP/1.1","method":"GET","host":"a.test","path":"/x","status":200,"answer":"code","inBytes":0,"outBytes":120,` +
		`"worker":"w","version":"v","receipt":{"sandbox":"hot"`
	if !strings.HasPrefix(lines[0], want) {
		t.Errorf("got\n%s, want\n%s…", lines[0], want)
	}
	var second Line
	if err := json.Unmarshal([]byte(lines[1]), &second); err != nil || !strings.HasPrefix(second.Path, "/\"\\\n?y") || len(second.Path) > event.MaxShownURL {
		t.Errorf("%v, a path of %d bytes", err, len(second.Path))
	}
}

// The file is the owner's alone, starts anew beyond its size, keeps so many of the older ones, and is made again where it was moved
// away from. No line is lost or cut.
func TestFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "access.log")
	l, err := Open(Options{Path: path, MaxBytes: 1 << 16, Keep: 2})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	size := len(appendLine(nil, access("/x")))
	for range 5 { // five files
		for range 1<<16/size + 1 {
			l.Write(access("/x"))
		}
		written(t, l)
	}
	for name, there := range map[string]bool{"": true, ".1": true, ".2": true, ".3": false} {
		b, err := os.ReadFile(path + name)
		if (err == nil) != there {
			t.Errorf("%q: %v", name, err)
		}
		if len(b) > 1<<16 || len(b)%size != 0 {
			t.Errorf("%q has %d bytes, lines of %d", name, len(b), size)
		}
	}
	info, err := os.Stat(path)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Fatal(info, err)
	}
	if err := os.Rename(path, path+".old"); err != nil {
		t.Fatal(err)
	}
	if err := l.file.look(); err != nil { // what Run does every second
		t.Fatal(err)
	}
	l.Write(access("/new"))
	written(t, l)
	if b, err := os.ReadFile(path); err != nil || !strings.Contains(string(b), `"/new"`) {
		t.Errorf("after it was moved away: %s, %v", b, err)
	}
}

// Nobody waits for a log that is not written: what is too much is dropped and counted, as is what the disk refuses.
func TestDrops(t *testing.T) {
	m := NewMetrics(nil)
	l, err := Open(Options{Path: "-", Out: refusing{}, Metrics: m})
	if err != nil {
		t.Fatal(err)
	}
	for range maxWaiting + 7 {
		l.Write(access("/x"))
	}
	if n := testutil.ToFloat64(m.dropped[dropQueue]); n != 7 {
		t.Errorf("%v lines dropped, want 7", n)
	}
	written(t, l)
	if n, ok := testutil.ToFloat64(m.dropped[dropWrite]), testutil.ToFloat64(m.lines); n != maxWaiting || ok != 0 {
		t.Errorf("%v lines refused, %v written", n, ok)
	}
}

type refusing struct{}

func (refusing) Write([]byte) (int, error) { return 0, errors.New("no space") }

func TestSampleAndFaults(t *testing.T) {
	var out bytes.Buffer
	l, err := Open(Options{Path: "-", Out: &out, Sample: 1e-300})
	if err != nil {
		t.Fatal(err)
	}
	l.Write(access("/x"))
	if written(t, l); out.Len() > 0 {
		t.Errorf("written: %s", &out)
	}
	for _, o := range []Options{{}, {Path: "x", Sample: 2}, {Path: "x", Sample: -1}, {Path: "x", MaxBytes: 1}, {Path: "x", Keep: -1}} {
		if _, err := Open(o); fault.CodeOf(err) != fault.Invalid {
			t.Errorf("%+v: %v", o, err)
		}
	}
	if _, err := Open(Options{Path: t.TempDir()}); fault.CodeOf(err) != fault.Unavailable {
		t.Errorf("a directory: %v", err)
	}
}
