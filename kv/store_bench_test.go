package kv

import (
	"fmt"
	"path/filepath"
	"sync/atomic"
	"testing"

	"github.com/cockroachdb/pebble/v2"

	"edged/internal/disk"
)

const benchClients = 128

// inParallel runs op from 128 clients; op gets a number of its own each time.
func inParallel(b *testing.B, op func(i uint64) error) {
	b.ReportAllocs()
	b.SetParallelism(benchClients / 2) // times GOMAXPROCS, which is 2 on the machine of the targets
	var n atomic.Uint64
	before := cpuTime(b)
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			if err := op(n.Add(1)); err != nil {
				b.Error(err)
				return
			}
		}
	})
	b.ReportMetric(float64((cpuTime(b)-before).Microseconds())/float64(b.N), "cpu-us/op")
}

// perOp returns the time of one operation of a benchmark that is over.
func perOp(b *testing.B) float64 { return float64(b.Elapsed()) / float64(b.N) }

// ofRaw reports what part of Pebble's own rate this benchmark reached in the same run. Nothing where Pebble did not run.
func ofRaw(b *testing.B, raw float64) {
	if raw > 0 {
		b.ReportMetric(raw/perOp(b), "of-raw")
	}
}

func benchStore(b *testing.B, dir string) *Namespace {
	s, err := Open(Options{Dir: dir})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { s.Close() })
	if err := s.Create(b.Context(), "bench", 1); err != nil {
		b.Fatal(err)
	}
	return s.Namespace("bench")
}

func benchPebble(b *testing.B, dir string) *pebble.DB {
	cache := pebble.NewCache(ownCache + maxMemtables*16<<20) // as the store has it
	defer cache.Unref()
	db, err := disk.OpenPebble(disk.PebbleOptions{Dir: dir, MemSize: 16 << 20, Cache: cache})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { db.Close() })
	return db
}

func benchKey(i uint64) string { return fmt.Sprintf("key-%028x", i*0x9e3779b97f4a7c15) }

// Durable puts of 256 B by 128 clients, beside Pebble's own Set with Sync. Target: at least 0.4 of it.
func BenchmarkPut(b *testing.B) {
	value := make([]byte, 256)
	raw := 0.0
	b.Run("impl=pebble", func(b *testing.B) {
		db := benchPebble(b, filepath.Join(b.TempDir(), "p"))
		inParallel(b, func(i uint64) error { return db.Set([]byte(benchKey(i)), value, pebble.Sync) })
		raw = perOp(b)
	})
	b.Run("impl=ours", func(b *testing.B) {
		n := benchStore(b, filepath.Join(b.TempDir(), "kv"))
		inParallel(b, func(i uint64) error { return n.Put(b.Context(), benchKey(i), value, PutOptions{}) })
		ofRaw(b, raw)
	})
	b.Run("impl=ours-overwrite", func(b *testing.B) {
		n := benchStore(b, filepath.Join(b.TempDir(), "kv"))
		inParallel(b, func(i uint64) error { return n.Put(b.Context(), benchKey(i%5000), value, PutOptions{}) })
		ofRaw(b, raw)
	})
}

// Gets of 256 B, beside Pebble's own Get. Target: at least 0.8 of it.
func BenchmarkGet(b *testing.B) {
	const keys = 50_000 // fits the cache of both
	value := make([]byte, 256)
	raw := 0.0
	b.Run("impl=pebble", func(b *testing.B) {
		db := benchPebble(b, filepath.Join(b.TempDir(), "p"))
		batch := db.NewBatch()
		for i := range uint64(keys) {
			batch.Set([]byte(benchKey(i)), value, nil)
		}
		if err := batch.Commit(pebble.Sync); err != nil {
			b.Fatal(err)
		}
		db.Flush()
		b.ResetTimer()
		inParallel(b, func(i uint64) error {
			v, closer, err := db.Get([]byte(benchKey(i % keys)))
			if err != nil {
				return err
			}
			_ = append([]byte{}, v...)
			return closer.Close()
		})
		raw = perOp(b)
	})
	b.Run("impl=ours", func(b *testing.B) {
		n := benchStore(b, filepath.Join(b.TempDir(), "kv"))
		err := n.s.commits.do(0, func(t *tx) error {
			for i := range uint64(keys) {
				if err := t.write(change{"bench", benchKey(i), valueRecord(value)}); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			b.Fatal(err)
		}
		n.s.db.Flush()
		b.ResetTimer()
		inParallel(b, func(i uint64) error {
			v, ok, err := n.Get(b.Context(), benchKey(i%keys), nil)
			if !ok || len(v) != 256 {
				return fmt.Errorf("got %d bytes, %t, %w", len(v), ok, err)
			}
			return err
		})
		ofRaw(b, raw)
	})
}
