package kv

import (
	"encoding/hex"
	"errors"
	"time"

	"github.com/cockroachdb/pebble/v2"
)

// orphaned notes files that lost a user in the batch staged.
func (b *blobs) orphaned(staged uint64, ds []digest, nowMs int64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, d := range ds {
		if len(b.orphans) < maxOrphans {
			b.orphans = append(b.orphans, orphan{d, staged, nowMs})
		}
	}
}

// due takes the orphans that are old enough and whose loss is durable.
func (b *blobs) due(beforeMs int64, durable uint64) []orphan {
	b.mu.Lock()
	defer b.mu.Unlock()
	n := 0
	if b.holds > 0 {
		return nil
	}
	for n < len(b.orphans) && b.orphans[n].sinceM <= beforeMs && b.orphans[n].staged <= durable {
		n++
	}
	due := b.orphans[:n:n]
	b.orphans = b.orphans[n:]
	return due
}

// removeUnused removes the file of a digest unless a record or a write in progress uses it. A user that was gained but is not
// durable yet is a write in progress: it holds a pin.
func (b *blobs) removeUnused(db *pebble.DB, o orphan) (bool, error) {
	d := o.digest
	b.mu.Lock()
	defer b.mu.Unlock() // no pin can come between the look and the removal
	if b.pins[d] > 0 || b.holds > 0 {
		b.orphans = append(b.orphans, o) // looked at again by the next sweep
		return false, nil
	}
	if used, err := b.used(db, d); err != nil || used {
		return false, err
	}
	if _, err := b.fs.Stat(b.path(d)); err != nil {
		return false, nil
	}
	return true, b.fs.Remove(b.path(d))
}

// each calls fn for every value file, until fn fails.
func (b *blobs) each(fn func(digest) error) error {
	folders, err := b.fs.List(b.dir)
	if err != nil {
		return err
	}
	for _, folder := range folders {
		if len(folder) != 2 {
			continue
		}
		names, err := b.fs.List(b.fs.PathJoin(b.dir, folder))
		if err != nil {
			return err
		}
		for _, name := range names {
			raw, err := hex.DecodeString(name)
			if err != nil || len(raw) != len(digest{}) {
				continue // not ours: never touched by guessing
			}
			if err := fn(digest(raw)); err != nil {
				return err
			}
		}
	}
	return nil
}

// findUnused lists every file that no record names as an orphan of the batch staged. It runs once after a start, for what a
// crash left behind.
func (b *blobs) findUnused(db *pebble.DB, staged uint64, now time.Time) error {
	err := b.each(func(d digest) error {
		used, err := b.used(db, d)
		if err == nil && !used {
			b.orphaned(staged, []digest{d}, now.UnixMilli())
		}
		return err
	})
	return errors.Join(err, b.removeOldParts(now))
}

// used reports whether a record names the file of d.
func (b *blobs) used(db *pebble.DB, d digest) (used bool, err error) {
	err = scan(db, prefixed(nil, prefixBlob, d[:]), nil, func(_, _ []byte) (bool, error) {
		used = true
		return false, nil
	})
	return used, err
}

const partKept = time.Hour

func (b *blobs) removeOldParts(now time.Time) error {
	names, err := b.fs.List(b.partDir())
	for _, name := range names {
		path := b.fs.PathJoin(b.partDir(), name)
		if info, serr := b.fs.Stat(path); serr == nil && now.Sub(info.ModTime()) > partKept {
			err = errors.Join(err, b.fs.Remove(path))
		}
	}
	return err
}
