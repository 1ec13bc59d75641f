package objects

import (
	"context"
	"errors"
	"strings"
	"unicode/utf8"

	"github.com/cockroachdb/pebble/v2"

	"edged/internal/fault"
)

// ListOptions say which objects are listed.
type ListOptions struct {
	Prefix    string // up to 979 bytes of UTF-8; "" means all
	Delimiter string // up to 16 code points; "" means none
	Limit     int    // 1 to 1000, 0 means 100
	Cursor    string // from a page with the same prefix and delimiter, "" begins
	After     string // without a cursor: only entries, keys and prefixes, that follow this in the order; "" means all
}

// Page is one page of a listing, in the order of the keys' UTF-8 bytes.
type Page struct {
	Objects   []Info
	Prefixes  []string // with a delimiter: what the left out keys have in common, up to and including the delimiter, each once
	Truncated bool     // more follows; Cursor continues
	Cursor    string
}

// List returns a page of objects (objects §3.3). A prefix that stands for many keys counts as one entry of the page and is found
// with one seek. Pages are no snapshot: a key that stays is listed once, one that comes or goes meanwhile may be. Errors:
// invalid_cursor, backend_unavailable, Invalid for options.
func (b *Bucket) List(ctx context.Context, opt ListOptions) (page Page, err error) {
	const op = "objects.List"
	defer func() { b.s.opt.Metrics.calls["list"].Count(err) }()
	if err := opt.check(op); err != nil {
		return Page{}, err
	}
	if err := ctx.Err(); err != nil {
		return Page{}, unavailable(op, err)
	}
	k, err := b.s.find(op, b.uid)
	if err != nil {
		return Page{}, err
	}
	l := listing{b.uid, opt.Prefix, opt.Delimiter}
	after := opt.after()
	if opt.Cursor != "" {
		if after, err = b.s.cursors.open(l, opt.Cursor); err != nil {
			return Page{}, err
		}
	}
	w := &walk{opt: opt, last: after}
	if err := w.run(k); err != nil {
		return Page{}, unavailable(op, err)
	}
	if w.page.Truncated {
		w.page.Cursor = b.s.cursors.issue(l, w.last)
	}
	return w.page, nil
}

func (o *ListOptions) check(op string) error {
	if o.Limit == 0 {
		o.Limit = DefaultListLimit
	}
	switch {
	case o.Limit < 1 || o.Limit > MaxListLimit:
		return fault.New(fault.Invalid, op, "a limit is 1 to 1000")
	case len(o.Prefix) > MaxKeyBytes || !utf8.ValidString(o.Prefix):
		return fault.New(fault.Invalid, op, "a prefix has up to 979 bytes of UTF-8")
	case o.After != "" && o.Cursor != "":
		return fault.New(fault.Invalid, op, "a listing continues behind a cursor or begins behind a key, not both")
	case len(o.After) > MaxKeyBytes || !utf8.ValidString(o.After):
		return fault.New(fault.Invalid, op, "a listing begins behind up to 979 bytes of UTF-8")
	}
	return checkChars(op, "a delimiter", o.Delimiter, MaxDelimiterChars)
}

// after returns the place behind After. A prefix that After begins with does not follow it, so neither do the keys it stands for.
func (o *ListOptions) after() place {
	if o.After == "" {
		return place{}
	}
	if rest, ok := strings.CutPrefix(o.After, o.Prefix); ok && o.Delimiter != "" {
		if n := strings.Index(rest, o.Delimiter); n >= 0 {
			return place{afterPrefix, o.After[:len(o.Prefix)+n+len(o.Delimiter)]}
		}
	}
	return place{afterKey, o.After}
}

// walk collects a page.
type walk struct {
	opt   ListOptions
	page  Page
	last  place // the entry that was taken last
	steps int   // of the iterator: what the page cost
}

// keyEnd follows every key that begins as what stands before it: no UTF-8 has this byte.
const keyEnd = 0xff

func (w *walk) run(k *bucket) error {
	base := headKey(k.num, w.opt.Prefix)
	it, err := k.s.db.NewIter(&pebble.IterOptions{LowerBound: base, UpperBound: append(base[:len(base):len(base)], keyEnd)})
	if err != nil {
		return err
	}
	w.page.Objects = []Info{}
	more := it.SeekGE(w.from(k, base))
	for w.steps++; more && err == nil; w.steps++ {
		if len(w.page.Objects)+len(w.page.Prefixes) == w.opt.Limit {
			w.page.Truncated = true
			break
		}
		more, err = w.take(k, it)
	}
	return errors.Join(err, it.Error(), it.Close())
}

// from returns the key at which the page begins.
func (w *walk) from(k *bucket, base []byte) []byte {
	switch w.last.kind {
	case afterKey:
		return append(headKey(k.num, w.last.at), 0)
	case afterPrefix:
		return append(headKey(k.num, w.last.at), keyEnd)
	}
	return base
}

// take adds the entry at the iterator to the page and goes to the next.
func (w *walk) take(k *bucket, it *pebble.Iterator) (more bool, err error) {
	key := string(it.Key()[bucketKeyLen:])
	if d := w.opt.Delimiter; d != "" {
		if n := strings.Index(key[len(w.opt.Prefix):], d); n >= 0 {
			common := key[:len(w.opt.Prefix)+n+len(d)]
			w.page.Prefixes = append(w.page.Prefixes, common)
			w.last = place{afterPrefix, common}
			return it.SeekGE(w.from(k, nil)), nil
		}
	}
	v, err := it.ValueAndErr()
	if err != nil {
		return false, err
	}
	h, err := readHead(v)
	if err != nil {
		return false, err
	}
	w.page.Objects = append(w.page.Objects, h.info(key))
	w.last = place{afterKey, key}
	return it.Next(), nil
}
