package kv

import (
	"bytes"
	"context"
	"encoding/base64"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"edged/internal/disk"
	"edged/kv/gossip"
	"edged/kv/replica"
)

// lines keeps what a store logs.
type lines struct {
	mu sync.Mutex
	b  bytes.Buffer
}

// Write implements io.Writer.
func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

// with counts the lines at warning or above that hold all the words.
func (l *lines) with(words ...string) (n int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for line := range strings.Lines(l.b.String()) {
		all := strings.Contains(line, "level=WARN") || strings.Contains(line, "level=ERROR")
		for _, w := range words {
			all = all && strings.Contains(line, w)
		}
		if all {
			n++
		}
	}
	return n
}

func (f *fleetNode) logTo(l *lines) { f.opt.Log = slog.New(slog.NewTextHandler(l, nil)) }

func (f *fleetNode) ended(t testing.TB, reason string) float64 {
	return counterValue(t, f.Store.opt.Metrics.sessions[reason])
}

// A member whose clock is minutes ahead is not believed: the session ends with a reason, once in the log however often it is tried,
// nothing of it is applied, nothing that was acknowledged is lost anywhere, and it arrives when the clocks agree.
func TestMemberAheadOfTime(t *testing.T) {
	var ahead atomic.Int64
	clock := func(by *atomic.Int64) func() int64 {
		return func() int64 { return time.Now().UnixMilli() + by.Load() }
	}
	var log lines
	fl := newFleet(t, 2, func(i int, f *fleetNode) {
		if i == 0 {
			f.opt.clock = clock(&ahead)
		} else {
			f.opt.clock = clock(new(atomic.Int64))
			f.logTo(&log)
		}
	})
	a, b := fl.nodes[0], fl.nodes[1]
	fl.equalSoon(t)
	ahead.Store((replica.MaxSkew + time.Minute).Milliseconds())
	mustPut(t, a.kv(), "future", "v", PutOptions{})
	mustPut(t, b.kv(), "now", "v", PutOptions{})
	eventually(t, func() bool { return b.ended(t, endSkew) >= 3 })
	if n := log.with("reason=skew", "peer=nodea"); n != 1 {
		t.Errorf("%d lines of the log for %v sessions", n, b.ended(t, endSkew))
	}
	if got := show(t, b.kv(), "future"); got != "-" {
		t.Errorf("a record of the future is here: %q", got)
	}
	eventually(t, func() bool { return show(t, a.kv(), "now") == "v" })
	b.stop()
	late := new(atomic.Int64)
	late.Store(ahead.Load())
	b.opt.clock = clock(late)
	b.start(t)
	fl.introduce(t)
	fl.equalSoon(t)
	fl.same(t)
}

// A node whose disk is nearly full takes nothing from members, says so, keeps what it has and serves it, and catches up when
// there is room.
func TestFullDiskWhileApplying(t *testing.T) {
	var full atomic.Bool
	var log lines
	fl := newFleet(t, 2, func(i int, f *fleetNode) {
		if i == 1 {
			f.opt.Space = disk.NewSpace(disk.SpaceOptions{Reserve: 100, Every: time.Millisecond, Free: func(string) (uint64, error) {
				if full.Load() {
					return 0, nil
				}
				return 1000, nil
			}})
			f.logTo(&log)
		}
	})
	a, b := fl.nodes[0], fl.nodes[1]
	stop := background(t, b.opt.Space)
	defer stop()
	mustPut(t, b.kv(), "mine", "v", PutOptions{})
	fl.equalSoon(t)
	full.Store(true)
	eventually(t, func() bool { return b.opt.Space.Check() != nil })
	mustPut(t, a.kv(), "k", "v", PutOptions{})
	mustPut(t, a.kv(), "large", strings.Repeat("v", 300_000), PutOptions{})
	eventually(t, func() bool { return b.ended(t, endDiskFull) >= 2 })
	if n := log.with("reason=disk_full", "peer=nodea"); n != 1 {
		t.Errorf("%d lines of the log", n)
	}
	if got := show(t, b.kv(), "k") + show(t, b.kv(), "mine"); got != "-v" {
		t.Errorf("the full node holds %q", got)
	}
	full.Store(false)
	fl.equalSoon(t)
	fl.same(t)
}

// background runs a watcher of the disk until stop.
func background(t testing.TB, s *disk.Space) (stop func()) {
	t.Helper()
	done := make(chan struct{})
	ctx, cancel := context.WithCancel(context.Background())
	go func() { defer close(done); s.Run(ctx) }()
	return func() { cancel(); <-done }
}

