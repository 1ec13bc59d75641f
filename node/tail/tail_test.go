package tail

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/url"
	"strings"
	"testing"
	"time"

	"edged/internal/fault"
	"edged/internal/testkit"
	"edged/sandbox"
	"edged/sandbox/event"
)

func TestMain(m *testing.M) { testkit.Main(m) }

func statusOf(outcome string) int {
	if outcome == "worker_error" {
		return 500
	}
	return 0
}

func filter(t *testing.T, query string) Filter {
	t.Helper()
	q, err := url.ParseQuery(query)
	if err != nil {
		t.Fatal(err)
	}
	f, err := ParseFilter(q)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// Only the audience of a worker is told of it, and an invocation that nobody watches finds nobody.
func TestOnlyWhoWatchesIsTold(t *testing.T) {
	h := New(statusOf, nil)
	if h.Watch("w1") != nil {
		t.Error("somebody watches")
	}
	a, err := h.Open("w1", filter(t, ""))
	if err != nil {
		t.Fatal(err)
	}
	b, err := h.Open("w2", filter(t, ""))
	if err != nil {
		t.Fatal(err)
	}
	h.Watch("w1")(&event.Invocation{Worker: "w1", Outcome: "ok"})
	h.Console(sandbox.Entry{Worker: "w1", Text: "x"})
	if h.Watch("w3") != nil || len(a.lines) != 2 || len(b.lines) != 0 {
		t.Errorf("%d lines for who watches, %d for the other", len(a.lines), len(b.lines))
	}
	a.Close()
	a.Close()
	b.Close()
	if h.Watch("w1") != nil || h.audiences.Load() != nil || h.count != 0 {
		t.Error("an audience is left")
	}
}

// The filter chooses by outcome, status and version; entries by version and, where invocations are chosen by their end, by level.
func TestFilter(t *testing.T) {
	all := []event.Invocation{
		{Kind: event.KindFetch, Version: "aa1", Status: 200, Outcome: "ok"},
		{Kind: event.KindFetch, Version: "ab1", Status: 404, Outcome: "ok"},
		{Kind: event.KindFetch, Version: "aa1", Outcome: "worker_error"},
		{Kind: event.KindFetch, Version: "aa1", Outcome: "client_left"},
		{Kind: event.KindQueue, Version: "ab1", Outcome: "worker_error"},
	}
	for query, want := range map[string]string{
		"":                                   "01234LE",
		"outcome=error":                      "24E",
		"outcome=client_left":                "3E",
		"status=404&console=none":            "1",
		"status=5xx":                         "2E",
		"status=2XX&console=all":             "0LE",
		"version=aa":                         "023LE",
		"version=ab&outcome=error":           "4",
		"console=errors":                     "01234E",
		"sample=1":                           "01234LE",
		"sample=1e-300":                      "",
		"outcome=ok&status=200&console=none": "0",
	} {
		h := New(statusOf, nil)
		w, err := h.Open("w", filter(t, query))
		if err != nil {
			t.Fatal(err)
		}
		got := ""
		for n, i := range all {
			h.Watch("w")(&i)
			if len(w.lines) > 0 {
				<-w.lines
				got += fmt.Sprint(n)
			}
		}
		for _, e := range []struct {
			mark  string
			level sandbox.Level
		}{{"L", sandbox.LevelLog}, {"E", sandbox.LevelUncaught}} {
			h.Console(sandbox.Entry{Worker: "w", Version: "aa1", Level: e.level})
			if len(w.lines) > 0 {
				<-w.lines
				got += e.mark
			}
		}
		if got != want {
			t.Errorf("%s lets %s through, want %s", query, got, want)
		}
	}
	for _, query := range []string{"outcome=fine", "status=0", "status=6xx", "status=20", "status=x", "sample=0", "sample=1.5", "sample=NaN", "sample=1%25", "console=some"} {
		q, _ := url.ParseQuery(query)
		if _, err := ParseFilter(q); fault.CodeOf(err) != fault.Invalid {
			t.Errorf("%s: %v", query, err)
		}
	}
}

// A watcher that does not read holds nobody up and keeps a bounded queue; it is told how much it missed.
func TestSlowWatchersMiss(t *testing.T) {
	for name, url := range map[string]string{"by lines": "http://a.test/", "by bytes": "http://a.test/" + strings.Repeat("x", 2000)} {
		h := New(statusOf, nil)
		w, err := h.Open("w", filter(t, ""))
		if err != nil {
			t.Fatal(err)
		}
		const told = 3 * maxLines
		for range told {
			h.Watch("w")(&event.Invocation{URL: url})
		}
		kept := len(w.lines)
		if w.waiting.Load() > maxBytes || kept == 0 || kept > maxLines {
			t.Errorf("%s: %d lines with %d bytes wait", name, kept, w.waiting.Load())
		}
		var out bytes.Buffer
		ctx, cancel := context.WithCancel(t.Context())
		flushed := 0
		if err := w.Serve(ctx, &out, func() error {
			if flushed++; len(w.lines) == 0 {
				cancel()
			}
			return nil
		}); err != nil {
			t.Fatal(err)
		}
		missed, shown := uint64(0), 0
		for _, text := range strings.Split(strings.TrimSpace(out.String()), "\n") {
			var l Line
			if err := json.Unmarshal([]byte(text), &l); err != nil {
				t.Fatal(err)
			}
			switch l.Type {
			case "dropped":
				missed += l.Dropped
			case "invocation":
				shown++
			}
		}
		if shown != kept || missed != uint64(told-kept) || w.waiting.Load() != 0 {
			t.Errorf("%s: %d shown of %d kept, %d told as missed", name, shown, kept, missed)
		}
	}
}

// Watchers are few, and all end when the node stops, with a last line that says so.
func TestHubStops(t *testing.T) {
	h := New(statusOf, nil)
	var watchers []*Watcher
	for range MaxWatchers {
		w, err := h.Open("w", filter(t, ""))
		if err != nil {
			t.Fatal(err)
		}
		watchers = append(watchers, w)
	}
	if _, err := h.Open("x", filter(t, "")); fault.CodeOf(err) != fault.Limited {
		t.Errorf("one too many: %v", err)
	}
	h.Stop()
	h.Stop()
	for _, w := range watchers {
		var out bytes.Buffer
		if err := w.Serve(t.Context(), &out, func() error { return nil }); err != nil || !strings.Contains(out.String(), `"type":"stopping"}`+"\n") {
			t.Fatalf("%v, %s", err, out.String())
		}
		w.Close()
	}
	if _, err := h.Open("w", filter(t, "")); fault.CodeOf(err) != fault.Unavailable {
		t.Errorf("after the stop: %v", err)
	}
}

// A line has what the receipt has, and what it lent is copied.
func TestLine(t *testing.T) {
	h := New(statusOf, nil)
	w, err := h.Open("w", filter(t, ""))
	if err != nil {
		t.Fatal(err)
	}
	i := event.Invocation{Start: time.UnixMilli(1767225600123), Kind: event.KindFetch, Version: "v", Method: "GET", URL: "http://a.test/<x>", Outcome: "worker_error",
		Receipt: event.Receipt{Origin: event.Hot, CPU: 1500 * time.Microsecond, Memory: 7, Waits: []event.Wait{{Name: "DB", Calls: 2, Time: time.Millisecond}}, Final: true}}
	h.Watch("w")(&i)
	i.Receipt.Waits[0].Name = "another's"
	l := <-w.lines
	const want = `{"at":"2026-01-01T00:00:00.123Z","type":"invocation","kind":"fetch","version":"v","method":"GET","url":"http://a.test/<x>","status":500,"outcome":"worker_error",` +
		`"receipt":{"sandbox":"hot","admissionMs":0,"queueMs":0,"wallMs":0,"cpuMs":1.5,"memoryBytes":7,"bodyInBytes":0,"bodyOutBytes":0,"subrequests":0,` +
		`"waits":[{"binding":"DB","calls":2,"ms":1}],"left":{"cpuMs":0,"wallMs":0,"memoryBytes":0,"subrequests":0},"final":true}}` + "\n"
	if got := string(l.append(nil)); got != want {
		t.Errorf("got\n%s, want\n%s", got, want)
	}
}

// BenchmarkUnwatched is what every invocation pays while nobody watches.
func BenchmarkUnwatched(b *testing.B) {
	h := New(statusOf, nil)
	b.ReportAllocs()
	for b.Loop() {
		if h.Watch("w") != nil {
			b.Fatal("somebody watches")
		}
	}
}
