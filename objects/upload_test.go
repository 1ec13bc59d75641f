package objects

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2"

	"edged/internal/fault"
)

// objects §3.4: parts of one length, gaps in the numbers, a replaced part, and a short last one become one object, whose bytes are
// those of the parts in order; it appears at completion and not before.
func TestMultipart(t *testing.T) {
	for name, open := range worlds {
		t.Run(name, func(t *testing.T) { testMultipart(t, open(t, nil)) })
	}
}

func testMultipart(t *testing.T, w *world) {
	ctx, b := t.Context(), w.bucket()
	w.put("k", pattern(5))
	up := w.upload("k", "a/b")
	stale := w.part("k", up, 3, filled(MinPartBytes, 9))
	bodies := [][]byte{filled(MinPartBytes, 1), filled(MinPartBytes, 2), filled(100, 3)}
	parts := []Part{w.part("k", up, 3, bodies[0]), w.part("k", up, 7, bodies[1]), w.part("k", up, 10000, bodies[2])}
	w.part("k", up, 5, pattern(50)) // not listed: discarded
	if got, _, _ := w.get("k", GetOptions{}); !bytes.Equal(got, pattern(5)) {
		t.Error("the upload shows before its completion")
	}
	_, err := b.CompleteMultipartUpload(ctx, "k", up, append([]Part{stale}, parts[1:]...))
	wantName(t, "stale etag", err, "invalid_part")
	w.restart() // an upload goes on after a restart
	b = w.bucket()
	info, err := b.CompleteMultipartUpload(ctx, "k", up, parts)
	want := bytes.Join(bodies, nil)
	if err != nil || info.Size != int64(len(want)) || info.ContentType != "a/b" || !strings.HasSuffix(info.ETag, "-3") {
		t.Fatalf("complete: %+v, %v", info, err)
	}
	if got, o, _ := w.get("k", GetOptions{}); !bytes.Equal(got, want) || o.ETag != info.ETag {
		t.Error("the object has other bytes than its parts")
	}
	rng := rand.New(rand.NewPCG(1, 2))
	for range 60 { // ranges inside parts and across them
		r := Range{rng.Int64N(info.Size), 1 + rng.Int64N(info.Size)}
		if rng.IntN(6) > 0 {
			r.Offset = MinPartBytes*int64(rng.IntN(3)) + rng.Int64N(3)
			r.Length = 1 + rng.Int64N(200)
		}
		got, o, _ := w.get("k", GetOptions{Range: &r})
		if !bytes.Equal(got, want[r.Offset:min(r.Offset+r.Length, info.Size)]) || o.Range.Length != int64(len(got)) {
			t.Fatalf("range %+v: %d bytes", r, len(got))
		}
	}
	_, err = b.CompleteMultipartUpload(ctx, "k", up, parts)
	wantName(t, "completed twice", err, "upload_not_found")
	wantName(t, "aborted after completion", b.AbortMultipartUpload(ctx, "k", up), "upload_not_found")
	_, err = b.UploadPart(ctx, "k", up, 1, strings.NewReader(""), 0)
	wantName(t, "a part after completion", err, "upload_not_found")
	w.collect()
	if n := w.files(); n != 3 {
		t.Errorf("%d files, want those of 3 parts", n)
	}
	w.put("k", nil)
	w.collect()
	if st, _ := w.s.Stat(uid); w.files() != 0 || st.Bytes != 1+overheadBytes || st.Uploads != 0 || st.Objects != 1 {
		t.Errorf("%d files, %+v", w.files(), st)
	}
}

// collect lets the grace pass and sweeps.
func (w *world) collect() {
	w.t.Helper()
	w.ms.Add(w.s.opt.Grace.Milliseconds())
	if err := w.s.Sweep(w.t.Context()); err != nil {
		w.t.Fatal(err)
	}
}

// File of a multipart object is there where the rest lies in one part.
func TestFileOfParts(t *testing.T) {
	w := newDiskWorld(t, nil)
	up := w.upload("k", "")
	parts := []Part{w.part("k", up, 1, filled(MinPartBytes, 1)), w.part("k", up, 2, filled(MinPartBytes, 2))}
	if _, err := w.bucket().CompleteMultipartUpload(t.Context(), "k", up, parts); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		r   Range
		off int64
		ok  bool
	}{{Range{5, 10}, 5, true}, {Range{MinPartBytes + 7, 0}, 7, true}, {Range{MinPartBytes - 1, 2}, 0, false}} {
		o, _, err := w.bucket().Get(t.Context(), "k", GetOptions{Range: &tt.r})
		if err != nil {
			t.Fatal(err)
		}
		if _, off, n, ok := o.File(); ok != tt.ok || off != tt.off || ok && n != o.Range.Length {
			t.Errorf("%+v: %d %d %t", tt.r, off, n, ok)
		}
		o.Close()
	}
}

