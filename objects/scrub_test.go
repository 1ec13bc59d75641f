package objects

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cockroachdb/pebble/v2"
)

// damageFile flips a byte in the file of an object.
func (w *world) damageFile(key string, off int64) {
	w.t.Helper()
	h, err := w.s.buckets[uid].head(key)
	if err != nil {
		w.t.Fatal(err)
	}
	name := filepath.Join(w.opt.Dir, "blobs", h.gen.folder(), h.gen.String())
	f, err := os.OpenFile(name, os.O_RDWR, 0)
	if err != nil {
		w.t.Fatal(err)
	}
	var b [1]byte
	_, err = f.ReadAt(b[:], off)
	b[0] ^= 1
	_, err2 := f.WriteAt(b[:], off)
	if err := errors.Join(err, err2, f.Close()); err != nil {
		w.t.Fatal(err)
	}
}

// A flipped bit, a short file, a missing one and a wrong small body are found by the scrub, and end a read of the whole with an
// error; sound objects are not reported.
func TestScrubFindsDamage(t *testing.T) {
	w := newDiskWorld(t, nil)
	ctx := t.Context()
	body := filled(3*blockBytes+100, 1)
	for _, key := range []string{"sound", "flipped", "short", "missing"} {
		w.put(key, body)
	}
	for _, key := range []string{"sound-small", "wrong-small"} {
		w.put(key, body[:50])
	}
	if res, err := w.s.Scrub(ctx, ScrubOptions{}); err != nil || res.Damaged != 0 || res.Objects != 6 {
		t.Fatalf("before: %+v, %v", res, err)
	}
	w.damageFile("flipped", blockBytes+5)
	k := w.s.buckets[uid]
	h, _ := k.head("short")
	if err := os.Truncate(filepath.Join(w.opt.Dir, "blobs", h.gen.folder(), h.gen.String()), 2*blockBytes); err != nil {
		t.Fatal(err)
	}
	h, _ = k.head("missing")
	if err := w.s.files.remove(h.gen); err != nil {
		t.Fatal(err)
	}
	h, _ = k.head("wrong-small")
	if err := w.s.db.Set(inlineKey(k.num, h.gen), body[1:51], pebble.Sync); err != nil {
		t.Fatal(err)
	}
	found := map[string]bool{}
	res, err := w.s.Scrub(ctx, ScrubOptions{UID: uid, Report: func(d Damage) { found[d.Key] = d.UID == uid && d.Reason != "" }})
	if err != nil || res.Damaged != 4 || res.Objects != 6 || !found["flipped"] || !found["short"] || !found["missing"] || !found["wrong-small"] {
		t.Errorf("%+v, %v, found %v", res, err, found)
	}
	w.ms.Add(checkedFor) // until then, reads believe what was compared
	for _, key := range []string{"flipped", "short", "missing"} {
		o, _, err := w.bucket().Get(ctx, key, GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		n, err := io.Copy(io.Discard, o)
		wantName(t, "read "+key, err, "backend_unavailable")
		if n >= 2*blockBytes+1 {
			t.Errorf("reading %s gave %d bytes", key, n)
		}
		o.Close()
	}
	// The other blocks of a damaged object are readable.
	if got, _, _ := w.get("flipped", GetOptions{Range: &Range{2 * blockBytes, blockBytes}}); !bytes.Equal(got, body[2*blockBytes:3*blockBytes]) {
		t.Error("a sound block of a damaged object is wrong")
	}
}

// The background scrub keeps to its rate, and goes on after a restart where it was.
func TestScrubPace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := &scrub{opt: ScrubOptions{Rate: 1000}}
		began := time.Now()
		for range 50 {
			if err := r.pace(t.Context(), 100); err != nil {
				t.Fatal(err)
			}
		}
		if took := time.Since(began); took != 5*time.Second {
			t.Errorf("5000 bytes at 1000 a second took %v", took)
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if err := r.pace(ctx, 1); err == nil {
			t.Error("a canceled scrub goes on")
		}
	})
}

func TestScrubGoesOnAfterRestart(t *testing.T) {
	w := newWorld(t, nil)
	k := w.s.buckets[uid]
	w.put("a", pattern(10))
	w.put("z", pattern(10))
	if err := w.s.db.Delete(inlineKey(k.num, must2(k.head("a")).gen), pebble.Sync); err != nil {
		t.Fatal(err)
	}
	if err := w.s.db.Set(scrubbedKey, headKey(k.num, "b"), pebble.Sync); err != nil {
		t.Fatal(err)
	}
	w.restart()
	if err := w.s.scrubOnce(t.Context()); err != nil {
		t.Fatal(err)
	}
	if v, err := w.s.get(scrubbedKey); err != nil || len(v) != 0 {
		t.Errorf("after a whole scrub the place is %q, %v", v, err)
	}
	if err := w.s.scrubOnce(t.Context()); err != nil {
		t.Fatal(err)
	}
}

func must2(h *head, err error) *head {
	must(err)
	return h
}

// Only a file that was compared as a whole is read without comparing it again, and only for an hour.
func TestComparedLately(t *testing.T) {
	w := newDiskWorld(t, nil)
	body := filled(2*blockBytes, 1)
	read := func(key string, r *Range) error {
		o, _, err := w.bucket().Get(t.Context(), key, GetOptions{Range: r})
		if err != nil {
			t.Fatal(err)
		}
		defer o.Close()
		_, err = io.Copy(io.Discard, o)
		return err
	}
	w.put("part", body)
	wantName(t, "the second block", read("part", &Range{Offset: blockBytes}), "")
	w.damageFile("part", 5)
	wantName(t, "all, after only a part was compared", read("part", nil), "backend_unavailable")

	w.put("all", body)
	wantName(t, "all", read("all", nil), "")
	w.damageFile("all", 5)
	wantName(t, "all, compared lately", read("all", nil), "")
	w.ms.Add(checkedFor)
	wantName(t, "all, compared an hour ago", read("all", nil), "backend_unavailable")
}
