package kv

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"

	"edged/internal/fault"
	"edged/internal/testkit"
	"edged/kv/replica"
)

// testCache is shared by the stores of the tests: a cache for each costs more than what it holds.
var testCache = pebble.NewCache(8 << 20)

func TestMain(m *testing.M) { testkit.Main(m) }

// rig is one store under test with a clock of its own.
type rig struct {
	*Store
	fs  *vfs.MemFS
	now int64
}

func options(fs vfs.FS, now *int64) Options {
	return Options{Dir: "/kv", FS: fs, Cache: testCache, MemSize: 256 << 10, clock: func() int64 { return *now }}
}

func newRig(t testing.TB, change func(*Options)) *rig {
	t.Helper()
	r := &rig{fs: vfs.NewCrashableMem(), now: 1_700_000_000_000}
	r.open(t, change)
	t.Cleanup(func() { r.Close() })
	return r
}

func (r *rig) open(t testing.TB, change func(*Options)) {
	t.Helper()
	opt := options(r.fs, &r.now)
	if change != nil {
		change(&opt)
	}
	s, err := Open(opt)
	if err != nil {
		t.Fatal(err)
	}
	r.Store = s
}

func (r *rig) reopen(t testing.TB, change func(*Options)) {
	t.Helper()
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
	r.open(t, change)
}

func (r *rig) space(t testing.TB, uid string) *Namespace {
	t.Helper()
	if err := r.Create(t.Context(), uid, 1); err != nil {
		t.Fatal(err)
	}
	return r.Namespace(uid)
}

func mustPut(t testing.TB, n *Namespace, key, value string, opt PutOptions) {
	t.Helper()
	if err := n.Put(t.Context(), key, []byte(value), opt); err != nil {
		t.Fatalf("put %q: %v", key, err)
	}
}

// show renders what a key holds: "-" for nothing.
func show(t testing.TB, n *Namespace, key string) string {
	t.Helper()
	it, ok, err := n.GetWithMetadata(context.Background(), key)
	if err != nil {
		t.Fatalf("get %q: %v", key, err)
	}
	if !ok {
		return "-"
	}
	return string(it.Value) + string(it.Metadata)
}

func wantName(t *testing.T, what string, err error, name string) {
	t.Helper()
	if got := fault.NameOf(err); got != name {
		t.Errorf("%s: %q (%v), want %q", what, got, err, name)
	}
}

// kv §3: limits and words of put, get, delete.
func TestLimits(t *testing.T) {
	n := newRig(t, nil).space(t, "u1")
	ctx := t.Context()
	put := func(key string, value int, opt PutOptions) error {
		return n.Put(ctx, key, make([]byte, value), opt)
	}
	entries := func(count int, key, value string) PutOptions {
		m := map[string]string{}
		for i := range count {
			m[fmt.Sprintf("%d%s", i, key)] = value
		}
		return PutOptions{Metadata: m}
	}
	for _, tt := range []struct {
		what string
		err  error
		name string
	}{
		{"empty key", put("", 1, PutOptions{}), "invalid_key"},
		{"467 bytes", put(strings.Repeat("k", 467), 1, PutOptions{}), ""},
		{"468 bytes", put(strings.Repeat("k", 468), 1, PutOptions{}), "invalid_key"},
		{"468 bytes of é", put(strings.Repeat("é", 234), 1, PutOptions{}), "invalid_key"},
		{"not UTF-8", put("\xed\xa0\x80", 1, PutOptions{}), "invalid_key"},
		{"largest value", put("v", 26214400, PutOptions{}), ""},
		{"one more", put("v", 26214401, PutOptions{}), "value_too_large"},
		{"one more, unknown length", n.PutReader(ctx, "v", io.LimitReader(zeros{}, 26214401), -1, PutOptions{}), "value_too_large"},
		{"one more, announced", n.PutReader(ctx, "v", zeros{}, 26214401, PutOptions{}), "value_too_large"},
		{"64 entries", put("m", 1, entries(64, "", "")), ""},
		{"65 entries", put("m", 1, entries(65, "", "")), "metadata_too_large"},
		{"long metadata key", put("m", 1, PutOptions{Metadata: map[string]string{strings.Repeat("k", 257): ""}}), "metadata_too_large"},
		{"metadata of 1024", put("m", 1, PutOptions{Metadata: map[string]string{"k": strings.Repeat("v", 1024-8)}}), ""},
		{"metadata of 1025", put("m", 1, PutOptions{Metadata: map[string]string{"k": strings.Repeat("v", 1025-8)}}), "metadata_too_large"},
		{"long metadata value", put("m", 1, PutOptions{Metadata: map[string]string{"k": strings.Repeat("v", 8193)}}), "metadata_too_large"},
		{"ttl 59", put("t", 1, PutOptions{TTL: 59 * time.Second}), "invalid"},
		{"ttl 60", put("t", 1, PutOptions{TTL: 60 * time.Second}), ""},
		{"ttl 315360000", put("t", 1, PutOptions{TTL: 315360000 * time.Second}), ""},
		{"ttl 315360001", put("t", 1, PutOptions{TTL: 315360001 * time.Second}), "invalid"},
		{"delete of nothing", n.Delete(ctx, "never"), ""},
		{"delete of an invalid key", n.Delete(ctx, ""), "invalid_key"},
	} {
		wantName(t, tt.what, tt.err, tt.name)
	}
	if _, _, err := n.Get(ctx, "", nil); fault.NameOf(err) != "invalid_key" {
		t.Errorf("get of the empty key: %v", err)
	}
	if got := show(t, n, "never"); got != "-" {
		t.Errorf("a key nobody wrote reads %q", got)
	}
}

