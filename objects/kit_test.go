package objects

import (
	"bytes"
	"errors"
	"io"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"edged/internal/fault"
	"edged/internal/testkit"
)

func TestMain(m *testing.M) { testkit.Main(m) }

// world is a store in a directory, its clock in the test's hand.
type world struct {
	t   testing.TB
	opt Options
	ms  atomic.Int64
	s   *Store
}

const (
	uid      = "bucket-1"
	otherUID = "bucket-2"
)

// newWorld opens a store in memory with two buckets; edit may change its options.
func newWorld(t testing.TB, edit func(*Options)) *world {
	w := &world{t: t}
	w.ms.Store(1_700_000_000_000)
	w.opt = Options{Dir: "objects", FS: vfs.NewMem(), clock: w.ms.Load}
	if edit != nil {
		edit(&w.opt)
	}
	w.open()
	for _, u := range []string{uid, otherUID} {
		if err := w.s.Create(t.Context(), u, 1); err != nil {
			t.Fatal(err)
		}
	}
	t.Cleanup(func() { w.s.Close() })
	return w
}

// newDiskWorld is newWorld with real files.
func newDiskWorld(t testing.TB, edit func(*Options)) *world {
	return newWorld(t, func(o *Options) {
		o.Dir, o.FS = t.TempDir(), nil
		if edit != nil {
			edit(o)
		}
	})
}

func (w *world) open() {
	s, err := Open(w.opt)
	if err != nil {
		w.t.Fatal(err)
	}
	w.s = s
}

// restart closes the store and opens it again.
func (w *world) restart() {
	if err := w.s.Close(); err != nil {
		w.t.Fatal(err)
	}
	w.open()
}

func (w *world) bucket() *Bucket { return w.s.Bucket(uid) }

// pattern is n bytes of the contract's test body: byte i holds i modulo 256 (objects §5).
func pattern(n int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(i)
	}
	return b
}

// filled is n bytes that differ by seed.
func filled(n int, seed byte) []byte {
	b := make([]byte, n)
	x := uint32(seed) + 1
	for i := range b {
		x = x*1664525 + 1013904223
		b[i] = byte(x >> 24)
	}
	return b
}

func (w *world) put(key string, body []byte) Info {
	w.t.Helper()
	info, err := w.bucket().Put(w.t.Context(), key, bytes.NewReader(body), PutOptions{Length: int64(len(body))})
	if err != nil {
		w.t.Fatalf("put %q: %v", key, err)
	}
	return info
}

// get returns the body, and whether there is one.
func (w *world) get(key string, opt GetOptions) ([]byte, *Object, bool) {
	w.t.Helper()
	o, ok, err := w.bucket().Get(w.t.Context(), key, opt)
	if err != nil {
		w.t.Fatalf("get %q: %v", key, err)
	}
	if !ok {
		return nil, nil, false
	}
	b, err := io.ReadAll(o)
	if err := errors.Join(err, o.Close()); err != nil {
		w.t.Fatalf("read %q: %v", key, err)
	}
	return b, o, true
}

func (w *world) upload(key, ctype string) string {
	w.t.Helper()
	up, err := w.bucket().CreateMultipartUpload(w.t.Context(), key, ctype)
	if err != nil {
		w.t.Fatal(err)
	}
	return up
}

func (w *world) part(key, up string, number int, body []byte) Part {
	w.t.Helper()
	etag, err := w.bucket().UploadPart(w.t.Context(), key, up, number, bytes.NewReader(body), int64(len(body)))
	if err != nil {
		w.t.Fatal(err)
	}
	return Part{number, etag}
}

func (w *world) list(opt ListOptions) Page {
	w.t.Helper()
	p, err := w.bucket().List(w.t.Context(), opt)
	if err != nil {
		w.t.Fatal(err)
	}
	return p
}

func keysOf(p Page) string {
	var keys []string
	for _, o := range p.Objects {
		keys = append(keys, o.Key)
	}
	return strings.Join(keys, " ")
}

// files returns how many files of bodies there are.
func (w *world) files() int {
	w.t.Helper()
	n := 0
	if err := w.s.files.list(func(id, time.Time) error { n++; return nil }); err != nil {
		w.t.Fatal(err)
	}
	return n
}

// wantName fails unless err has the contract's word.
func wantName(t testing.TB, what string, err error, name string) {
	t.Helper()
	if got := fault.NameOf(err); got != name {
		t.Errorf("%s: %v (%s), want %s", what, err, got, name)
	}
}
