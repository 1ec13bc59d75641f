package kv

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"edged/internal/testkit"
	"edged/kv/replica"
)

// model is what a namespace must look like.
type model map[string]modelItem

type modelItem struct {
	shown   string
	expires int64 // 0 means never
}

func (m model) live(now int64) (keys []string) {
	for k, it := range m {
		if it.expires == 0 || now < it.expires {
			keys = append(keys, k)
		}
	}
	slices.Sort(keys)
	return keys
}

// listAll reads all pages.
func listAll(t testing.TB, n *Namespace, prefix string, limit int) (keys []string) {
	t.Helper()
	opt := ListOptions{Prefix: prefix, Limit: limit}
	for {
		page, err := n.List(context.Background(), opt)
		if err != nil {
			t.Fatal(err)
		}
		keys = append(keys, page.Keys...)
		if page.Complete {
			return keys
		}
		opt.Cursor = page.Cursor
	}
}

// The same random operations on the store and on maps must agree, across restarts, sweeps and the passing of time.
func TestStoreModel(t *testing.T) {
	rng := testkit.Rand(t)
	grace := func(o *Options) { o.Grace, o.BlobGrace = time.Minute, time.Second }
	r := newRig(t, grace)
	want := map[string]model{"u1": {}, "u2": {}}
	for uid := range want {
		r.space(t, uid)
	}
	for step := range 4000 {
		uid := []string{"u1", "u2"}[rng.IntN(2)]
		n, m := r.Namespace(uid), want[uid]
		key := fmt.Sprintf("%c%d", 'a'+rune(rng.IntN(3)), rng.IntN(20))
		switch p := rng.IntN(100); {
		case p < 45:
			m[key] = modelPut(t, rng, n, key, r.now)
		case p < 60:
			if err := n.Delete(t.Context(), key); err != nil {
				t.Fatal(err)
			}
			delete(m, key)
		case p < 75:
			prefix := []string{"", "a", "b1", "zz"}[rng.IntN(4)]
			keys := slices.DeleteFunc(m.live(r.now), func(k string) bool { return !strings.HasPrefix(k, prefix) })
			if got := listAll(t, n, prefix, 1+rng.IntN(9)); !slices.Equal(got, keys) {
				t.Fatalf("step %d: list %q: %q, want %q", step, prefix, got, keys)
			}
		case p < 92:
			shown := "-"
			if slices.Contains(m.live(r.now), key) {
				shown = m[key].shown
			}
			if got := show(t, n, key); got != shown {
				t.Fatalf("step %d: %s holds %.60q, want %.60q", step, key, got, shown)
			}
		case p < 95:
			r.now += rng.Int64N(90_000)
		case p < 98:
			r.runSweepOnce(t)
		default:
			r.reopen(t, grace)
		}
		r.now += rng.Int64N(3)
	}
	checkUsage(t, r)
}

func modelPut(t testing.TB, rng *rand.Rand, n *Namespace, key string, now int64) modelItem {
	t.Helper()
	it := modelItem{shown: fmt.Sprint(rng.Uint64())}
	if rng.IntN(20) == 0 {
		it.shown = strings.Repeat(it.shown[:1], 131_000+rng.IntN(200))
	}
	value, opt := it.shown, PutOptions{}
	if rng.IntN(4) == 0 {
		opt.Metadata = map[string]string{"m": fmt.Sprint(rng.IntN(100))}
		it.shown += fmt.Sprintf(`{"m":"%s"}`, opt.Metadata["m"])
	}
	if rng.IntN(4) == 0 {
		opt.TTL = time.Duration(60+rng.IntN(60)) * time.Second
		it.expires = now + opt.TTL.Milliseconds()
	}
	mustPut(t, n, key, value, opt)
	return it
}

// checkUsage compares the counters that are kept with what is in the store.
func checkUsage(t testing.TB, r *rig) {
	t.Helper()
	used, live := map[string]int64{}, map[string]int64{}
	err := r.ledger.eachRecord(r.db, func(uid, key string, rec replica.Record) error {
		used[uid] += weight(len(key), &rec)
		if !rec.Dead() {
			live[uid]++
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for uid := range maps.Keys(used) {
		sp := r.ledger.space(uid)
		if sp.bytes.Load() != used[uid] || sp.records.Load() != live[uid] {
			t.Errorf("%s: counted %d records, %d bytes; there are %d, %d", uid, sp.records.Load(), sp.bytes.Load(), live[uid], used[uid])
		}
	}
}
