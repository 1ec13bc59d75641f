package disk

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cockroachdb/pebble/v2"

	"edged/internal/fault"
)

// node-surface §2: the data directory is locked against a second process.
func TestLockRefusesASecondHolder(t *testing.T) {
	dir := t.TempDir()
	first, err := Lock(dir)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Lock(dir); fault.CodeOf(err) != fault.Conflict || !strings.Contains(fault.Detail(err), dir) {
		t.Fatalf("second lock: %v, want a conflict that names %s", err, dir)
	}
	if err := first.Release(); err != nil {
		t.Fatal(err)
	}
	again, err := Lock(dir)
	if err != nil {
		t.Fatalf("lock after release: %v", err)
	}
	again.Release()
}

// node-surface §3: a newer format is refused with a clear message, never repaired.
func TestCheckFormat(t *testing.T) {
	dir := t.TempDir()
	if v, err := CheckFormat(dir, "kv", 2); v != 2 || err != nil {
		t.Fatalf("fresh: %d, %v", v, err)
	}
	if v, err := CheckFormat(dir, "kv", 3); v != 2 || err != nil {
		t.Fatalf("older: %d, %v, want 2", v, err)
	}
	for _, content := range []string{"kv 9\n", "queue 1\n", "kv\n", "", "kv -1\n"} {
		name := filepath.Join(dir, "format")
		if err := os.WriteFile(name, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := CheckFormat(dir, "kv", 3); fault.CodeOf(err) != fault.Conflict {
			t.Errorf("format file %q: %v, want a conflict", content, err)
		}
		if b, _ := os.ReadFile(name); string(b) != content {
			t.Errorf("format file %q was changed to %q", content, b)
		}
	}
}

func TestPrepareNamesAnUnwritableDirectory(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(file, "data")
	if err := Prepare(dir); err == nil || !strings.Contains(fault.Detail(err), dir) {
		t.Fatalf("got %v, want an error that names %s", err, dir)
	}
}

func TestWriteFileReplacesWhole(t *testing.T) {
	name := filepath.Join(t.TempDir(), "f")
	for _, content := range []string{"one", "two, longer"} {
		if err := WriteFile(name, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		b, _ := os.ReadFile(name)
		info, _ := os.Stat(name)
		if string(b) != content || info.Mode().Perm() != 0o600 {
			t.Fatalf("got %q mode %v", b, info.Mode())
		}
	}
	if left, _ := filepath.Glob(filepath.Join(filepath.Dir(name), ".tmp-*")); len(left) != 0 {
		t.Errorf("temporary files left: %v", left)
	}
}

func TestSpaceRefusesBelowTheReserveAndRecovers(t *testing.T) {
	free := uint64(1000)
	var ferr error
	s := NewSpace(SpaceOptions{Reserve: 100, Free: func(string) (uint64, error) { return free, ferr }})
	for _, step := range []struct {
		free uint64
		err  error
		full bool
	}{{1000, nil, false}, {99, nil, true}, {110, nil, true}, {0, errors.New("gone"), true}, {125, nil, false}} {
		free, ferr = step.free, step.err
		s.look()
		if got := s.Check() != nil; got != step.full {
			t.Errorf("free %d: refuses %t, want %t", step.free, got, step.full)
		}
	}
}

func TestOpenPebbleKeepsWhatWasSynced(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "p")
	db, err := OpenPebble(PebbleOptions{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	if err := db.Set([]byte("k"), []byte("v"), pebble.Sync); err != nil {
		t.Fatal(err)
	}
	db.Close()
	db, err = OpenPebble(PebbleOptions{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	v, closer, err := db.Get([]byte("k"))
	if err != nil || string(v) != "v" {
		t.Fatalf("got %q, %v", v, err)
	}
	closer.Close()
}
