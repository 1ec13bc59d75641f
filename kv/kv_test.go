package kv

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"edged/internal/disk"
	"edged/internal/fault"
	"edged/internal/testkit"
	"edged/kv/replica"
)

func TestMain(m *testing.M) { testkit.Main(m) }

// rig is one store under test with a clock of its own.
type rig struct {
	*Store
	fs  *vfs.MemFS
	now int64
}

func options(fs vfs.FS, now *int64) Options {
	return Options{Dir: "/kv", FS: fs, MemSize: 256 << 10, clock: func() int64 { return *now }}
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

func (r *rig) files(t testing.TB) (files []string) {
	t.Helper()
	if err := r.blobs.each(func(d digest) error { files = append(files, fmt.Sprintf("%x", d[:4])); return nil }); err != nil {
		t.Fatal(err)
	}
	return files
}

// kv §3: order of UTF-8 bytes, pages, cursors that survive a restart.
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
func TestLargeValues(t *testing.T) {
	r := newRig(t, nil)
	n := r.space(t, "u1")
	rng := rand.NewChaCha8([32]byte{1})
	for _, size := range []int{131072, 131073, 1_000_000} {
		value := make([]byte, size)
		rng.Read(value)
		for i, announce := range []int64{int64(size), -1} {
			key := fmt.Sprintf("%d-%d", size, i)
			opt := PutOptions{Metadata: map[string]string{"size": fmt.Sprint(size)}}
			if err := n.PutReader(t.Context(), key, bytes.NewReader(value), announce, opt); err != nil {
				t.Fatal(err)
			}
			got, ok, err := n.Get(t.Context(), key, nil)
			if err != nil || !ok || !bytes.Equal(got, value) {
				t.Fatalf("%s: %d bytes, %t, %v", key, len(got), ok, err)
			}
			st, ok, err := n.Open(t.Context(), key)
			if err != nil || !ok || st.Size != int64(size) || string(st.Metadata) != fmt.Sprintf(`{"size":"%d"}`, size) {
				t.Fatalf("%s: %v, %t, %v", key, st, ok, err)
			}
			got, err = io.ReadAll(st)
			if st.Close(); err != nil || !bytes.Equal(got, value) {
				t.Fatalf("%s: streamed %d bytes, %v", key, len(got), err)
			}
		}
	}
	if got := r.files(t); len(got) != 2 {
		t.Errorf("%d files, want 2: equal values share one", len(got))
	}
	for _, announce := range []int64{5, 7, 131073, 200_000} {
		err := n.PutReader(t.Context(), "lie", bytes.NewReader(make([]byte, 6)), announce, PutOptions{})
		if fault.CodeOf(err) != fault.Invalid {
			t.Errorf("6 bytes announced as %d: %v", announce, err)
		}
	}
	if got := show(t, n, "lie"); got != "-" {
		t.Errorf("a put that failed stored %q", got)
	}
}

// A reader that began before a value was replaced and its file removed reads the old value to its end.
func TestReplacedWhileRead(t *testing.T) {
	r := newRig(t, nil)
	n := r.space(t, "u1")
	mustPut(t, n, "k", strings.Repeat("1", 300_000), PutOptions{})
	st, _, err := n.Open(t.Context(), "k")
	if err != nil {
		t.Fatal(err)
	}
	defer st.Close()
	mustPut(t, n, "k", "two", PutOptions{})
	r.now += time.Hour.Milliseconds()
	if err := r.Sweep(t.Context()); err != nil || len(r.files(t)) != 0 {
		t.Fatalf("%v, files %v", err, r.files(t))
	}
	if got, err := io.ReadAll(st); err != nil || len(got) != 300_000 {
		t.Errorf("%d bytes, %v", len(got), err)
	}
}

// A damaged value file is an error, never a wrong value.
func TestDamagedFile(t *testing.T) {
	r := newRig(t, nil)
	n := r.space(t, "u1")
	mustPut(t, n, "k", strings.Repeat("1", 300_000), PutOptions{})
	var d digest
	r.blobs.each(func(x digest) error { d = x; return nil })
	f, err := r.fs.OpenReadWrite(r.blobs.path(d), writeCategory)
	if err != nil {
		t.Fatal(err)
	}
	f.WriteAt([]byte("2"), 1000)
	f.Close()
	_, _, err = n.Get(t.Context(), "k", nil)
	wantName(t, "damaged", err, "backend_unavailable")
	r.fs.Remove(r.blobs.path(d))
	_, _, err = n.Get(t.Context(), "k", nil)
	wantName(t, "missing", err, "backend_unavailable")
}

func TestQuota(t *testing.T) {
	r := newRig(t, func(o *Options) { o.QuotaBytes = 10_000 })
	n, other := r.space(t, "u1"), r.space(t, "u2")
	mustPut(t, n, "a", strings.Repeat("x", 6000), PutOptions{})
	wantName(t, "over quota", n.Put(t.Context(), "b", make([]byte, 6000), PutOptions{}), "backend_unavailable")
	wantName(t, "over quota, large", n.Put(t.Context(), "b", make([]byte, 600_000), PutOptions{}), "backend_unavailable")
	mustPut(t, n, "a", strings.Repeat("y", 9000), PutOptions{}) // in place of the old one
	mustPut(t, other, "b", strings.Repeat("x", 6000), PutOptions{})
	if err := n.Delete(t.Context(), "a"); err != nil {
		t.Fatal(err)
	}
	mustPut(t, n, "b", strings.Repeat("x", 6000), PutOptions{})
	used := r.ledger.space("u1").bytes.Load()
	r.reopen(t, nil)
	if again := r.ledger.space("u1").bytes.Load(); again != used || used == 0 {
		t.Errorf("usage %d after a restart, %d before", again, used)
	}
}

// A nearly full disk refuses puts with the contract's word; reads and deletes go on.
func TestFullDisk(t *testing.T) {
	free := uint64(1 << 40)
	r := newRig(t, func(o *Options) {
		o.Space = disk.NewSpace(disk.SpaceOptions{Free: func(string) (uint64, error) { return free, nil }})
	})
	n := r.space(t, "u1")
	mustPut(t, n, "k", "v", PutOptions{})
	free = 0
	r.opt.Space = disk.NewSpace(disk.SpaceOptions{Free: func(string) (uint64, error) { return free, nil }})
	wantName(t, "put", n.Put(t.Context(), "k", nil, PutOptions{}), "backend_unavailable")
	if got := show(t, n, "k"); got != "v" {
		t.Errorf("get: %q", got)
	}
	if err := n.Delete(t.Context(), "k"); err != nil {
		t.Errorf("delete: %v", err)
	}
}

// kv §1: create never adopts, delete removes all data and resumes after a crash.
func TestNamespaceLife(t *testing.T) {
	r := newRig(t, nil)
	n, other := r.space(t, "u1"), r.space(t, "u10")
	mustPut(t, other, "k", "stays", PutOptions{})
	for i := range 50 {
		mustPut(t, n, fmt.Sprint(i), "v", PutOptions{TTL: time.Hour})
	}
	mustPut(t, n, "big", strings.Repeat("x", 200_000), PutOptions{})
	before := len(r.keys(t))
	if err := r.Delete(t.Context(), "u1"); err != nil || r.Exists("u1") {
		t.Fatal(err, r.Exists("u1"))
	}
	_, _, err := n.Get(t.Context(), "1", nil)
	wantName(t, "get", err, "backend_unavailable")
	wantName(t, "put", n.Put(t.Context(), "1", nil, PutOptions{}), "backend_unavailable")
	wantName(t, "create again", r.Create(t.Context(), "u1", 2), "conflict")

	r.fs = r.fs.CrashClone(vfs.CrashCloneCfg{}) // before anything was swept
	r.Close()
	r.open(t, nil)
	if r.Exists("u1") {
		t.Error("deleted namespace is back")
	}
	r.runSweepOnce(t)
	r.now += time.Hour.Milliseconds()
	if err := r.Sweep(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := r.keys(t); before < 100 || len(got) != 2 {
		t.Errorf("left of %d entries: %q", before, got)
	}
	if got := r.files(t); len(got) != 0 {
		t.Errorf("files left: %v", got)
	}
	if got := show(t, r.Namespace("u10"), "k"); got != "stays" {
		t.Errorf("another namespace: %q", got)
	}
	if err := r.Delete(t.Context(), "u1"); err != nil {
		t.Errorf("delete again: %v", err)
	}
	if err := r.Delete(t.Context(), "never"); err != nil {
		t.Errorf("delete of nothing: %v", err)
	}
	wantName(t, "create after that", r.Create(t.Context(), "never", 1), "conflict")
	for _, uid := range []string{"", strings.Repeat("u", 129)} {
		wantName(t, "uid", r.Create(t.Context(), uid, 1), "invalid")
	}
}

func (r *rig) runSweepOnce(t testing.TB) {
	t.Helper()
	if err := r.blobs.findUnused(r.db, r.stagedNow(), time.UnixMilli(r.now)); err != nil {
		t.Fatal(err)
	}
	if err := r.Sweep(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// A home that was moved has a greater epoch; calls under an older one are refused.
func TestHomeEpoch(t *testing.T) {
	r := newRig(t, nil)
	for _, tt := range []struct {
		epoch uint64
		name  string
	}{{3, ""}, {3, ""}, {2, "conflict"}, {4, ""}, {3, "conflict"}} {
		wantName(t, fmt.Sprint(tt.epoch), r.Create(t.Context(), "u", tt.epoch), tt.name)
	}
	if err := r.SetNamespaces(t.Context(), map[string]uint64{"u": 4, "v": 1, "w": 1}, []string{"w", "x"}); err != nil {
		t.Fatal(err)
	}
	if !r.Exists("u") || !r.Exists("v") || r.Exists("w") || r.Exists("x") {
		t.Error("namespaces are not as set")
	}
	if err := r.SetNamespaces(t.Context(), nil, nil); err != nil || !r.Exists("u") {
		t.Error("a short list deleted something", err)
	}
}

// A backup holds what was acknowledged before it; the store that is opened from it has a new epoch and goes on.
func TestBackupAndRestore(t *testing.T) {
	dir := t.TempDir()
	open := func(name string) *Store {
		s, err := Open(Options{Dir: filepath.Join(dir, name)})
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	a := open("a")
	defer a.Close()
	if err := a.Create(t.Context(), "u", 1); err != nil {
		t.Fatal(err)
	}
	big := strings.Repeat("b", 500_000)
	mustPut(t, a.Namespace("u"), "k", "v", PutOptions{})
	mustPut(t, a.Namespace("u"), "big", big, PutOptions{})
	if err := a.Backup(filepath.Join(dir, "b")); err != nil {
		t.Fatal(err)
	}
	wantName(t, "a second backup into it", a.Backup(filepath.Join(dir, "b")), "conflict")
	mustPut(t, a.Namespace("u"), "k", "later", PutOptions{})
	b := open("b")
	epoch := b.Epoch()
	if epoch == a.Epoch() {
		t.Error("the restored store has the epoch of the old one")
	}
	if got := show(t, b.Namespace("u"), "k"); got != "v" {
		t.Errorf("restored %q", got)
	}
	if got := show(t, b.Namespace("u"), "big"); got != big {
		t.Errorf("restored %d bytes", len(got))
	}
	mustPut(t, b.Namespace("u"), "k", "again", PutOptions{})
	if err := b.Close(); err != nil {
		t.Fatal(err)
	}
	b = open("b")
	defer b.Close()
	v, seq := b.ledger.covers()
	if b.Epoch() != epoch || seq != 1 || v[a.Epoch()] != 2 || v[epoch] != 1 {
		t.Errorf("after a restart: epoch %v, seq %d, vector %v", b.Epoch(), seq, v)
	}
}

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
