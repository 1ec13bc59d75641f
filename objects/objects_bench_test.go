package objects

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/zeebo/blake3"
)

// benchSizes are what is put and read; EDGED_BENCH_LARGE=1 adds 512 MiB.
func benchSizes() map[string]int64 {
	sizes := map[string]int64{"4KiB": 4 << 10, "256KiB": 256 << 10, "1MiB": 1 << 20, "64MiB": 64 << 20}
	if os.Getenv("EDGED_BENCH_LARGE") != "" {
		sizes["512MiB"] = 512 << 20
	}
	return sizes
}

var benchNames = []string{"4KiB", "256KiB", "1MiB", "64MiB", "512MiB"}

// bodyReader gives n bytes of a buffer that was filled before.
type bodyReader struct {
	buf  []byte
	left int64
}

func (r *bodyReader) Read(p []byte) (int, error) {
	if r.left == 0 {
		return 0, io.EOF
	}
	n := copy(p, r.buf[:min(int64(len(r.buf)), r.left)])
	r.left -= int64(n)
	return n, nil
}

func benchBucket(b *testing.B) *Bucket {
	s, err := Open(Options{Dir: b.TempDir(), Grace: 1})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { s.Close() })
	if err := s.Create(b.Context(), uid, 1); err != nil {
		b.Fatal(err)
	}
	return s.Bucket(uid)
}

// rawPut is the baseline: a file, the same hash, fsync. It makes neither its name nor anything about it durable.
func rawPut(name string, r io.Reader, buf []byte) error {
	f, err := os.Create(name)
	if err != nil {
		return err
	}
	defer f.Close()
	h := blake3.New()
	for {
		n, rerr := io.ReadFull(r, buf)
		h.Write(buf[:n])
		if _, err := f.Write(buf[:n]); err != nil {
			return err
		}
		if rerr != nil {
			break
		}
	}
	h.Sum(nil)
	return f.Sync()
}

// contenders run one operation each; i counts the runs. tidy, if there is one, comes before every tenth and is not timed.
type contenders struct{ file, ours, tidy func(i int) error }

func (c contenders) tidied(i int) error {
	if c.tidy == nil || i%10 != 0 {
		return nil
	}
	return c.tidy(i)
}

