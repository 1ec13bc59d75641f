package objects

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"testing"
	"testing/iotest"

	"edged/internal/disk"
	"edged/internal/fault"
)

// objects §5: the deterministic traces.
func TestTraces(t *testing.T) {
	w := newWorld(t, nil)
	ctx, b := t.Context(), w.bucket()

	w.put("eight", pattern(8))
	if info, ok, err := b.Head(ctx, "eight"); err != nil || !ok || info.Size != 8 {
		t.Errorf("head of 8 bytes: %+v, %t, %v", info, ok, err)
	}

	w.put("k", pattern(1024))
	got, o, _ := w.get("k", GetOptions{Range: &Range{512, 256}})
	if !o.Partial || o.Range != (Range{512, 256}) || o.Size != 1024 || !bytes.Equal(got, pattern(1024)[512:768]) {
		t.Errorf("range 512/256: partial %t, range %v, size %d, %d bytes", o.Partial, o.Range, o.Size, len(got))
	}

	w.put("four", pattern(4))
	_, _, err := b.Get(ctx, "four", GetOptions{Range: &Range{Offset: 64}})
	wantName(t, "offset 64 of 4", err, "range_not_satisfiable")

	_, err = b.Put(ctx, "four", bytes.NewReader(nil), PutOptions{IfNoneMatch: true})
	wantName(t, "put over an object", err, "precondition_failed")

	if err := b.Delete(ctx, "four"); err != nil {
		t.Error(err)
	}
	if _, ok, err := b.Head(ctx, "four"); ok || err != nil {
		t.Errorf("head after delete: %t, %v", ok, err)
	}

	w.put("p/1", nil)
	w.put("p/2", nil)
	if p := w.list(ListOptions{Prefix: "p/", Limit: 1}); !p.Truncated || p.Cursor == "" || keysOf(p) != "p/1" {
		t.Errorf("limit 1: %+v", p)
	}
	if p := w.list(ListOptions{Prefix: "p/"}); p.Truncated || p.Cursor != "" || keysOf(p) != "p/1 p/2" {
		t.Errorf("no limit: %+v", p)
	}
}

// sizes around everything that changes how a body is stored, read or checked.
var sizes = []int{0, 1, 4096, inlineBytes - 1, inlineBytes, inlineBytes + 1, scratchBytes - 1, scratchBytes, scratchBytes + 1,
	blockBytes - 1, blockBytes, blockBytes + 1, 3*blockBytes + 17}

// objects §§2, 3, 6: what was put is what is read, with a declared and a counted length, through Read and WriteTo, and after a
// restart; the etag is one of the bytes.
func TestPutGet(t *testing.T) {
	for name, open := range worlds {
		t.Run(name, func(t *testing.T) { testPutGet(t, open(t, nil)) })
	}
}

// worlds are both implementations of the door to files.
var worlds = map[string]func(testing.TB, func(*Options)) *world{"memory": newWorld, "disk": newDiskWorld}

