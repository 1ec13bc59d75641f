package kv

import (
	"bytes"
	"fmt"
	"io"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"

	"edged/internal/fault"
)

func (r *rig) files(t testing.TB) (files []string) {
	t.Helper()
	if err := r.blobs.each(func(d digest) error { files = append(files, fmt.Sprintf("%x", d[:4])); return nil }); err != nil {
		t.Fatal(err)
	}
	return files
}

// kv §3: order of UTF-8 bytes, pages, cursors that survive a restart.
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

// A value file stays until the loss of its last name is durable: a crash may bring that name back.
func TestFileOutlivesAReplacementThatIsNotDurable(t *testing.T) {
	unsynced := func(o *Options) { o.unsynced, o.BlobGrace = true, 1 }
	r := newRig(t, unsynced)
	n := r.space(t, "u1")
	big := strings.Repeat("1", 300_000)
	mustPut(t, n, "k", big, PutOptions{})
	if err := r.commits.sync(); err != nil {
		t.Fatal(err)
	}
	mustPut(t, n, "k", "two", PutOptions{})
	r.now += 1000
	if err := r.Sweep(t.Context()); err != nil {
		t.Fatal(err)
	}
	r.fs = r.fs.CrashClone(vfs.CrashCloneCfg{})
	r.Close()
	r.open(t, unsynced)
	if got := show(t, r.Namespace("u1"), "k"); got != big {
		t.Errorf("after the crash: %d bytes", len(got))
	}
}

// sync makes all that was committed durable.
func (c *committer) sync() error {
	c.l.mu.Lock()
	staged := c.l.staged
	c.l.mu.Unlock()
	err := c.l.db.LogData(nil, pebble.Sync)
	if err == nil {
		c.l.synced(staged)
	}
	return err
}