// compare runs both, and then both in turn, so that what else the machine does hits them alike: ratio is the speed of ours by that of
// the file, at the median, ratio-p10 among the fastest tenth.
func compare(b *testing.B, size int64, c contenders) {
	for name, run := range map[string]func(int) error{"file": c.file, "ours": c.ours} {
		b.Run("impl="+name, func(b *testing.B) {
			b.SetBytes(size)
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				if i%10 == 0 {
					b.StopTimer()
					if err := c.tidied(i); err != nil {
						b.Fatal(err)
					}
					b.StartTimer()
				}
				if err := run(i); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
	b.Run("impl=both", func(b *testing.B) {
		runs, took := [2]func(int) error{c.file, c.ours}, [2][]time.Duration{}
		for i := 0; b.Loop(); i++ {
			if err := c.tidied(i); err != nil {
				b.Fatal(err)
			}
			for turn := range 2 {
				who := (turn + i) % 2 // whoever comes second may have to wait for what the first left to the disk
				began := time.Now()
				if err := runs[who](i); err != nil {
					b.Fatal(err)
				}
				took[who] = append(took[who], time.Since(began))
			}
		}
		file, ours := took[0], took[1]
		slices.Sort(file)
		slices.Sort(ours)
		b.ReportMetric(float64(file[len(file)/2])/float64(ours[len(ours)/2]), "ratio")
		b.ReportMetric(float64(file[len(file)/10])/float64(ours[len(ours)/10]), "ratio-p10")
	})
}

// Durable puts, beside a file with the same hash and an fsync. Targets: 0.85 of it from 1 MiB on, 0.5 for 4 KiB. A file has a new name
// each time, an object takes the place of another; what was replaced is removed by tidy, of both.
func BenchmarkPut(b *testing.B) {
	src := filled(scratchBytes, 7)
	for _, name := range []string{"4KiB", "256KiB", "1MiB", "64MiB"} { // BenchmarkPutLarge has 512 MiB
		size := benchSizes()[name]
		b.Run("size="+name, func(b *testing.B) {
			dir, buf, bucket := b.TempDir(), make([]byte, scratchBytes), benchBucket(b)
			compare(b, size, contenders{
				file: func(i int) error {
					return rawPut(filepath.Join(dir, fmt.Sprint(i)), &bodyReader{src, size}, buf)
				},
				ours: func(i int) error { return putAny(bucket, fmt.Sprint(i%10), src, size) },
				tidy: func(int) error {
					left, err := filepath.Glob(filepath.Join(dir, "*"))
					for _, name := range left {
						err = errors.Join(err, os.Remove(name))
					}
					return errors.Join(err, bucket.s.garbage.collect(b.Context()))
				},
			})
		})
	}
}

// discard is a writer that is nothing else, so that nobody finds a shorter way.
type discard struct{}

func (discard) Write(p []byte) (int, error) { return len(p), nil }

// Reads of cached bodies, beside a file read with the same buffer. Targets as for puts.
func BenchmarkGet(b *testing.B) {
	src := filled(scratchBytes, 7)
	for _, name := range benchNames {
		size, ok := benchSizes()[name]
		if !ok {
			continue
		}
		b.Run("size="+name, func(b *testing.B) {
			file, buf, bucket := filepath.Join(b.TempDir(), "f"), make([]byte, scratchBytes), benchBucket(b)
			if err := errors.Join(rawPut(file, &bodyReader{src, size}, buf), putAny(bucket, "k", src, size)); err != nil {
				b.Fatal(err)
			}
			compare(b, size, contenders{
				file: func(int) error {
					f, err := os.Open(file)
					if err != nil {
						return err
					}
					n, err := io.CopyBuffer(discard{}, struct{ io.Reader }{f}, buf)
					return whole(n, size, errors.Join(err, f.Close()))
				},
				ours: func(int) error {
					o, ok, err := bucket.Get(b.Context(), "k", GetOptions{})
					if err != nil || !ok {
						return fmt.Errorf("found %t: %w", ok, err)
					}
					n, err := o.WriteTo(discard{})
					return whole(n, size, errors.Join(err, o.Close()))
				},
			})
		})
	}
}

func whole(n, size int64, err error) error {
	if err == nil && n != size {
		err = fmt.Errorf("%d of %d bytes", n, size)
	}
	return err
}

// putAny puts an object, as a part of an upload if it is too large for one put.
func putAny(bucket *Bucket, key string, src []byte, size int64) error {
	ctx := context.Background()
	if size <= MaxPutBytes {
		_, err := bucket.Put(ctx, key, &bodyReader{src, size}, PutOptions{Length: size})
		return err
	}
	up, err := bucket.CreateMultipartUpload(ctx, key, "")
	if err != nil {
		return err
	}
	etag, err := bucket.UploadPart(ctx, key, up, 1, &bodyReader{src, size}, size)
	if err != nil {
		return err
	}
	_, err = bucket.CompleteMultipartUpload(ctx, key, up, []Part{{1, etag}})
	return err
}

// Listings of 100,000 keys under 1000 prefixes: all prefixes by seeks, beside reading every key, and a page of 1000 keys.
func BenchmarkList(b *testing.B) {
	w := newDiskWorld(b, nil)
	keys := make([]string, 0, 100_000)
	for i := range 1000 {
		for j := range 100 {
			keys = append(keys, fmt.Sprintf("prefix-%04d/key-%04d", i, j))
		}
	}
	w.putHeads(keys...)
	if err := w.s.db.Flush(); err != nil {
		b.Fatal(err)
	}
	for name, opt := range map[string]ListOptions{
		"what=prefixes/impl=seeks": {Delimiter: "/", Limit: 1000},
		"what=page":                {Limit: 1000},
		"what=page-behind-cursor":  {Limit: 1000, Cursor: w.s.cursors.issue(listing{uid, "", ""}, place{afterKey, "prefix-0500/"})},
	} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if p, err := w.bucket().List(b.Context(), opt); err != nil || len(p.Objects)+len(p.Prefixes) != 1000 {
					b.Fatal(len(p.Objects), err)
				}
			}
		})
	}
	b.Run("what=prefixes/impl=scan", func(b *testing.B) {
		num := w.s.buckets[uid].num
		for b.Loop() {
			n := 0
			if err := w.s.scan(bucketKey(headClass, num), bucketEnd(headClass, num), func(_, _ []byte) error { n++; return nil }); err != nil || n != len(keys) {
				b.Fatal(n, err)
			}
		}
	})
}