// objects §3.4: what completion refuses, and that a refusal changes nothing.
func TestCompleteRefuses(t *testing.T) {
	w := newWorld(t, nil)
	ctx, b := t.Context(), w.bucket()
	up := w.upload("k", "")
	small, big, bigger := pattern(100), filled(MinPartBytes, 1), filled(MinPartBytes+1, 2)
	s1, b2, b3, g4, s5 := w.part("k", up, 1, small), w.part("k", up, 2, big), w.part("k", up, 3, big), w.part("k", up, 4, bigger), w.part("k", up, 5, small)
	for _, tt := range []struct {
		what  string
		parts []Part
		name  string
	}{
		{"a small part that is not the last", []Part{s1, b2}, "invalid_part"},
		{"unequal parts", []Part{b2, g4, s5}, "invalid_part"},
		{"an unknown part", []Part{b2, {9, s1.ETag}}, "invalid_part"},
		{"a stale etag", []Part{{2, s1.ETag}}, "invalid_part"},
		{"unordered", []Part{b3, b2}, "invalid"},
		{"twice", []Part{b2, b2}, "invalid"},
		{"none", nil, "invalid"},
		{"number 0", []Part{{0, s1.ETag}}, "invalid"},
		{"number 10001", []Part{{10001, s1.ETag}}, "invalid"},
		{"no etag", []Part{{1, ""}}, "invalid"},
	} {
		_, err := b.CompleteMultipartUpload(ctx, "k", up, tt.parts)
		wantName(t, tt.what, err, tt.name)
	}
	_, err := b.CompleteMultipartUpload(ctx, "other", up, []Part{b2})
	wantName(t, "another key", err, "upload_not_found")
	for _, made := range []string{"", "made up", strings.Repeat("0", 32), strings.ToUpper(up)} {
		_, err = b.CompleteMultipartUpload(ctx, "k", made, []Part{b2})
		wantName(t, "upload "+made, err, "upload_not_found")
	}
	if _, ok, _ := b.Head(ctx, "k"); ok {
		t.Error("a refused completion made an object")
	}
	// The last part may be longer than the others.
	if _, err := b.CompleteMultipartUpload(ctx, "k", up, []Part{b2, b3, g4}); err != nil {
		t.Error(err)
	}
	if got, _, _ := w.get("k", GetOptions{}); !bytes.Equal(got, bytes.Join([][]byte{big, big, bigger}, nil)) {
		t.Errorf("the object has %d bytes", len(got))
	}
}

// objects §3.4: more than 5 GiB in all is value_too_large. The parts are records only: nothing here reads their bodies.
func TestCompleteTooLarge(t *testing.T) {
	w := newWorld(t, nil)
	up := w.upload("k", "")
	raw, _ := parseID(up)
	k := w.s.buckets[uid]
	var parts []Part
	for i := range 6 {
		p := &part{blob: newID(1), size: 1 << 30, sum: sum{byte(i)}}
		k.mu.Lock()
		k.usage.bytes += p.weight()
		k.mu.Unlock()
		if err := w.s.db.Set(partKey(k.num, raw, i+1), appendPart(nil, p), pebble.NoSync); err != nil {
			t.Fatal(err)
		}
		parts = append(parts, Part{i + 1, p.sum.String()})
	}
	_, err := w.bucket().CompleteMultipartUpload(t.Context(), "k", up, parts)
	wantName(t, "6 GiB", err, "value_too_large")
	info, err := w.bucket().CompleteMultipartUpload(t.Context(), "k", up, parts[:5])
	if err != nil || info.Size != MaxObjectBytes {
		t.Errorf("5 GiB: %+v, %v", info, err)
	}
}

// objects §3.4, §6.2: bounds of parts.
func TestUploadPartBounds(t *testing.T) {
	w := newWorld(t, nil)
	ctx, b := t.Context(), w.bucket()
	up := w.upload("k", "")
	for _, n := range []int{0, -1, 10001} {
		if _, err := b.UploadPart(ctx, "k", up, n, strings.NewReader(""), 0); fault.CodeOf(err) != fault.Invalid {
			t.Errorf("number %d: %v", n, err)
		}
	}
	body := &zeros{}
	_, err := b.UploadPart(ctx, "k", up, 1, body, MaxObjectBytes+1)
	wantName(t, "over 5 GiB", err, "invalid_body")
	_, err = b.UploadPart(ctx, "other", up, 1, body, 5)
	wantName(t, "another key", err, "upload_not_found")
	if body.read != 0 {
		t.Errorf("%d bytes were consumed", body.read)
	}
	_, err = b.UploadPart(ctx, "k", up, 1, strings.NewReader("short"), 6)
	wantName(t, "short", err, "invalid_body")
	_, err = b.CreateMultipartUpload(ctx, "", "")
	wantName(t, "key", err, "invalid_key")
	// The limits of counting are those of a put, but for the number: it is not worth 5 GiB here.
	in, err := w.s.buckets[uid].ingest(ctx, body, limits{op: "test", length: -1, most: 1000, long: errPartTooLarge, named: true})
	wantName(t, "counted over the limit", err, "invalid_body")
	if in != nil || w.files() != 0 {
		t.Errorf("%d files are left", w.files())
	}
}