type zeros struct{}

// Read implements io.Reader.
func (zeros) Read(p []byte) (int, error) { clear(p); return len(p), nil }

// kv §3: a put replaces value, metadata and TTL together.
func TestPutReplacesAll(t *testing.T) {
	r := newRig(t, nil)
	n := r.space(t, "u1")
	mustPut(t, n, "k", "one", PutOptions{Metadata: map[string]string{"b": "2", "a": "1"}, TTL: time.Minute})
	if got, want := show(t, n, "k"), `one{"a":"1","b":"2"}`; got != want {
		t.Fatalf("got %s, want %s", got, want)
	}
	mustPut(t, n, "k", "two", PutOptions{})
	r.now += 3_600_000
	if got := show(t, n, "k"); got != "two" {
		t.Errorf("after a put without metadata and TTL: %q", got)
	}
	mustPut(t, n, "k", "", PutOptions{Metadata: map[string]string{}})
	if got := show(t, n, "k"); got != "{}" {
		t.Errorf("an empty value with empty metadata reads %q", got)
	}
}

// kv §3, TTL: hidden after at least that time, and swept.
func TestExpiry(t *testing.T) {
	r := newRig(t, func(o *Options) { o.Grace = time.Hour })
	n := r.space(t, "u1")
	mustPut(t, n, "k", "v", PutOptions{TTL: time.Minute})
	big := strings.Repeat("x", 200_000)
	mustPut(t, n, "big", big, PutOptions{TTL: time.Minute})
	r.now += 59_999
	if got := show(t, n, "k"); got != "v" {
		t.Fatalf("before its time: %q", got)
	}
	r.now++
	for _, swept := range []bool{false, true} {
		if swept {
			if err := r.Sweep(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		page, err := n.List(t.Context(), ListOptions{})
		if got := show(t, n, "k") + show(t, n, "big"); got != "--" || err != nil || len(page.Keys) != 0 || !page.Complete {
			t.Errorf("swept %t: %q, %v, %v", swept, got, page, err)
		}
	}
	if got := r.files(t); len(got) != 1 {
		t.Errorf("value files before their grace: %v", got)
	}
	r.now += time.Hour.Milliseconds() + 1
	if err := r.Sweep(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := r.files(t); len(got) != 0 {
		t.Errorf("value files after their grace: %v", got)
	}
	if got := r.keys(t); len(got) != 0 {
		t.Errorf("left in the store: %q", got)
	}
	if b := r.ledger.space("u1").bytes.Load(); b != 0 {
		t.Errorf("%d bytes in use", b)
	}
}

// keys returns the store keys that hold data or lead to some.
func (r *rig) keys(t testing.TB) (keys []string) {
	t.Helper()
	for _, p := range []byte{prefixRecord, prefixChange, prefixExpiry, prefixDead, prefixBlob} {
		if err := scan(r.db, []byte{p}, nil, func(k, _ []byte) (bool, error) {
			keys = append(keys, string(k))
			return true, nil
		}); err != nil {
			t.Fatal(err)
		}
	}
	return keys
}

func TestList(t *testing.T) {
	r := newRig(t, nil)
	n := r.space(t, "u1")
	other := r.space(t, "u2")
	mustPut(t, other, "a", "", PutOptions{})
	var want []string
	for _, k := range []string{"b", "a", "ab", "a\x00", "ä", "\U0001F600", "\uFFFD", "aa", "zz"} {
		mustPut(t, n, k, "v", PutOptions{})
		want = append(want, k)
	}
	slices.Sort(want)
	var got []string
	opt := ListOptions{Limit: 2}
	for range 20 {
		page, err := n.List(t.Context(), opt)
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, page.Keys...)
		if page.Complete != (page.Cursor == "") {
			t.Fatalf("complete %t with cursor %q", page.Complete, page.Cursor)
		}
		if page.Complete {
			break
		}
		opt.Cursor = page.Cursor
		r.reopen(t, nil)
		n = r.Namespace("u1")
	}
	if !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	page, err := n.List(t.Context(), ListOptions{Prefix: "a"})
	if want := []string{"a", "a\x00", "aa", "ab"}; err != nil || !slices.Equal(page.Keys, want) {
		t.Errorf("prefix a: %q, %v", page.Keys, err)
	}
	page, err = n.List(t.Context(), ListOptions{Prefix: "nothing"})
	if err != nil || page.Keys == nil || len(page.Keys) != 0 || !page.Complete {
		t.Errorf("a prefix nothing was written under: %v, %v", page, err)
	}
	for _, opt := range []ListOptions{{Limit: -1}, {Limit: 1001}, {Prefix: strings.Repeat("p", 468)}, {Prefix: "\xff"}} {
		if _, err := n.List(t.Context(), opt); fault.CodeOf(err) != fault.Invalid || fault.NamedOf(err) != nil {
			t.Errorf("%v: %v", opt, err)
		}
	}
}

// kv §3: a cursor that was made up, or is from another listing, is invalid_cursor.
func TestForeignCursors(t *testing.T) {
	r := newRig(t, nil)
	n, other := r.space(t, "u1"), r.space(t, "u2")
	for _, k := range []string{"a1", "a2", "a3"} {
		mustPut(t, n, k, "", PutOptions{})
		mustPut(t, other, k, "", PutOptions{})
	}
	page, err := n.List(t.Context(), ListOptions{Prefix: "a", Limit: 1})
	if err != nil || page.Cursor == "" {
		t.Fatal(page, err)
	}
	flipped := []byte(page.Cursor)
	flipped[5] ^= 1
	stranger := newRig(t, nil).space(t, "u1")
	for _, tt := range []struct {
		n              *Namespace
		prefix, cursor string
	}{
		{n, "", page.Cursor}, {n, "a1", page.Cursor}, {other, "a", page.Cursor}, {stranger, "a", page.Cursor},
		{n, "a", string(flipped)}, {n, "a", page.Cursor + "A"}, {n, "a", "x"}, {n, "a", strings.Repeat("A", 5000)}, {n, "a", "é"},
	} {
		_, err := tt.n.List(t.Context(), ListOptions{Prefix: tt.prefix, Cursor: tt.cursor})
		wantName(t, "prefix "+tt.prefix+" cursor "+tt.cursor, err, "invalid_cursor")
	}
	if _, err := n.List(t.Context(), ListOptions{Prefix: "a", Cursor: page.Cursor}); err != nil {
		t.Errorf("its own listing: %v", err)
	}
}

// A page over many deleted keys ends early, and the next one goes on behind them.
func TestListOverManyTombstones(t *testing.T) {
	r := newRig(t, nil)
	n := r.space(t, "u1")
	err := r.commits.do(0, func(tx *tx) error {
		for i := range maxListScan + 10 {
			if err := tx.write(change{"u1", fmt.Sprintf("a%06d", i), tombstone()}); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	mustPut(t, n, "z", "", PutOptions{})
	page, err := n.List(t.Context(), ListOptions{})
	if err != nil || len(page.Keys) != 0 || page.Complete {
		t.Fatalf("first page: %v, %v", page, err)
	}
	page, err = n.List(t.Context(), ListOptions{Cursor: page.Cursor})
	if err != nil || !slices.Equal(page.Keys, []string{"z"}) || !page.Complete {
		t.Fatalf("second page: %v, %v", page, err)
	}
}

// Large values are streamed both ways and lie in files that are shared by equal values.
func tombstone() replica.Record { return replica.Record{Flags: replica.Deleted} }

// eventually waits until ok holds, or fails the test after a while.
func eventually(t testing.TB, ok func() bool) {
	t.Helper()
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	deadline := time.After(20 * time.Second)
	for !ok() {
		select {
		case <-tick.C:
		case <-deadline:
			t.Fatal("it did not come about")
		}
	}
}

func valueRecord(v []byte) replica.Record { return replica.Record{Value: v, Size: uint64(len(v))} }

func counterValue(t testing.TB, c prometheus.Counter) float64 {
	t.Helper()
	var m dto.Metric
	if err := c.Write(&m); err != nil {
		t.Fatal(err)
	}
	return m.GetCounter().GetValue()
}
