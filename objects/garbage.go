package objects

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/cockroachdb/pebble/v2"
)

// garbage knows which files may not go yet. A file goes when nothing names it any more, durably; its grace is over; no reader has
// its generation open; and no backup is being made.
type garbage struct {
	s *Store

	mu     sync.Mutex // guards the fields below
	open   map[id]int // readers by generation
	drafts map[id]bool
	holds  int // backups in progress
}

func newGarbage(s *Store) *garbage { return &garbage{s: s, open: map[id]int{}, drafts: map[id]bool{}} }

// protect keeps a file that no metadata names yet from being taken for an orphan.
func (g *garbage) protect(i id) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.drafts[i] = true
}

func (g *garbage) unprotect(i id) {
	g.mu.Lock()
	defer g.mu.Unlock()
	delete(g.drafts, i)
}

// retain keeps the files of a generation until release.
func (g *garbage) retain(gen id) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.open[gen]++
	g.s.opt.Metrics.readers.Inc()
}

func (g *garbage) release(gen id) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.open[gen]--; g.open[gen] <= 0 {
		delete(g.open, gen)
	}
	g.s.opt.Metrics.readers.Dec()
}

func (g *garbage) hold() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.holds++
}

func (g *garbage) unhold() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.holds--
}

// mayGo reports whether the files of a generation that nothing names any more, durably, may be removed. Whoever begins to hold it
// afterwards finds that the object has another generation by now, and lets go.
func (g *garbage) mayGo(gen id) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.holds == 0 && g.open[gen] == 0 && !g.drafts[gen]
}

// due is a generation whose grace is over.
type due struct {
	key   []byte
	gen   id
	blobs []id
}

// sweepStep bounds the records of one step of a sweep.
const sweepStep = 1000

// collect removes the files whose grace is over, and counts those that wait.
func (g *garbage) collect(ctx context.Context) error {
	before := g.s.opt.clock() - g.s.opt.Grace.Milliseconds()
	var waiting int
	from := []byte{garbageClass}
	for {
		dues, next, err := g.due(from, before, &waiting)
		if err != nil {
			return err
		}
		if len(dues) > 0 {
			if err := g.removeAll(dues, &waiting); err != nil {
				return err
			}
		}
		if next == nil {
			break
		}
		if err := ctx.Err(); err != nil {
			return err
		}
		from = next
	}
	g.s.opt.Metrics.waiting.Set(float64(waiting))
	return nil
}

var errStop = errors.New("enough")

func (g *garbage) due(from []byte, before int64, waiting *int) (dues []due, next []byte, err error) {
	err = g.s.scan(from, []byte{garbageClass + 1}, func(k, v []byte) error {
		ms, gen, ok := readGarbageKey(k)
		if !ok {
			return errRecord
		}
		if ms > before {
			*waiting++
			return nil
		}
		if len(dues) == sweepStep {
			next = append([]byte{}, k...)
			return errStop
		}
		blobs, err := readGarbage(v)
		if err != nil {
			return err
		}
		dues = append(dues, due{append([]byte{}, k...), gen, blobs})
		return nil
	})
	if errors.Is(err, errStop) {
		err = nil
	}
	return dues, next, err
}

// removeAll removes the files first and forgets them then: a crash between the two repeats a removal. Before, whatever took the
// files out of use is made durable: it may have become visible a moment ago.
func (g *garbage) removeAll(dues []due, waiting *int) error {
	if err := g.s.sync(); err != nil {
		return err
	}
	batch := g.s.db.NewBatch()
	defer batch.Close()
	for _, d := range dues {
		if !g.mayGo(d.gen) {
			*waiting++
			continue
		}
		for _, b := range d.blobs {
			if err := g.s.files.remove(b); err != nil {
				return err
			}
			must(batch.Delete(blobKey(b), nil))
		}
		must(batch.Delete(d.key, nil))
		g.s.opt.Metrics.removed["replaced"].Add(float64(len(d.blobs)))
	}
	return batch.Commit(pebble.Sync)
}

// orphans removes old files that no metadata names: what crashes left, and writes whose cleaning up failed.
func (g *garbage) orphans(ctx context.Context) error {
	before := time.UnixMilli(g.s.opt.clock()).Add(-g.s.opt.OrphanAge)
	return g.s.files.list(func(i id, changed time.Time) error {
		if err := ctx.Err(); err != nil || changed.After(before) || !g.mayGo(i) {
			return err
		}
		known, err := g.s.get(blobKey(i))
		if err != nil || known != nil {
			return err
		}
		g.s.opt.Metrics.removed["orphan"].Inc()
		return g.s.files.remove(i)
	})
}