func testPutGet(t *testing.T, w *world) {
	etags := map[string]int{}
	for i, n := range sizes {
		body := filled(n, byte(i))
		key := strings.Repeat("k", i+1)
		for _, length := range []int64{int64(n), -1} {
			info, err := w.bucket().Put(t.Context(), key, iotest.HalfReader(bytes.NewReader(body)), PutOptions{Length: length, ContentType: "a/b"})
			if err != nil || info.Size != int64(n) || info.ContentType != "a/b" {
				t.Fatalf("put %d: %+v, %v", n, info, err)
			}
			if other, dup := etags[info.ETag]; dup && other != n {
				t.Errorf("%d and %d bytes have one etag", n, other)
			}
			etags[info.ETag] = n
		}
	}
	if len(etags) != len(sizes) {
		t.Errorf("%d etags of %d bodies: equal bytes have equal etags", len(etags), len(sizes))
	}
	w.restart()
	for i, n := range sizes {
		key := strings.Repeat("k", i+1)
		got, o, ok := w.get(key, GetOptions{})
		if !ok || !bytes.Equal(got, filled(n, byte(i))) || o.Partial || etags[o.ETag] != n || o.ContentType != "a/b" {
			t.Errorf("%d bytes: read %d", n, len(got))
		}
		var buf bytes.Buffer
		o, _, err := w.bucket().Get(t.Context(), key, GetOptions{Range: &Range{0, MaxObjectBytes}})
		if n == 0 {
			wantName(t, "range of an empty object", err, "range_not_satisfiable")
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		if m, err := o.WriteTo(&buf); err != nil || m != int64(n) || !bytes.Equal(buf.Bytes(), filled(n, byte(i))) {
			t.Errorf("WriteTo of %d bytes: %d, %v", n, m, err)
		}
		o.Close()
	}
}

// objects §3.1, §6: a body that is not as long as declared, or that fails, is invalid_body and leaves what was there.
func TestWrongBodiesStoreNothing(t *testing.T) {
	w := newWorld(t, nil)
	ctx, b := t.Context(), w.bucket()
	before := w.put("k", pattern(3))
	for _, n := range []int{0, 10, inlineBytes + 1, 2 * blockBytes} {
		body := pattern(n)
		for _, tt := range []struct {
			what   string
			r      io.Reader
			length int64
		}{
			{"too short", bytes.NewReader(body), int64(n) + 1},
			{"too long", bytes.NewReader(append(body, 0)), int64(n)},
			{"fails", io.MultiReader(bytes.NewReader(body), iotest.ErrReader(errors.New("gone"))), -1},
			{"is cut off", io.MultiReader(bytes.NewReader(body), iotest.ErrReader(fmt.Errorf("connection: %w", io.EOF))), -1},
			{"fails at its declared end", io.MultiReader(bytes.NewReader(body), iotest.ErrReader(io.ErrUnexpectedEOF)), int64(n)},
		} {
			_, err := b.Put(ctx, "k", tt.r, PutOptions{Length: tt.length})
			wantName(t, tt.what, err, "invalid_body")
		}
	}
	if info, _, _ := b.Head(ctx, "k"); info != before {
		t.Errorf("the object is %+v, was %+v", info, before)
	}
	if n := w.files(); n != 0 {
		t.Errorf("%d files are left", n)
	}
	if st, err := w.s.Stat(uid); err != nil || st.Bytes != 3+1+overheadBytes {
		t.Errorf("usage %+v, %v", st, err)
	}
	if p := w.s.buckets[uid].pending.Load(); p != 0 {
		t.Errorf("%d bytes are still on their way", p)
	}
}

// zeros is a body of any length that costs nothing.
type zeros struct{ read int64 }

func (z *zeros) Read(p []byte) (int, error) {
	clear(p)
	z.read += int64(len(p))
	return len(p), nil
}

// objects §3.1, §6.2: over 300 MiB is value_too_large: before consuming if declared, by counting if not.
func TestPutLimit(t *testing.T) {
	w := newDiskWorld(t, nil)
	body := &zeros{}
	_, err := w.bucket().Put(t.Context(), "k", body, PutOptions{Length: MaxPutBytes + 1})
	wantName(t, "declared", err, "value_too_large")
	if body.read != 0 {
		t.Errorf("%d bytes were consumed", body.read)
	}
	if testing.Short() {
		return
	}
	_, err = w.bucket().Put(t.Context(), "k", body, PutOptions{Length: -1})
	wantName(t, "counted", err, "value_too_large")
	if body.read > MaxPutBytes+scratchBytes {
		t.Errorf("%d bytes were consumed", body.read)
	}
	if n := w.files(); n != 0 {
		t.Errorf("%d files are left", n)
	}
}

// objects §3.2: conditions of put and get.
func TestConditions(t *testing.T) {
	w := newWorld(t, nil)
	ctx, b := t.Context(), w.bucket()
	body := func() io.Reader { return bytes.NewReader(pattern(10)) }
	_, err := b.Put(ctx, "k", body(), PutOptions{Length: -1, IfMatch: "x"})
	wantName(t, "ifMatch on an absent key", err, "precondition_failed")
	first, err := b.Put(ctx, "k", body(), PutOptions{Length: -1, IfNoneMatch: true})
	wantName(t, "ifNoneMatch on an absent key", err, "")
	_, err = b.Put(ctx, "k", body(), PutOptions{Length: -1, IfMatch: "stale"})
	wantName(t, "stale ifMatch", err, "precondition_failed")
	unread := &zeros{}
	_, err = b.Put(ctx, "k", unread, PutOptions{Length: 10 << 20, IfNoneMatch: true})
	wantName(t, "ifNoneMatch on an object", err, "precondition_failed")
	if unread.read != 0 {
		t.Errorf("%d bytes were read of a body that could not be stored", unread.read)
	}
	_, err = b.Put(ctx, "k", body(), PutOptions{Length: -1, IfMatch: first.ETag})
	wantName(t, "ifMatch", err, "")

	_, _, err = b.Get(ctx, "k", GetOptions{IfMatch: "stale", Range: &Range{Offset: 99}})
	wantName(t, "the condition comes before the range", err, "precondition_failed")
	_, _, err = b.Get(ctx, "k", GetOptions{IfNoneMatch: first.ETag})
	wantName(t, "ifNoneMatch with its etag", err, "precondition_failed")
	w.get("k", GetOptions{IfNoneMatch: "another"})
	w.get("k", GetOptions{IfMatch: first.ETag})
	if _, ok, err := b.Get(ctx, "absent", GetOptions{IfMatch: "x", Range: &Range{Offset: 99}}); ok || err != nil {
		t.Errorf("an absent key: %t, %v, want nothing", ok, err)
	}
}

// objects §6.5: the condition decides at the end of the body, whatever it said at the start.
func TestConditionDecidesAtCommit(t *testing.T) {
	for _, n := range []int{10, inlineBytes + 1} {
		w := newWorld(t, nil)
		meanwhile := readerFunc(func([]byte) (int, error) {
			w.put("k", []byte("other"))
			return 0, io.EOF
		})
		_, err := w.bucket().Put(t.Context(), "k", io.MultiReader(bytes.NewReader(pattern(n)), meanwhile), PutOptions{Length: -1, IfNoneMatch: true})
		wantName(t, "ifNoneMatch lost while the body came", err, "precondition_failed")
		if got, _, _ := w.get("k", GetOptions{}); string(got) != "other" {
			t.Errorf("the object is %.10q", got)
		}
		if n := w.files(); n != 0 {
			t.Errorf("%d files are left", n)
		}
	}
}

type readerFunc func([]byte) (int, error)

func (f readerFunc) Read(p []byte) (int, error) { return f(p) }

// objects §§3, 4: keys are 1 to 979 bytes of UTF-8; other bounds are refused as invalid.
func TestBounds(t *testing.T) {
	w := newWorld(t, nil)
	ctx, b := t.Context(), w.bucket()
	for _, key := range []string{"", strings.Repeat("k", 980), "\xff", strings.Repeat("é", 490)} {
		_, _, err := b.Head(ctx, key)
		wantName(t, "head", err, "invalid_key")
		_, _, err = b.Get(ctx, key, GetOptions{})
		wantName(t, "get", err, "invalid_key")
		_, err = b.Put(ctx, key, strings.NewReader(""), PutOptions{})
		wantName(t, "put", err, "invalid_key")
		wantName(t, "delete", b.Delete(ctx, key), "invalid_key")
	}
	w.put(strings.Repeat("é", 489)+"x", nil)
	_, err := b.Put(ctx, "k", strings.NewReader(""), PutOptions{ContentType: strings.Repeat("é", 257)})
	wantName(t, "content type", err, "invalid")
	_, err = b.Put(ctx, "k", strings.NewReader(""), PutOptions{ContentType: strings.Repeat("é", 256)})
	wantName(t, "content type", err, "")
	_, err = b.Put(ctx, "k", strings.NewReader(""), PutOptions{IfMatch: "x", IfNoneMatch: true})
	wantName(t, "two conditions", err, "invalid")
	for _, opt := range []ListOptions{{Limit: 1001}, {Limit: -1}, {Prefix: strings.Repeat("p", 980)}, {Delimiter: strings.Repeat("é", 17)},
		{After: strings.Repeat("a", 980)}, {After: "\xff"}, {After: "a", Cursor: "c"}} {
		_, err = b.List(ctx, opt)
		wantName(t, "list", err, "invalid")
	}
	for _, r := range []Range{{-1, 0}, {0, -1}, {MaxObjectBytes + 1, 0}, {0, MaxObjectBytes + 1}} {
		_, _, err = b.Get(ctx, "k", GetOptions{Range: &r})
		wantName(t, "range", err, "invalid")
	}
}

// objects §3.2: one get serves one generation, although the key is overwritten, deleted and its file removed.
func TestOneGeneration(t *testing.T) {
	for i, n := range []int{100, 3*blockBytes + 5, 3*blockBytes + 5} {
		w := newDiskWorld(t, nil)
		ctx, b := t.Context(), w.bucket()
		w.put("k", filled(n, 1))
		o, _, err := b.Get(ctx, "k", GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		head := make([]byte, []int{10, 10, 0}[i]) // the last has not opened its file when that goes out of use
		if _, err := io.ReadFull(o, head); err != nil {
			t.Fatal(err)
		}
		w.put("k", filled(n+5, 2))
		if err := b.Delete(ctx, "k"); err != nil {
			t.Fatal(err)
		}
		w.ms.Add(w.s.opt.Grace.Milliseconds())
		if err := w.s.Sweep(ctx); err != nil {
			t.Fatal(err)
		}
		rest, err := io.ReadAll(o)
		if err != nil || !bytes.Equal(append(head, rest...), filled(n, 1)) {
			t.Errorf("the rest has %d bytes, %v", len(rest), err)
		}
		if err := errors.Join(o.Close(), w.s.Sweep(ctx)); err != nil {
			t.Fatal(err)
		}
		if n := w.files(); n != 0 {
			t.Errorf("%d files are left after the last reader", n)
		}
	}
}

// File hands out the operating system's file with what is left of the range.
func TestFile(t *testing.T) {
	w := newDiskWorld(t, nil)
	body := filled(2*blockBytes, 3)
	w.put("k", body)
	w.put("small", body[:10])
	o, _, err := w.bucket().Get(t.Context(), "k", GetOptions{Range: &Range{5, 1000}})
	if err != nil {
		t.Fatal(err)
	}
	defer o.Close()
	if _, err := io.ReadFull(o, make([]byte, 100)); err != nil {
		t.Fatal(err)
	}
	f, off, n, ok := o.File()
	if !ok {
		t.Skip("no files of the operating system here")
	}
	got := make([]byte, n)
	if _, err := f.ReadAt(got, off); err != nil || !bytes.Equal(got, body[105:1005]) {
		t.Errorf("%d bytes from %d: %v", n, off, err)
	}
	small, _, _ := w.bucket().Get(t.Context(), "small", GetOptions{})
	if _, _, _, ok := small.File(); ok {
		t.Error("a small body has no file")
	}
	small.Close()
}

// objects §1: create is idempotent and makes an empty bucket, delete takes all objects, buckets know nothing of each other.
func TestBucketLife(t *testing.T) {
	w := newWorld(t, func(o *Options) { o.Grace = 1 })
	ctx := t.Context()
	w.put("small", pattern(5))
	w.put("large", pattern(inlineBytes+1))
	w.part("u", w.upload("u", ""), 1, pattern(100))
	if err := w.s.Create(ctx, uid, 1); err != nil {
		t.Fatal(err)
	}
	if _, _, ok := w.get("small", GetOptions{}); !ok {
		t.Error("create emptied a bucket")
	}
	if p, err := w.s.Bucket(otherUID).List(ctx, ListOptions{}); err != nil || len(p.Objects) != 0 {
		t.Errorf("the other bucket lists %v, %v", p, err)
	}
	if err := errors.Join(w.s.Create(ctx, uid, 3), w.s.Create(ctx, uid, 3)); err != nil {
		t.Fatal(err)
	}
	if err := w.s.Create(ctx, uid, 2); fault.CodeOf(err) != fault.Conflict {
		t.Errorf("an older epoch: %v", err)
	}
	if err := errors.Join(w.s.Delete(ctx, uid), w.s.Delete(ctx, uid), w.s.Delete(ctx, "never")); err != nil {
		t.Fatal(err)
	}
	_, _, err := w.bucket().Head(ctx, "small")
	wantName(t, "head in a deleted bucket", err, "backend_unavailable")
	w.restart() // the deletion goes on after a restart
	if w.s.Exists(uid) || !w.s.Exists(otherUID) {
		t.Error("the wrong bucket exists")
	}
	if err := w.s.Create(ctx, uid, 1); err != nil {
		t.Fatal(err)
	}
	if p := w.list(ListOptions{}); len(p.Objects) != 0 {
		t.Errorf("a new bucket of an old name holds %v", p.Objects)
	}
	w.ms.Add(1000)
	if err := errors.Join(w.s.Sweep(ctx), w.s.Sweep(ctx)); err != nil {
		t.Fatal(err)
	}
	if n := w.files(); n != 0 || len(w.s.dying) != 0 {
		t.Errorf("%d files, %d dying buckets are left", n, len(w.s.dying))
	}
	for _, class := range []byte{headClass, inlineClass, uploadClass, partClass, blobClass, garbageClass, dyingClass} {
		_ = w.s.scan([]byte{class}, []byte{class + 1}, func(k, _ []byte) error {
			t.Errorf("left behind: %q", k)
			return nil
		})
	}
}

// A put whose bucket is deleted while the body comes stores nothing.
func TestDeleteBucketDuringPut(t *testing.T) {
	w := newWorld(t, nil)
	meanwhile := readerFunc(func([]byte) (int, error) {
		if err := w.s.Delete(t.Context(), uid); err != nil {
			return 0, err
		}
		return 0, io.EOF
	})
	_, err := w.bucket().Put(t.Context(), "k", io.MultiReader(bytes.NewReader(pattern(inlineBytes+1)), meanwhile), PutOptions{Length: -1})
	wantName(t, "put", err, "backend_unavailable")
	if n := w.files(); n != 0 {
		t.Errorf("%d files are left", n)
	}
}

// Bytes over the quota are refused, declared ones before they are read; deleting makes room.
func TestQuota(t *testing.T) {
	const quota = 1 << 20
	w := newWorld(t, func(o *Options) { o.QuotaBytes = quota })
	ctx, b := t.Context(), w.bucket()
	w.put("k", pattern(600<<10))
	body := &zeros{}
	_, err := b.Put(ctx, "l", body, PutOptions{Length: 500 << 10})
	wantName(t, "declared", err, "backend_unavailable")
	if body.read != 0 || !strings.Contains(fault.Detail(err), "quota") {
		t.Errorf("%d bytes were read; %v", body.read, err)
	}
	_, err = b.Put(ctx, "l", body, PutOptions{Length: -1})
	wantName(t, "counted", err, "backend_unavailable")
	if body.read > quota {
		t.Errorf("%d bytes were read", body.read)
	}
	if err := b.Delete(ctx, "k"); err != nil {
		t.Fatal(err)
	}
	w.put("l", pattern(600<<10))
	w.put("l", pattern(300<<10)) // smaller is fine whatever
	w.restart()
	if st, _ := w.s.Stat(uid); st.Bytes != 300<<10+1+overheadBytes || st.Objects != 1 {
		t.Errorf("after a restart: %+v", st)
	}
}

// While the disk is nearly full, what grows is refused; reads and deletes go on.
func TestFullDisk(t *testing.T) {
	w := newWorld(t, nil)
	w.put("k", pattern(5))
	w.s.opt.Space = disk.NewSpace(disk.SpaceOptions{Reserve: 100, Free: func(string) (uint64, error) { return 1, nil }})
	ctx, b := t.Context(), w.bucket()
	_, err := b.Put(ctx, "k", strings.NewReader("x"), PutOptions{Length: 1})
	wantName(t, "put", err, "backend_unavailable")
	_, err = b.CreateMultipartUpload(ctx, "k", "")
	wantName(t, "create upload", err, "backend_unavailable")
	w.get("k", GetOptions{})
	wantName(t, "delete", b.Delete(ctx, "k"), "")
}

// A caller that gave up is told so, and nothing is stored.
func TestCanceled(t *testing.T) {
	w := newWorld(t, nil)
	ctx, cancel := context.WithCancel(t.Context())
	gone := readerFunc(func([]byte) (int, error) { cancel(); return 0, os.ErrClosed })
	_, err := w.bucket().Put(ctx, "k", gone, PutOptions{Length: -1})
	wantName(t, "put", err, "canceled")
	if _, _, ok := w.get("k", GetOptions{}); ok {
		t.Error("something was stored")
	}
}