// Whoever was forgotten or has another epoch is refused with a count and one line, however often it comes.
func TestRefusalsAreSaidOnce(t *testing.T) {
	var log lines
	fl := newFleet(t, 2, func(i int, f *fleetNode) {
		if i == 0 {
			f.logTo(&log)
		}
	})
	a, b := fl.nodes[0], fl.nodes[1]
	m := Member{Name: a.name, Epoch: a.Epoch(), URL: a.server.URL}
	mustPut(t, b.kv(), "k", "v", PutOptions{})
	fl.equalSoon(t)
	if err := a.SetMembers(nil); err != nil { // b is forgotten, and does not know
		t.Fatal(err)
	}
	for range 20 {
		if _, err := b.ask(t.Context(), m, pathVector, 1000); err == nil {
			t.Fatal("a forgotten member is answered")
		}
	}
	eventually(t, func() bool { return b.ended(t, endRefused) >= 1 })
	if n := counterValue(t, a.Store.opt.Metrics.refused[refusedEpoch]); n < 20 {
		t.Errorf("%v refusals are counted", n)
	}
	if n := log.with("peer refused", "reason=epoch"); n != 1 {
		t.Errorf("%d lines of the log", n)
	}
	if got := show(t, b.kv(), "k"); got != "v" {
		t.Errorf("the forgotten one holds %q", got)
	}
}

// A node with the wrong gossip key is noticed; data goes on without the doorbell.
func TestWrongGossipKey(t *testing.T) {
	dir := t.TempDir()
	var log lines
	fl := newFleet(t, 2, func(i int, f *fleetNode) {
		key := filepath.Join(dir, fmt.Sprint(i))
		if err := os.WriteFile(key, []byte(base64.StdEncoding.EncodeToString(bytes.Repeat([]byte{byte(i)}, 32))), 0o600); err != nil {
			t.Fatal(err)
		}
		f.opt.Peers.Gossip = &gossip.Options{Bind: "127.0.0.1:0", KeyFile: key, Tick: 5 * time.Millisecond}
		if i == 0 {
			f.logTo(&log)
		}
	})
	for _, f := range fl.nodes {
		eventually(t, func() bool { return f.GossipAddr() != "" })
	}
	fl.introduce(t)
	a, b := fl.nodes[0], fl.nodes[1]
	mustPut(t, a.kv(), "k", "v", PutOptions{})
	mustPut(t, b.kv(), "l", "v", PutOptions{})
	eventually(t, func() bool { return counterValue(t, a.Store.opt.Metrics.refused[refusedKey]) >= 2 })
	if n := log.with("peer refused", "reason=key"); n != 1 {
		t.Errorf("%d lines of the log", n)
	}
	fl.equalSoon(t)
	fl.same(t)
}

// A value file that stops short costs nothing but another try: counted, said once, the value invisible until it is whole.
func TestTruncatedValueFile(t *testing.T) {
	var short atomic.Bool
	short.Store(true)
	var log lines
	fl := newFleet(t, 2, func(i int, f *fleetNode) {
		if i == 1 {
			f.logTo(&log)
			return
		}
		f.wrap = func(h http.Handler) http.Handler {
			return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if strings.HasPrefix(r.URL.Path, pathBlob) && short.Load() {
					if r.Header.Get("Range") != "" {
						w.WriteHeader(http.StatusPartialContent)
					}
					w.Write(make([]byte, 10)) // and that is all
					return
				}
				h.ServeHTTP(w, r)
			})
		}
	})
	a, b := fl.nodes[0], fl.nodes[1]
	want := strings.Repeat("large ", 100_000)
	mustPut(t, a.kv(), "k", want, PutOptions{})
	eventually(t, func() bool { return b.ended(t, endBlob) >= 2 })
	if n := log.with("reason=blob", "peer=nodea"); n != 1 {
		t.Errorf("%d lines of the log", n)
	}
	if got := show(t, b.kv(), "k"); got != "-" || show(t, a.kv(), "k") != want {
		t.Errorf("%d bytes are visible", len(got))
	}
	short.Store(false)
	eventually(t, func() bool { return show(t, b.kv(), "k") == want })
	if n := counterValue(t, b.Store.opt.Metrics.blobs["damaged"]); n == 0 { // the wrong bytes at its beginning
		t.Error("the file that was put together wrong is not counted")
	}
}
