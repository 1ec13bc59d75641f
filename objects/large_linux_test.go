package objects

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

const (
	largeBytes = 512 << 20
	probeBytes = 64 << 20
)

// BenchmarkPutLarge is one comparison of a put of 512 MiB with a file of the same hash and fsync, for `-benchtime 1x`: each twice, in
// the order A, B, B, A, so that a disk that becomes slower or faster all the while favours neither. Before each, what the one before
// left is removed and the disk has written everything it was given; then the disk is probed with 64 MiB, without a hash. Only the
// four are timed.
//
// ratio is the speed of ours by that of the file, over both of each. probe-low and probe-high are the slowest and the fastest of the
// five probes: if they are far apart, the four met a disk that changed, and the ratio may say more of it than of us.
func BenchmarkPutLarge(b *testing.B) {
	if os.Getenv("EDGED_BENCH_LARGE") == "" {
		b.Skip("it writes some gigabytes: EDGED_BENCH_LARGE=1")
	}
	for _, first := range []string{"file", "ours"} {
		b.Run("first="+first, func(b *testing.B) {
			p := newLargePair(b)
			order := []func() error{p.file, p.ours, p.ours, p.file}
			if first == "ours" {
				order = []func() error{p.ours, p.file, p.file, p.ours}
			}
			for b.Loop() {
				if err := p.run(order); err != nil {
					b.Fatal(err)
				}
			}
			p.report(b)
		})
	}
}

// largePair measures puts and files of one size, one at a time.
type largePair struct {
	bucket   *Bucket
	src, buf []byte
	raw      string // the file beside the store

	took   map[string][]time.Duration // by who wrote
	probes []float64                  // MB/s
}

func newLargePair(b *testing.B) *largePair {
	return &largePair{bucket: benchBucket(b), src: filled(scratchBytes, 7), buf: make([]byte, scratchBytes),
		raw: filepath.Join(b.TempDir(), "raw"), took: map[string][]time.Duration{}}
}

func (p *largePair) file() error {
	return p.timed("file", func() error { return rawPut(p.raw, &bodyReader{p.src, largeBytes}, p.buf) })
}

func (p *largePair) ours() error {
	return p.timed("ours", func() error { return putAny(p.bucket, "k", p.src, largeBytes) })
}

func (p *largePair) timed(who string, run func() error) error {
	began := time.Now()
	err := run()
	p.took[who] = append(p.took[who], time.Since(began))
	return err
}

// run runs each step on a disk that has nothing left to do, between two probes.
func (p *largePair) run(order []func() error) error {
	for _, step := range order {
		if err := p.probe(); err != nil {
			return err
		}
		if err := step(); err != nil {
			return err
		}
	}
	return p.probe()
}

// rest removes what was written, and returns when the disk has done all it was given.
func (p *largePair) rest() error {
	ctx := context.Background()
	if err := p.bucket.Delete(ctx, "k"); err != nil {
		return err
	}
	if err := p.bucket.s.garbage.collect(ctx); err != nil {
		return err
	}
	if err := os.Remove(p.raw); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	dir, err := os.Open(filepath.Dir(p.raw))
	if err != nil {
		return err
	}
	return errors.Join(unix.Syncfs(int(dir.Fd())), dir.Close())
}

// probe measures how fast the disk is, and leaves nothing behind.
func (p *largePair) probe() error {
	if err := p.rest(); err != nil {
		return err
	}
	f, err := os.Create(p.raw)
	if err != nil {
		return err
	}
	began := time.Now()
	for n := 0; n < probeBytes && err == nil; n += len(p.src) {
		_, err = f.Write(p.src)
	}
	err = errors.Join(err, f.Sync())
	p.probes = append(p.probes, probeBytes/1e6/time.Since(began).Seconds())
	return errors.Join(err, f.Close(), p.rest())
}

func (p *largePair) report(b *testing.B) {
	total := func(who string) (s float64) {
		for _, t := range p.took[who] {
			s += t.Seconds()
		}
		return s
	}
	n := float64(len(p.took["file"]))
	b.ReportMetric(total("file")/total("ours"), "ratio")
	b.ReportMetric(n*largeBytes/1e6/total("file"), "file-MB/s")
	b.ReportMetric(n*largeBytes/1e6/total("ours"), "ours-MB/s")
	b.ReportMetric(slices.Min(p.probes), "probe-low-MB/s")
	b.ReportMetric(slices.Max(p.probes), "probe-high-MB/s")
	b.ReportMetric(0, "ns/op") // a quad says nothing by itself
}
