package sandbox

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// An open version whose image is stored holds no memory for it: what guests use is in the page cache, and everything
// works when the file has been deleted meanwhile.
func TestStoredImagesTakeNoMemory(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "images")
	s := newBox(t, Options{ImageDir: dir})
	before := memoryFiles(t)
	var versions []*Version
	for i := range 5 {
		versions = append(versions, openWorker(t, s, fetcher(fmt.Sprintf(`return new Response('%d')`, i))))
	}
	if n := memoryFiles(t) - before; n > 1 { // the prelude's, from which all are built
		t.Errorf("%d memory files for %d versions", n, len(versions))
	}
	if err := os.RemoveAll(dir); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		for i, v := range versions {
			if got := text(t, v); got != fmt.Sprint(i) {
				t.Errorf("version %d answers %q", i, got)
			}
		}
	}
}

func memoryFiles(t *testing.T) (n int) {
	t.Helper()
	list, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Skipf("cannot see open files: %v", err)
	}
	for _, e := range list {
		if target, err := os.Readlink(filepath.Join("/proc/self/fd", e.Name())); err == nil && strings.HasPrefix(target, "/memfd:") {
			n++
		}
	}
	return n
}
