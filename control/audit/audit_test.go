package audit

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func open(t testing.TB, dir string, most int64) *Log {
	t.Helper()
	l, err := Open(Options{Dir: dir, MaxBytes: most})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	return l
}

func add(t testing.TB, l *Log, n int, index uint64) {
	t.Helper()
	for range n {
		if err := l.Append(Record{Action: "create", UID: strings.Repeat("u", 50), Index: index}); err != nil {
			t.Fatal(err)
		}
	}
}

func all(*Record) bool { return true }

// seqs reads everything, in pages of a size.
func seqs(t testing.TB, l *Log, size int) []uint64 {
	t.Helper()
	var out []uint64
	for before := uint64(0); ; {
		page, next, err := l.Newest(before, size, all)
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range page {
			out = append(out, r.Seq)
		}
		if next == 0 {
			return out
		}
		before = next
	}
}

// Records come back newest first, in pages without gaps or repeats, also after a restart.
func TestPagesAndRestart(t *testing.T) {
	dir := t.TempDir()
	l := open(t, dir, 16<<10)
	add(t, l, 50, 7)
	l.Close()
	l = open(t, dir, 16<<10)
	if index, err := l.Index(); index != 7 || err != nil {
		t.Errorf("index is %d %v", index, err)
	}
	add(t, l, 10, 0)
	for _, size := range []int{1, 7, 1000} {
		got := seqs(t, l, size)
		for i, seq := range got {
			if seq != uint64(60-i) {
				t.Fatalf("pages of %d: place %d holds %d", size, i, seq)
			}
		}
		if len(got) != 60 {
			t.Errorf("pages of %d: %d records", size, len(got))
		}
	}
	page, _, err := l.Newest(0, 5, func(r *Record) bool { return r.Seq%7 == 0 })
	if err != nil || len(page) != 5 || page[0].Seq != 56 {
		t.Errorf("filtered: %v %v", page, err)
	}
}

// Retention is bounded: the oldest records go, the newest stay.
func TestRetention(t *testing.T) {
	dir := t.TempDir()
	l := open(t, dir, 8<<10)
	add(t, l, 1000, 0)
	var total int64
	entries, _ := os.ReadDir(dir)
	for _, e := range entries {
		info, _ := e.Info()
		total += info.Size()
	}
	got := seqs(t, l, 100)
	if total > 8<<10 || len(got) < 20 || got[0] != 1000 || got[len(got)-1] != uint64(1000-len(got)+1) {
		t.Errorf("%d bytes, %d records from %d", total, len(got), got[0])
	}
}

// A crash in the middle of a line costs that line alone, at every place that it can be cut; a damaged one likewise.
func TestCutLine(t *testing.T) {
	dir := t.TempDir()
	l := open(t, dir, 1<<20)
	add(t, l, 3, 0)
	l.Close()
	path := filepath.Join(dir, fmt.Sprintf("%016x.jsonl", 1))
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	line := len(whole) / 3
	for cut := 2*line + 1; cut < len(whole); cut += 7 {
		if err := os.WriteFile(path, whole[:cut], 0o600); err != nil {
			t.Fatal(err)
		}
		l := open(t, dir, 1<<20)
		add(t, l, 1, 0)
		if got := seqs(t, l, 10); len(got) != 3 || got[0] != 3 {
			t.Fatalf("cut at %d: %v", cut, got)
		}
		l.Close()
	}
	bad := append([]byte{}, whole...)
	bad[line+5] = '#'
	if err := os.WriteFile(path, bad, 0o600); err != nil {
		t.Fatal(err)
	}
	if got := seqs(t, open(t, dir, 1<<20), 10); len(got) != 2 {
		t.Errorf("damaged: %v", got)
	}
}

// FuzzSegment: whatever stands in a file, reading it ends and believes only lines that are records.
func FuzzSegment(f *testing.F) {
	f.Add([]byte(`{"seq":1,"action":"create"}` + "\n"))
	f.Fuzz(func(t *testing.T, raw []byte) {
		path := filepath.Join(t.TempDir(), "x.jsonl")
		if err := os.WriteFile(path, raw, 0o600); err != nil {
			t.Fatal(err)
		}
		if records, err := readSegment(path); err != nil || len(records) > len(raw) {
			t.Errorf("%d records %v", len(records), err)
		}
	})
}
