package engine

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/cespare/xxhash/v2"
)

func savedImage(t testing.TB) (img *Image, path string) {
	t.Helper()
	in := fresh(t)
	f := files{"main": "import './a'; globalThis.count = 41; export default () => ++count", "a": "export let x = 1"}
	ns := module(t, in, f)
	img, err := in.Snapshot(SnapshotOptions{MemoryBytes: 32 << 20, HeapLimit: heapLimit, Roots: []Value{in.GetProp(ns, "default"), Int(5)}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(img.Close)
	path = filepath.Join(t.TempDir(), "image")
	if err := img.Save(path); err != nil {
		t.Fatal(err)
	}
	return img, path
}

// A stored image gives the same clones as the one that was stored, down to the byte.
func TestSaveAndLoad(t *testing.T) {
	img, path := savedImage(t)
	if st, err := os.Stat(path); err != nil || st.Mode().Perm() != 0o600 {
		t.Errorf("mode %v, %v", st.Mode(), err)
	}
	if list, _ := os.ReadDir(filepath.Dir(path)); len(list) != 1 {
		t.Errorf("%d files, want only the image", len(list))
	}
	again, err := testEngine(t).LoadImage(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(again.Close)
	if !slices.Equal(again.Roots(), img.Roots()) || !slices.Equal(again.moduleNames(), img.moduleNames()) || again.MemoryBytes() != img.MemoryBytes() {
		t.Error("roots, modules or size differ")
	}
	a, b := clone(t, img), clone(t, again)
	copy(a.mem.view()[a.known.context+280:], b.mem.view()[b.known.context+280:][:8])
	if !bytes.Equal(a.mem.view(), b.mem.view()) {
		t.Error("the memories differ")
	}
	for range 3 {
		if v, err := b.Call(again.Roots()[0], Undefined); err != nil || v != Int(42) {
			t.Errorf("got %v, %v", b.Text(v), err)
		}
		if err := b.Reset(); err != nil {
			t.Fatal(err)
		}
		if diff := differences(b); diff != "" {
			t.Error(diff)
		}
	}
	twice := filepath.Join(t.TempDir(), "twice")
	if err := again.Save(twice); err != nil {
		t.Fatal(err)
	}
	one, _ := os.ReadFile(path)
	if two, _ := os.ReadFile(twice); len(one) == 0 || !bytes.Equal(one, two) {
		t.Error("saving it once more gives another file")
	}
}

// A file that is damaged anywhere, cut off anywhere or another engine's is refused, so that the caller builds the image
// anew.
func TestBadImageFiles(t *testing.T) {
	_, path := savedImage(t)
	good, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	e := testEngine(t)
	load := func(b []byte) error {
		p := filepath.Join(t.TempDir(), "bad")
		if err := os.WriteFile(p, b, 0o600); err != nil {
			t.Fatal(err)
		}
		img, err := e.LoadImage(p)
		if err == nil {
			img.Close()
		}
		return err
	}
	if err := load(good); err != nil {
		t.Fatal(err)
	}
	for _, n := range []int{0, 1, 7, imageHeadSize - 1, imageHeadSize, imageHeadSize + 9, len(good) / 2, len(good) - 1} {
		if err := load(good[:n]); !errors.Is(err, ErrImage) {
			t.Errorf("cut to %d bytes: %v", n, err)
		}
	}
	for _, at := range []int{0, 7, 9, 20, 50, imageHeadSize, imageHeadSize + 40, len(good) / 2, len(good) - 1} {
		b := slices.Clone(good)
		b[at] ^= 1
		if err := load(b); !errors.Is(err, ErrImage) {
			t.Errorf("a bit flipped at %d: %v", at, err)
		}
	}
	if err := load(append(slices.Clone(good), 0)); !errors.Is(err, ErrImage) {
		t.Errorf("a byte too many: %v", err)
	}
	if _, err := e.LoadImage(filepath.Join(t.TempDir(), "none")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("no file: %v", err)
	}
	opt := options(t)
	opt.Hosts = opt.Hosts[:1]
	other, err := New(context.Background(), opt)
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	if _, err := other.LoadImage(path); !errors.Is(err, ErrImage) {
		t.Errorf("an engine with other host functions: %v", err)
	}
}

// Whatever the fields of a file say, with a checksum that fits, loading it and running a clone of it harms nobody but
// the clone.
func FuzzImageFile(f *testing.F) {
	_, path := savedImage(f)
	good, err := os.ReadFile(path)
	if err != nil {
		f.Fatal(err)
	}
	head := good[imageHeadSize:][:400]
	bad := filepath.Join(f.TempDir(), "bad")
	f.Add(head, uint16(0))
	f.Add(head[:0], uint16(0))
	f.Add(bytes.Repeat([]byte{0xff}, 64), uint16(8))
	f.Add(bytes.Repeat([]byte{0, 0, 0, 1}, 30), uint16(16))
	e := testEngine(f)
	f.Fuzz(func(t *testing.T, patch []byte, at uint16) {
		b := slices.Clone(good)
		copy(b[imageHeadSize+int(at)%(len(b)-imageHeadSize):], patch)
		binary.LittleEndian.PutUint64(b[8:], xxhash.Sum64(b[16:]))
		if err := os.WriteFile(bad, b, 0o600); err != nil {
			t.Fatal(err)
		}
		img, err := e.LoadImage(bad)
		if err != nil {
			return
		}
		defer img.Close()
		in, err := e.Clone(img)
		if err != nil {
			return
		}
		defer in.Close()
		in.Arm(5e6)
		for _, v := range img.Roots() {
			in.Call(v, Undefined)
			in.String(v)
			in.Bytes(v)
		}
		if err := in.Reset(); err == nil && len(in.mem.view()) != int(img.size) {
			t.Error("Reset left a memory of another size")
		}
	})
}
