package objects

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/cockroachdb/pebble/v2"

	"edged/internal/testkit"
)

// putHeads makes empty objects without a sync each.
func (w *world) putHeads(keys ...string) {
	w.t.Helper()
	k := w.s.buckets[uid]
	batch := w.s.db.NewBatch()
	for _, key := range keys {
		h := &head{gen: newID(w.ms.Load()), kind: inlineBody, uploaded: w.ms.Load()}
		must(batch.Set(headKey(k.num, key), appendHead(nil, h), nil))
		must(batch.Set(inlineKey(k.num, h.gen), nil, nil))
	}
	if err := batch.Commit(pebble.NoSync); err != nil {
		w.t.Fatal(err)
	}
}

// model lists sorted keys as objects §3.3 says, all pages in one.
func modelList(keys []string, prefix, delimiter string) (entries []string) {
	for _, key := range keys {
		rest, ok := strings.CutPrefix(key, prefix)
		if !ok {
			continue
		}
		entry := "key " + key
		if n := strings.Index(rest, delimiter); delimiter != "" && n >= 0 {
			entry = "prefix " + prefix + rest[:n+len(delimiter)]
		}
		if len(entries) == 0 || entries[len(entries)-1] != entry {
			entries = append(entries, entry)
		}
	}
	return entries
}

// entriesOf merges a page's objects and prefixes in their order.
func entriesOf(p Page) (entries []string) {
	for _, o := range p.Objects {
		entries = append(entries, o.Key+"\x00key "+o.Key)
	}
	for _, x := range p.Prefixes {
		entries = append(entries, x+"\x00prefix "+x)
	}
	slices.Sort(entries)
	for i, e := range entries {
		_, entries[i], _ = strings.Cut(e, "\x00")
	}
	return entries
}

// objects §3.3: random keys, prefixes, delimiters, page sizes and places to begin behind list what a naive reading of the rules
// lists, each entry once, with restarts between pages.
func TestListModel(t *testing.T) {
	w := newWorld(t, nil)
	rng := testkit.Rand(t)
	alphabet := []string{"a", "b", "/", "//", "-", "é", "\U0010ffff", "a/"}
	word := func(n int) string {
		var s strings.Builder
		for range rng.IntN(n) {
			s.WriteString(alphabet[rng.IntN(len(alphabet))])
		}
		return s.String()
	}
	var keys []string
	for range 400 {
		if k := word(8); k != "" {
			keys = append(keys, k)
		}
	}
	slices.Sort(keys)
	keys = slices.Compact(keys)
	w.putHeads(keys...)
	for range 300 {
		opt := ListOptions{Prefix: word(3), Delimiter: []string{"", "/", "//", "é", "a/", "-"}[rng.IntN(6)], Limit: 1 + rng.IntN(30)}
		after := word(8) // mostly no key, and as often as not outside of the prefix
		opt.After = after
		var got []string
		for first := true; first || opt.Cursor != ""; first = false {
			p := w.list(opt)
			if p.Truncated != (p.Cursor != "") || len(p.Objects)+len(p.Prefixes) > opt.Limit {
				t.Fatalf("%+v: page %+v", opt, p)
			}
			got = append(got, entriesOf(p)...)
			opt.Cursor, opt.After = p.Cursor, ""
			if rng.IntN(200) == 0 {
				w.restart()
			}
		}
		want := slices.DeleteFunc(modelList(keys, opt.Prefix, opt.Delimiter), func(entry string) bool {
			_, text, _ := strings.Cut(entry, " ")
			return after != "" && text <= after
		})
		if !slices.Equal(got, want) {
			t.Fatalf("%+v behind %q: got %q, want %q", opt, after, got, want)
		}
	}
}

// objects §3.3: 1000 prefixes over many keys cost a seek each, whatever the number of keys; no key behind a page is looked at.
func TestListSeeks(t *testing.T) {
	w := newWorld(t, nil)
	const prefixes, each = 1000, 40
	keys := make([]string, 0, prefixes*each)
	for i := range prefixes {
		for j := range each {
			keys = append(keys, fmt.Sprintf("%04d/%04d", i, j))
		}
	}
	w.putHeads(keys...)
	k := w.s.buckets[uid]
	all := &walk{opt: ListOptions{Delimiter: "/", Limit: 1000}}
	if err := all.run(k); err != nil || len(all.page.Prefixes) != prefixes || all.page.Truncated || all.steps > prefixes+1 {
		t.Errorf("%d prefixes in %d steps, truncated %t, %v", len(all.page.Prefixes), all.steps, all.page.Truncated, err)
	}
	plain := &walk{opt: ListOptions{Limit: 10}, last: place{afterKey, "0500/0000"}}
	if err := plain.run(k); err != nil || len(plain.page.Objects) != 10 || plain.steps > 11 {
		t.Errorf("%d keys in %d steps, %v", len(plain.page.Objects), plain.steps, err)
	}
}

// objects §3.3: a listing under concurrent change lists what stays once.
func TestListUnderChange(t *testing.T) {
	w := newWorld(t, nil)
	for i := range 50 {
		w.putHeads(fmt.Sprintf("stays/%02d", i))
	}
	var got []string
	opt := ListOptions{Limit: 7}
	for i := 0; ; i++ {
		p := w.list(opt)
		for _, o := range p.Objects {
			if strings.HasPrefix(o.Key, "stays/") {
				got = append(got, o.Key)
			}
		}
		if opt.Cursor = p.Cursor; opt.Cursor == "" {
			break
		}
		w.putHeads(fmt.Sprintf("new/%02d", i), "stays/49x"+fmt.Sprint(i))
		if err := w.bucket().Delete(t.Context(), fmt.Sprintf("new/%02d", i)); err != nil {
			t.Fatal(err)
		}
	}
	got = slices.DeleteFunc(got, func(k string) bool { return strings.Contains(k, "x") })
	if len(got) != 50 || !slices.IsSorted(got) {
		t.Errorf("got %d keys: %v", len(got), got)
	}
}

// objects §3.3: a cursor is refused for another bucket, prefix or delimiter, when it was changed, and from another store.
func TestCursors(t *testing.T) {
	w := newWorld(t, nil)
	w.putHeads("p/1", "p/2", "p/3")
	opt := ListOptions{Prefix: "p", Limit: 1}
	opt.Cursor = w.list(opt).Cursor
	w.restart()
	if p := w.list(opt); keysOf(p) != "p/2" {
		t.Errorf("after a restart: %q", keysOf(p))
	}
	ctx := t.Context()
	for what, o := range map[string]ListOptions{
		"prefix":    {Prefix: "p/", Cursor: opt.Cursor},
		"delimiter": {Prefix: "p", Delimiter: "/", Cursor: opt.Cursor},
		"bytes":     {Prefix: "p", Cursor: opt.Cursor[:len(opt.Cursor)-1]},
		"length":    {Prefix: "p", Cursor: strings.Repeat("A", 5000)},
		"nothing":   {Prefix: "p", Cursor: "made up"},
	} {
		_, err := w.bucket().List(ctx, o)
		wantName(t, what, err, "invalid_cursor")
	}
	_, err := w.s.Bucket(otherUID).List(ctx, opt)
	wantName(t, "bucket", err, "invalid_cursor")
	other := newWorld(t, nil)
	_, err = other.bucket().List(ctx, opt)
	wantName(t, "store", err, "invalid_cursor")
}
