package sqlstore

import (
	"errors"
	"log/slog"
	"path/filepath"
	"time"

	"edged/internal/disk"
)

// Options of a Store. The zero value of every field but Dir is a default.
type Options struct {
	Dir     string       // required; this room's folder below the data directory
	Log     *slog.Logger // nil discards
	Metrics *Metrics     // nil counts into the void
	Space   *disk.Space  // refuses growth while the disk is nearly full; nil never does

	MaxOpen     int           // databases kept open while nobody uses them, 0 means 64
	Readers     int           // reading connections per open database, 0 means 4
	MaxBytes    int64         // size of one database, 0 means 1 GiB; a larger one can still be read and shrunk
	MaxMemory   int64         // of one connection, 0 means 64 MiB
	WriteWait   time.Duration // how long a writer waits for its turn before it is busy, 0 means 5 s
	MaxTime     time.Duration // of one call once it has its turn, 0 means 30 s
	MigrateWait time.Duration // how long an application of migrations waits for another one or for writers, 0 means 30 s
	IdleTime    time.Duration // after which Run closes a database that nobody used, 0 means 5 min
	Slow        time.Duration // a call that takes longer is kept for Slow and logged with its plan, 0 means 1 s
}

func (o *Options) fill() error {
	var errs []error
	if o.Dir == "" {
		errs = append(errs, errors.New("sqlstore: Dir is required"))
	} else if dir, err := filepath.Abs(o.Dir); err != nil {
		errs = append(errs, err)
	} else {
		o.Dir = dir // SQLite takes file names as URLs, and those have no working directory
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	o.Log = o.Log.With("room", "sqlstore")
	if o.Metrics == nil {
		o.Metrics = NewMetrics(nil)
	}
	for _, n := range []struct {
		name  string
		value *int64
		or    int64
		least int64
	}{{"MaxBytes", &o.MaxBytes, 1 << 30, 1 << 16}, {"MaxMemory", &o.MaxMemory, 64 << 20, 8 << 20}} {
		if *n.value == 0 {
			*n.value = n.or
		}
		if *n.value < n.least {
			errs = append(errs, errors.New("sqlstore: "+n.name+" is too small"))
		}
	}
	for _, d := range []struct {
		name  string
		value *time.Duration
		or    time.Duration
	}{{"WriteWait", &o.WriteWait, 5 * time.Second}, {"MaxTime", &o.MaxTime, 30 * time.Second}, {"MigrateWait", &o.MigrateWait, 30 * time.Second},
		{"IdleTime", &o.IdleTime, 5 * time.Minute}, {"Slow", &o.Slow, time.Second}} {
		if *d.value == 0 {
			*d.value = d.or
		}
		if *d.value < 0 {
			errs = append(errs, errors.New("sqlstore: "+d.name+" is negative"))
		}
	}
	for _, n := range []struct {
		value *int
		or    int
	}{{&o.MaxOpen, 64}, {&o.Readers, 4}} {
		if *n.value <= 0 {
			*n.value = n.or
		}
	}
	return errors.Join(errs...)
}
