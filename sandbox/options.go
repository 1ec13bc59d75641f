package sandbox

import (
	"errors"
	"fmt"
	"log/slog"
	"runtime"
	"time"

	"edged/sandbox/binding"
	"edged/sandbox/event"
)

// Isolation says what a later invocation of a version may see of an earlier one (module-worker §7).
type Isolation uint8

// The isolation modes.
const (
	IsolateRequest Isolation = iota // every invocation starts from the version's snapshot
	IsolateWorker                   // a sandbox is reused by later invocations of the same version
)

// ParseIsolation reads the name that the command line uses: "request" or "worker".
func ParseIsolation(s string) (Isolation, error) {
	switch s {
	case "request":
		return IsolateRequest, nil
	case "worker":
		return IsolateWorker, nil
	}
	return 0, fmt.Errorf("isolation %q is neither request nor worker", s)
}

// Options configure a Sandbox.
type Options struct {
	CacheDir string // for the engine's compiled code, private to this process's user; "" keeps none
	ImageDir string // for snapshot images, likewise private; "" keeps none

	MaxCPU         time.Duration // active time of one invocation, and of a load; 0 means 10 s
	MaxWall        time.Duration // from Serve to the response head, and of a load; 0 means 30 s
	MaxWallEvents  time.Duration // waitUntil tasks after the response; 0 means 15 min
	MaxMemoryBytes int64         // one sandbox; 0 means 128 MiB

	Isolation     Isolation
	ReuseRequests int           // isolation worker: invocations until a sandbox starts afresh; 0 means 1,000
	ReuseFor      time.Duration // isolation worker: age at which it does; 0 means 60 s

	MaxInstances int           // live sandboxes; 0 means 4,096 (each needs three of the 65,530 mappings a process may have)
	MaxIdle      time.Duration // how long a sandbox without work stays; 0 means 60 s
	MaxResident  time.Duration // how long a sandbox without work keeps its memory (isolation request); 0 means 5 s
	MaxRunning   int           // guests that run at once; 0 means as many as Go code has threads
	MaxBrief     int           // guests that may run beside those, of workers that use less than half a millisecond as a rule

	MaxImageStoreBytes int64 // images kept on disk; the ones not used for longest go first; 0 means 4 GiB

	MaxHeaders     int // fields of a response; 0 means 256
	MaxHeaderBytes int // of a response, names and values; 0 means 64 KiB
	MaxTimers      int // of one invocation at once; 0 means 10,000
	MaxSubrequests int // requests that one invocation sends, through bindings and outside; 0 means 1,000
	MaxOperations  int // host operations of one invocation at once; 0 means 256

	MaxCallBytes int64 // arguments, and results, of one invocation's open host calls in the node's memory; 0 means 128 MiB
	MaxHeldBytes int64 // the same of all invocations, without small ones; 0 means 1 GiB

	// Fetch sends what a worker's fetch asks for to the outside; nil refuses it.
	Fetch binding.Fetcher
	// Console receives what workers log. It is called from many goroutines and must not block. nil drops it.
	Console func(Entry)
	// Watch is asked at the start of each invocation of a worker, by UID, for who is told of its end; nil, also as its answer, is nobody. It is
	// asked by many goroutines and must not wait. Nor must what it returns, which is called once, on the invocation's goroutine,
	// perhaps long after the response; it must not keep the pointer.
	Watch   func(worker string) func(*event.Invocation)
	Log     *slog.Logger // nil discards
	Metrics *Metrics     // nil counts into the void
}

// fill sets the defaults and reports everything that is wrong.
func (o *Options) fill() error {
	def(&o.MaxCPU, 10*time.Second)
	def(&o.MaxWall, 30*time.Second)
	def(&o.MaxWallEvents, 15*time.Minute)
	def(&o.MaxMemoryBytes, 128<<20)
	def(&o.ReuseRequests, 1000)
	def(&o.ReuseFor, time.Minute)
	def(&o.MaxInstances, 4096)
	def(&o.MaxIdle, time.Minute)
	def(&o.MaxResident, 5*time.Second)
	def(&o.MaxRunning, runtime.GOMAXPROCS(0))
	def(&o.MaxImageStoreBytes, 4<<30)
	def(&o.MaxHeaders, 256)
	def(&o.MaxHeaderBytes, 64<<10)
	def(&o.MaxTimers, 10_000)
	def(&o.MaxSubrequests, 1000)
	def(&o.MaxOperations, 256)
	def(&o.MaxCallBytes, 128<<20)
	def(&o.MaxHeldBytes, 1<<30)
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.Metrics == nil {
		o.Metrics = NewMetrics(nil)
	}
	var errs []error
	positive := func(name string, n int64) {
		if n < 0 {
			errs = append(errs, fmt.Errorf("%s is negative", name))
		}
	}
	positive("MaxCPU", int64(o.MaxCPU))
	positive("MaxWall", int64(o.MaxWall))
	positive("MaxWallEvents", int64(o.MaxWallEvents))
	positive("ReuseRequests", int64(o.ReuseRequests))
	positive("ReuseFor", int64(o.ReuseFor))
	positive("MaxInstances", int64(o.MaxInstances))
	positive("MaxIdle", int64(o.MaxIdle))
	positive("MaxResident", int64(o.MaxResident))
	positive("MaxRunning", int64(o.MaxRunning))
	positive("MaxBrief", int64(o.MaxBrief))
	positive("MaxImageStoreBytes", o.MaxImageStoreBytes)
	positive("MaxHeaders", int64(o.MaxHeaders))
	positive("MaxHeaderBytes", int64(o.MaxHeaderBytes))
	positive("MaxTimers", int64(o.MaxTimers))
	positive("MaxSubrequests", int64(o.MaxSubrequests))
	positive("MaxOperations", int64(o.MaxOperations))
	positive("MaxCallBytes", o.MaxCallBytes)
	positive("MaxHeldBytes", o.MaxHeldBytes)
	if o.MaxMemoryBytes < minMemoryBytes {
		errs = append(errs, fmt.Errorf("MaxMemoryBytes of %d is below %d", o.MaxMemoryBytes, int64(minMemoryBytes)))
	}
	if o.Isolation > IsolateWorker {
		errs = append(errs, fmt.Errorf("isolation %d is unknown", o.Isolation))
	}
	return errors.Join(errs...)
}

// minMemoryBytes is what the runtime itself needs, with room for a small worker.
const minMemoryBytes = 8 << 20

func def[T comparable](p *T, v T) {
	var zero T
	if *p == zero {
		*p = v
	}
}
