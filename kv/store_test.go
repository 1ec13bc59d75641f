package kv

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"edged/internal/disk"
)

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