// An upload whose last part is empty, and one that has nothing else, are objects.
func TestEmptyParts(t *testing.T) {
	w := newWorld(t, nil)
	up := w.upload("k", "")
	if _, err := w.bucket().CompleteMultipartUpload(t.Context(), "k", up, []Part{w.part("k", up, 1, nil)}); err != nil {
		t.Fatal(err)
	}
	if got, _, ok := w.get("k", GetOptions{}); !ok || len(got) != 0 {
		t.Errorf("%d bytes, %t", len(got), ok)
	}
	up = w.upload("k", "")
	big := filled(MinPartBytes, 1)
	if _, err := w.bucket().CompleteMultipartUpload(t.Context(), "k", up, []Part{w.part("k", up, 1, big), w.part("k", up, 2, nil)}); err != nil {
		t.Fatal(err)
	}
	if got, _, _ := w.get("k", GetOptions{Range: &Range{Offset: MinPartBytes - 3}}); !bytes.Equal(got, big[MinPartBytes-3:]) {
		t.Errorf("%d bytes", len(got))
	}
	if res, err := w.s.Scrub(t.Context(), ScrubOptions{}); err != nil || res.Damaged != 0 || res.Objects != 1 {
		t.Errorf("scrub: %+v, %v", res, err)
	}
}

// objects §3.4: an abandoned upload is discarded after 7 days without a part, one that is used is not; abort frees the parts and
// leaves the key.
func TestAbandonedUploads(t *testing.T) {
	w := newWorld(t, nil)
	ctx, b := t.Context(), w.bucket()
	w.put("k", pattern(3))
	idle, used := w.upload("k", ""), w.upload("k", "")
	w.part("k", idle, 1, pattern(10))
	w.ms.Add((6 * 24 * time.Hour).Milliseconds())
	w.part("k", used, 1, pattern(10))
	w.ms.Add((24 * time.Hour).Milliseconds())
	w.collect()
	ups, err := b.Uploads(ctx, "")
	if err != nil || len(ups) != 1 || ups[0].ID != used || ups[0].Key != "k" {
		t.Fatalf("open uploads: %+v, %v", ups, err)
	}
	if parts, err := b.Parts(ctx, "k", used, 0); err != nil || len(parts) != 1 || parts[0].Number != 1 || parts[0].Size != 10 {
		t.Errorf("parts: %+v, %v", parts, err)
	}
	if parts, err := b.Parts(ctx, "k", used, 1); err != nil || len(parts) != 0 {
		t.Errorf("parts after 1: %+v, %v", parts, err)
	}
	wantName(t, "abort of another key", b.AbortMultipartUpload(ctx, "l", used), "upload_not_found")
	wantName(t, "abort", b.AbortMultipartUpload(ctx, "k", used), "")
	wantName(t, "abort twice", b.AbortMultipartUpload(ctx, "k", used), "upload_not_found")
	w.collect()
	if st, _ := w.s.Stat(uid); w.files() != 0 || st.Uploads != 0 || st.Bytes != 3+1+overheadBytes {
		t.Errorf("%d files, %+v", w.files(), st)
	}
	w.get("k", GetOptions{})
}

// One of many concurrent conditional puts wins; reads meanwhile see whole bodies of one writer.
func TestConcurrentConditionalPuts(t *testing.T) {
	w := newWorld(t, func(o *Options) { o.Grace = 1 })
	ctx, b := t.Context(), w.bucket()
	const writers = 8
	for round := range 5 {
		key := fmt.Sprint(round)
		wins := make(chan int, writers)
		done := make(chan error, writers+2)
		for i := range writers {
			go func() {
				_, err := b.Put(ctx, key, bytes.NewReader(bytes.Repeat([]byte{byte(i)}, inlineBytes+i%2)), PutOptions{Length: -1, IfNoneMatch: true})
				if err == nil {
					wins <- i
				} else if errors.Is(err, ErrPrecondition) {
					err = nil
				}
				done <- err
			}()
		}
		for range 2 {
			go func() { done <- readWhole(w, key) }()
		}
		for range writers + 2 {
			if err := <-done; err != nil {
				t.Error(err)
			}
		}
		if len(wins) != 1 {
			t.Fatalf("%d puts won", len(wins))
		}
		if got, _, _ := w.get(key, GetOptions{}); got[0] != byte(<-wins) {
			t.Error("the object is not the winner's")
		}
	}
	w.collect()
}

// readWhole reads an object many times; its bytes are all of one writer.
func readWhole(w *world, key string) error {
	for range 20 {
		o, ok, err := w.bucket().Get(w.t.Context(), key, GetOptions{})
		if err != nil || !ok {
			if err != nil {
				return err
			}
			continue
		}
		body, err := io.ReadAll(o)
		if err := errors.Join(err, o.Close()); err != nil {
			return err
		}
		if !bytes.Equal(body, bytes.Repeat(body[:1], int(o.Size))) {
			return errors.New("bytes of two writers in one object")
		}
	}
	return nil
}
