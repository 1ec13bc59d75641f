package kv

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"edged/internal/testkit"
	"edged/kv/replica"
)

// A crash at any instant loses no acknowledged write, leaves nothing half there, and never uses a sequence number twice:
// writers run, the disk stops somewhere, what was synced (and perhaps some more) is opened again.
func TestCrash(t *testing.T) {
	rng := testkit.Rand(t)
	for round := range 25 {
		seed := rng.Uint64()
		t.Run(fmt.Sprint(round), func(t *testing.T) { crashOnce(t, rand.New(rand.NewPCG(seed, 0))) })
	}
}

const crashWriters = 6

func crashOnce(t *testing.T, rng *rand.Rand) {
	r := newRig(t, nil)
	n := r.space(t, "u")
	var acked, begun [crashWriters]atomic.Int64 // the last write of each writer that was acknowledged, begun
	ctx, stop := context.WithCancel(t.Context())
	var writers sync.WaitGroup
	for w := range crashWriters {
		writers.Go(func() {
			for i := int64(1); ctx.Err() == nil; i++ {
				begun[w].Store(i)
				if err := crashWrite(n, w, i); err != nil {
					t.Error(err)
					return
				}
				acked[w].Store(i)
			}
		})
	}
	var at [crashWriters]int64
	until := int64(20 + rng.IntN(60))
	eventually(t, func() bool { return acked[rng.IntN(crashWriters)].Load() >= until })
	for w := range at {
		at[w] = acked[w].Load()
	}
	after := r.fs.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: []int{0, 50}[rng.IntN(2)], RNG: rng})
	stop()
	writers.Wait()
	head, seq := r.ledger.head, r.ledger.seq
	r.Close()
	r.fs = after
	r.open(t, nil)
	if r.ledger.head > head || r.ledger.seq > seq {
		t.Errorf("head %d, seq %d after the crash; %d, %d before", r.ledger.head, r.ledger.seq, head, seq)
	}
	for w := range at {
		crashCheck(t, r.Namespace("u"), w, at[w], begun[w].Load())
	}
	checkUsage(t, r)
	checkIndexes(t, r)
}

// crashWrite makes write i of a writer: small and large values, deletes of the key before.
func crashWrite(n *Namespace, w int, i int64) error {
	ctx := context.Background()
	switch i % 5 {
	case 3:
		return n.Delete(ctx, fmt.Sprintf("%d/%d", w, i-1))
	case 4:
		if w == 0 {
			return n.Put(ctx, fmt.Sprintf("%d/%d", w, i), []byte(strings.Repeat(fmt.Sprint(i%10), 140_000)), PutOptions{})
		}
	}
	return n.Put(ctx, fmt.Sprintf("%d/%d", w, i), fmt.Append(nil, i), PutOptions{})
}

// crashCheck compares with what a writer did up to acked; what it did from there to begun may be there or not.
func crashCheck(t *testing.T, n *Namespace, w int, acked, begun int64) {
	t.Helper()
	for i := int64(1); i <= begun; i++ {
		if i%5 == 3 {
			continue
		}
		got := show(t, n, fmt.Sprintf("%d/%d", w, i))
		want := fmt.Sprint(i)
		if i%5 == 4 && w == 0 {
			want = strings.Repeat(fmt.Sprint(i%10), 140_000)
		}
		mayBeGone := i > acked || i%5 == 2 && i+1 <= begun && i+1 > acked
		gone := i%5 == 2 && i+1 <= acked
		switch {
		case gone && got != "-":
			t.Errorf("writer %d: deleted %d holds %q", w, i, got)
		case !gone && got != want && !(mayBeGone && got == "-"):
			t.Errorf("writer %d: %d of %d acknowledged holds %.40q", w, i, acked, got)
		}
	}
}

// checkIndexes compares the indexes with the records: each record has its entries, and nothing else has.
func checkIndexes(t testing.TB, r *rig) {
	t.Helper()
	want := map[string]bool{}
	err := r.ledger.eachRecord(r.db, func(uid, key string, rec replica.Record) error {
		place := appendPlace(nil, uid, key)
		want[string(numKey(nil, prefixChange, rec.LSeq))] = true
		want[string(prefixed(nil, prefixRecord, place))] = true
		switch {
		case rec.Dead():
			want[string(timeKey(nil, prefixDead, rec.DeadSince(), rec.LSeq))] = true
		case rec.Flags&replica.Expires != 0:
			want[string(timeKey(nil, prefixExpiry, rec.Expires, rec.LSeq))] = true
		}
		if rec.Flags&replica.Blob != 0 {
			want[string(append(prefixed(nil, prefixBlob, rec.Digest[:]), place...))] = true
			if !r.blobs.has(rec.Digest, rec.Size) {
				t.Errorf("%s/%s: no value file", uid, key)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, k := range r.keys(t) {
		if !want[k] {
			t.Errorf("entry %q leads nowhere", k)
		}
		delete(want, k)
	}
	for k := range want {
		t.Errorf("entry %q is missing", k)
	}
}
