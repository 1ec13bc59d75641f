package kv

import (
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2"

	"edged/kv/replica"
)

// Applying a peer's feed: units of 512 records of 256 B, to keys that are new and to keys that are there, beside Pebble's own
// batches of as many, which know nothing of what a key held. Target: 100,000 records a second. cpu-us/rec is the CPU time of the
// whole process, compactions too: on a machine that is busy it says more than rec/s.
func BenchmarkApply(b *testing.B) {
	raw := 0.0
	b.Run("impl=pebble", func(b *testing.B) {
		db := benchPebble(b, filepath.Join(b.TempDir(), "p"))
		benchApply(b, 1<<40, func(u replica.Unit) error {
			batch := db.NewBatch()
			defer batch.Close()
			for _, c := range u.Changes {
				if err := batch.Set([]byte(c.Key), c.Record.Value, nil); err != nil {
					return err
				}
			}
			return batch.Commit(pebble.Sync)
		})
		raw = perOp(b)
	})
	for _, keys := range []uint64{1 << 40, 50_000} {
		b.Run(map[bool]string{true: "impl=ours/keys=new", false: "impl=ours/keys=old"}[keys > 50_000], func(b *testing.B) {
			n := benchStore(b, filepath.Join(b.TempDir(), "kv"))
			benchApply(b, keys, func(u replica.Unit) error {
				return n.s.commits.do(0, func(t *tx) error { _, err := t.apply(u, 0); return err })
			})
			ofRaw(b, raw)
		})
	}
}

func benchApply(b *testing.B, keys uint64, apply func(replica.Unit) error) {
	value := make([]byte, 256)
	var seq uint64
	before := cpuTime(b)
	for b.Loop() {
		u := replica.Unit{Peer: 7}
		for range 512 {
			seq++
			rec := valueRecord(value)
			rec.Version = replica.Version{HLC: replica.At(1_700_000_000_000) + replica.HLC(seq), Origin: 7, Seq: seq}
			u.Changes = append(u.Changes, replica.Change{UID: "bench", Key: benchKey(seq % keys), Record: rec})
		}
		u.Pos = seq
		if err := apply(u); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(seq)/b.Elapsed().Seconds(), "rec/s")
	b.ReportMetric(float64((cpuTime(b)-before).Microseconds())/float64(seq), "cpu-us/rec")
}

// cpuTime returns the CPU time that this process has used.
func cpuTime(b *testing.B) time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
