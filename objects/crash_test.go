package objects

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"

	"edged/internal/testkit"
)

// belief is what must be found after a crash of now: for each key one of some bodies, "" for none.
type belief struct {
	sure    map[string]string   // the last acknowledged; absent means none
	maybe   map[string][]string // what a call under way may have made of a key
	parts   map[string][]string // etags of acknowledged parts by upload, while it is surely open
	buckets map[string]bool     // whether it exists, while that is sure
}

// history is one store whose disk is looked at before every operation that changes it, as a crash of that moment would leave it.
type history struct {
	t     *testing.T
	rng   *rand.Rand // of the script
	every int        // how many operations lie between two looks

	mu       sync.Mutex
	b        belief
	ops      int
	looks    int
	mem      *vfs.MemFS
	lossRNG  *rand.Rand
	finished bool
}

// fs is the disk; before every change of it a crash is played.
func (h *history) fs() vfs.FS {
	return errorfs.Wrap(h.mem, errorfs.InjectorFunc(func(op errorfs.Op) error {
		if op.Kind.ReadOrWrite() != errorfs.OpIsWrite {
			return nil
		}
		h.mu.Lock()
		defer h.mu.Unlock()
		if h.ops++; h.ops%h.every == 0 && !h.finished && !h.t.Failed() {
			h.lookLocked(fmt.Sprintf("before operation %d (%v %s)", h.ops, op.Kind, op.Path))
		}
		return nil
	}))
}

// lookLocked opens what a crash leaves and holds it against the belief.
func (h *history) lookLocked(when string) {
	h.looks++
	cfg := vfs.CrashCloneCfg{UnsyncedDataPercent: []int{0, 0, 50}[h.lossRNG.IntN(3)], RNG: h.lossRNG}
	s, err := Open(Options{Dir: "objects", FS: h.mem.CrashClone(cfg), OrphanAge: 1, Grace: 1, clock: later})
	if err != nil {
		h.t.Errorf("%s: %v", when, err)
		return
	}
	defer s.Close()
	if err := h.b.check(h.t.Context(), s); err != nil {
		h.t.Errorf("%s, %d%% of unsynced data kept: %v", when, cfg.UnsyncedDataPercent, err)
	}
}

// later is a clock by which everything on disk is old.
func later() int64 { return time.Now().Add(time.Hour).UnixMilli() }

// check holds a store that was opened after a crash against what is believed, then lets it sweep and holds it again.
func (b *belief) check(ctx context.Context, s *Store) error {
	for range 2 {
		if err := audit(s); err != nil {
			return err
		}
		for uid, exists := range b.buckets {
			if s.Exists(uid) != exists {
				return fmt.Errorf("bucket %s exists %t, want %t", uid, !exists, exists)
			}
		}
		keys := slices.Sorted(maps.Keys(b.sure))
		keys = append(keys, slices.Collect(maps.Keys(b.maybe))...)
		for _, key := range keys {
			got, err := bodyOf(ctx, s, key)
			if err != nil {
				return err
			}
			if got != b.sure[key] && !slices.Contains(b.maybe[key], got) {
				return fmt.Errorf("%s has %d bytes %.20q, want %d %.20q or one of %d", key, len(got), got, len(b.sure[key]), b.sure[key], len(b.maybe[key]))
			}
		}
		for up, etags := range b.parts {
			parts, err := s.Bucket(uid).Parts(ctx, "upload", up, 0)
			if err != nil || len(parts) < len(etags) {
				return fmt.Errorf("upload %s has parts %v, %w", up, parts, err)
			}
		}
		if err := s.Sweep(ctx); err != nil {
			return err
		}
	}
	if err := noOrphans(s); err != nil {
		return err
	}
	if res, err := s.Scrub(ctx, ScrubOptions{}); err != nil || res.Damaged > 0 {
		return fmt.Errorf("scrub: %+v, %w", res, err)
	}
	return nil
}

func bodyOf(ctx context.Context, s *Store, key string) (string, error) {
	o, ok, err := s.Bucket(uid).Get(ctx, key, GetOptions{})
	if err != nil || !ok {
		return "", err
	}
	b, err := io.ReadAll(o)
	return string(b), errors.Join(err, o.Close())
}

// try notes what a call may make of a key, makes the call, and notes that it did.
func (h *history) try(key, body string, call func() error) {
	h.mu.Lock()
	h.b.maybe[key] = append(h.b.maybe[key], body)
	h.mu.Unlock()
	err := call()
	h.mu.Lock()
	defer h.mu.Unlock()
	if err != nil {
		h.t.Errorf("%s: %v", key, err)
	}
	h.b.sure[key] = body
	delete(h.b.maybe, key)
}

