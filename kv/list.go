package kv

import (
	"context"
	"unicode/utf8"

	"github.com/cockroachdb/pebble/v2"

	"edged/internal/fault"
	"edged/kv/replica"
)

// ListOptions says which keys are listed.
type ListOptions struct {
	Prefix string // up to 467 bytes of UTF-8; "" means all
	Limit  int    // 1 to 1000, 0 means 100
	Cursor string // from a page with the same prefix, "" begins
}

// Page is one page of a listing.
type Page struct {
	Keys     []string // in order of their UTF-8 bytes
	Complete bool     // nothing follows; else Cursor continues
	Cursor   string
}

// maxListScan bounds the work of a page where most keys are deleted or expired: such a page holds fewer keys than its limit.
const maxListScan = 20_000

// List returns the keys that begin with a prefix (kv §3). Errors: invalid_cursor, backend_unavailable, Invalid for a prefix or
// limit outside its bounds. Safe for concurrent use; pages are no snapshot.
func (n *Namespace) List(ctx context.Context, opt ListOptions) (Page, error) {
	const op = "kv.List"
	if opt.Limit == 0 {
		opt.Limit = DefaultListLimit
	}
	if opt.Limit < 1 || opt.Limit > MaxListLimit {
		return Page{}, fault.New(fault.Invalid, op, "a limit is 1 to 1000")
	}
	if len(opt.Prefix) > MaxKeyBytes || !utf8.ValidString(opt.Prefix) {
		return Page{}, fault.New(fault.Invalid, op, "a prefix has up to 467 bytes of UTF-8")
	}
	if err := n.check(ctx, op); err != nil {
		return Page{}, err
	}
	base := prefixed(nil, prefixRecord, appendPlace(nil, n.uid, ""))
	prefix := append(base[:len(base):len(base)], opt.Prefix...)
	from := prefix
	if opt.Cursor != "" {
		last, err := n.s.cursors.open(n.uid, opt.Prefix, opt.Cursor)
		if err != nil {
			return Page{}, err
		}
		from = append(append(base[:len(base):len(base)], last...), 0)
	}
	page, last, err := n.s.ledger.page(prefix, from, len(base), opt.Limit)
	if err != nil {
		return Page{}, unavailable(op, err)
	}
	if !page.Complete {
		page.Cursor = n.s.cursors.issue(n.uid, opt.Prefix, last)
	}
	return page, nil
}

// page collects the visible keys between from and the end of prefix; skip is where a key begins in a store key. last is the
// last key that was passed.
func (l *ledger) page(prefix, from []byte, skip, limit int) (page Page, last []byte, err error) {
	now := l.now()
	page = Page{Keys: []string{}, Complete: true}
	scanned := 0
	err = scan(pebble.Reader(l.db), prefix, from, func(k, v []byte) (bool, error) {
		if len(page.Keys) == limit || scanned == maxListScan {
			page.Complete = false
			return false, nil
		}
		scanned++
		rec, err := replica.ParseRecord(v)
		if err != nil {
			return false, err
		}
		last = append(last[:0], k[skip:]...)
		if !l.hidden(&rec, now) {
			page.Keys = append(page.Keys, string(last))
		}
		return true, nil
	})
	return page, last, err
}
