package objects

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"testing"
	"time"

	"edged/internal/fault"
)

// A backup made while puts go on holds everything that was acknowledged before it, whole; what comes after does not touch it; it is
// refused over something that exists, and a half one is not restored.
func TestBackupRestore(t *testing.T) {
	w := newDiskWorld(t, func(o *Options) { o.Grace = 1 })
	ctx := t.Context()
	small, large := filled(100, 1), filled(2*blockBytes, 2)
	w.put("small", small)
	w.put("large", large)
	up := w.upload("m", "")
	first := w.part("m", up, 1, filled(MinPartBytes, 3))

	stop, ended := make(chan struct{}), make(chan error, 1)
	go func() {
		for i := 0; ; i++ {
			select {
			case <-stop:
				ended <- nil
				return
			default:
			}
			_, err := w.bucket().Put(ctx, fmt.Sprintf("busy-%d", i%5), bytes.NewReader(large[i%100:]), PutOptions{Length: -1})
			w.ms.Add(10)
			if err := errors.Join(err, w.s.Sweep(ctx)); err != nil {
				ended <- err
				return
			}
		}
	}()
	dest := filepath.Join(t.TempDir(), "backup")
	if err := w.s.Backup(ctx, dest); err != nil {
		t.Fatal(err)
	}
	close(stop)
	if err := <-ended; err != nil {
		t.Fatal(err)
	}
	if err := w.s.Backup(ctx, dest); fault.CodeOf(err) != fault.Conflict {
		t.Errorf("a second backup: %v", err)
	}
	w.put("small", large)
	w.put("large", small)
	w.collect()

	dir := filepath.Join(t.TempDir(), "restored")
	if err := Restore(ctx, dest, dir); err != nil {
		t.Fatal(err)
	}
	if err := Restore(ctx, dest, dir); fault.CodeOf(err) != fault.Conflict {
		t.Errorf("restore over a store: %v", err)
	}
	r := &world{t: t, opt: Options{Dir: dir, clock: w.ms.Load}}
	r.open()
	defer r.s.Close()
	for key, want := range map[string][]byte{"small": small, "large": large} {
		if got, _, _ := r.get(key, GetOptions{}); !bytes.Equal(got, want) {
			t.Errorf("%s has %d bytes", key, len(got))
		}
	}
	if res, err := r.s.Scrub(ctx, ScrubOptions{}); err != nil || res.Damaged != 0 || res.Objects < 2 {
		t.Errorf("scrub: %+v, %v", res, err)
	}
	if _, err := r.bucket().CompleteMultipartUpload(ctx, "m", up, []Part{first}); err != nil {
		t.Errorf("an upload that was open: %v", err)
	}
	r.collect()
	if err := os.Remove(filepath.Join(dest, "format")); err != nil {
		t.Fatal(err)
	}
	if err := Restore(ctx, dest, filepath.Join(t.TempDir(), "r")); fault.CodeOf(err) != fault.Invalid {
		t.Errorf("restore of half a backup: %v", err)
	}
}

// While a backup is made nothing is removed that it may name.
func TestBackupHoldsFiles(t *testing.T) {
	w := newDiskWorld(t, nil)
	w.put("k", filled(blockBytes, 1))
	w.s.garbage.hold()
	w.put("k", nil)
	w.collect()
	if n := w.files(); n != 1 {
		t.Errorf("%d files during a backup", n)
	}
	w.s.garbage.unhold()
	w.collect()
	if n := w.files(); n != 0 {
		t.Errorf("%d files after it", n)
	}
}

// Files that nothing names go when they are old; a body on its way and what is not ours stay.
func TestOrphans(t *testing.T) {
	w := newDiskWorld(t, nil)
	w.put("k", filled(blockBytes, 1))
	orphan, young, busy := newID(1), newID(2), newID(3)
	root := filepath.Join(w.opt.Dir, "blobs")
	now := w.ms.Load()
	for i, ageMs := range map[id]int64{orphan: w.s.opt.OrphanAge.Milliseconds() + 1, young: 0, busy: 1 << 40} {
		name := filepath.Join(root, i.folder(), i.String())
		err := os.WriteFile(name, nil, 0o600)
		when := time.UnixMilli(now - ageMs)
		if err := errors.Join(err, os.Chtimes(name, when, when)); err != nil {
			t.Fatal(err)
		}
	}
	stranger := filepath.Join(root, "00", "stranger")
	if err := os.WriteFile(stranger, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	w.s.garbage.protect(busy)
	if err := w.s.Sweep(t.Context()); err != nil {
		t.Fatal(err)
	}
	for i, want := range map[id]bool{orphan: false, young: true, busy: true} {
		if f, err := w.s.files.open(i); (err == nil) != want {
			t.Errorf("%v: %v, want there %t", i, err, want)
		} else if err == nil {
			f.Close()
		}
	}
	if _, err := os.Stat(stranger); err != nil {
		t.Error(err)
	}
	o, _, err := w.bucket().Get(t.Context(), "k", GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.Copy(io.Discard, o); err != nil {
		t.Error(err)
	}
	o.Close()
}