// body is a body of its own, small or large.
func (h *history) body(i int) string {
	n := 1 + h.rng.IntN(50)
	if h.rng.IntN(2) == 0 {
		n = inlineBytes + 1 + h.rng.IntN(100)
	}
	return strings.Repeat(fmt.Sprintf("%08d", i), n/8+1)[:n]
}

// step does one thing; a sweep runs beside it now and then.
func (h *history) step(ctx context.Context, s *Store, i int) {
	var side sync.WaitGroup
	if h.rng.IntN(2) == 0 {
		side.Go(func() {
			if err := s.Sweep(ctx); err != nil {
				h.t.Errorf("sweep: %v", err)
			}
		})
	}
	b := s.Bucket(uid)
	key := fmt.Sprintf("k%d", h.rng.IntN(4))
	switch h.rng.IntN(6) {
	case 0, 1, 2:
		body := h.body(i)
		h.try(key, body, func() error {
			_, err := b.Put(ctx, key, strings.NewReader(body), PutOptions{Length: -1})
			return err
		})
	case 3:
		h.try(key, "", func() error { return b.Delete(ctx, key) })
	case 4:
		h.multipart(ctx, b, i)
	case 5:
		h.bucketLife(ctx, s)
	}
	side.Wait()
}

// multipart uploads two parts, one of them twice, and completes or aborts.
func (h *history) multipart(ctx context.Context, b *Bucket, i int) {
	const key = "upload"
	up, err := b.CreateMultipartUpload(ctx, key, "")
	if err != nil {
		h.t.Fatal(err)
	}
	var parts []Part
	body := fmt.Sprintf("part %d", i)
	for _, n := range []int{1, 2, 2} {
		etag, err := b.UploadPart(ctx, key, up, n, strings.NewReader(body), -1)
		if err != nil {
			h.t.Fatal(err)
		}
		parts = append(parts, Part{n, etag})
		h.mu.Lock()
		h.b.parts[up] = append(h.b.parts[up], etag)[:min(n, 2)]
		h.mu.Unlock()
	}
	h.mu.Lock()
	delete(h.b.parts, up)
	h.mu.Unlock()
	if h.rng.IntN(3) == 0 {
		if err := b.AbortMultipartUpload(ctx, key, up); err != nil {
			h.t.Error(err)
		}
		return
	}
	h.try(key, body, func() error {
		_, err := b.CompleteMultipartUpload(ctx, key, up, parts[2:])
		return err
	})
}

// bucketLife makes another bucket with contents and deletes it.
func (h *history) bucketLife(ctx context.Context, s *Store) {
	believe := func(sure, exists bool) {
		h.mu.Lock()
		defer h.mu.Unlock()
		delete(h.b.buckets, otherUID)
		if sure {
			h.b.buckets[otherUID] = exists
		}
	}
	believe(false, false)
	if err := s.Create(ctx, otherUID, 1); err != nil {
		h.t.Error(err)
	}
	believe(true, true)
	for _, n := range []int{5, inlineBytes + 1} {
		if _, err := s.Bucket(otherUID).Put(ctx, fmt.Sprint(n), bytes.NewReader(pattern(n)), PutOptions{Length: int64(n)}); err != nil {
			h.t.Error(err)
		}
	}
	believe(false, false)
	if err := s.Delete(ctx, otherUID); err != nil {
		h.t.Error(err)
	}
	believe(true, false)
}

// A crash at any operation of the disk, with what was not synced lost or half lost, leaves every acknowledged object whole, every
// other one as it was or as it was to be, nothing half visible, nothing that metadata names missing, and nothing that is
// not collected.
func TestCrashAtEveryOperation(t *testing.T) {
	rng := testkit.Rand(t)
	h := &history{t: t, rng: rand.New(rand.NewPCG(rng.Uint64(), 1)), lossRNG: rand.New(rand.NewPCG(rng.Uint64(), 2)), every: 1, mem: vfs.NewCrashableMem(),
		b: belief{map[string]string{}, map[string][]string{}, map[string][]string{}, map[string]bool{}}}
	steps := 60
	if testing.Short() || raceEnabled {
		h.every, steps = 7, 40
	}
	h.mu.Lock()
	h.finished = true // until there is a store
	h.mu.Unlock()
	s, err := Open(Options{Dir: "objects", FS: h.fs(), Grace: 1})
	if err != nil {
		t.Fatal(err)
	}
	ctx := t.Context()
	if err := s.Create(ctx, uid, 1); err != nil {
		t.Fatal(err)
	}
	h.mu.Lock()
	h.finished = false
	h.b.buckets[uid] = true
	h.mu.Unlock()
	for i := range steps {
		h.step(ctx, s, i)
	}
	h.mu.Lock()
	h.lookLocked("at the end")
	h.finished = true
	h.mu.Unlock()
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	t.Logf("%d operations, %d crashes", h.ops, h.looks)
	if h.looks < steps {
		t.Errorf("only %d crashes were played", h.looks)
	}
}
