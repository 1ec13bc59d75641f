package node

import (
	"context"
	"fmt"
	"log/slog"
	"runtime/debug"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"edged/internal/meter"
	"edged/node/machine"
)

// pressure says how short memory is, and with that what is given up: first what is only kept for speed, then new work.
// Nothing that runs is ended.
type pressure int32

const (
	pressureNone  pressure = iota
	pressureShed           // sandboxes without work go
	pressureTight          // and no more are made than can run at once
	pressureShut           // and no new request is admitted
)

func (p pressure) String() string {
	return [...]string{"none", "sandboxes without work are closed", "and no new ones are made", "and no new request is admitted"}[p]
}

// Of each level: what is left then, as a part of the limit and in bytes; the lesser counts.
var pressureBelow = [...]struct {
	part  float64
	bytes int64
}{pressureShed: {0.15, 2 << 30}, pressureTight: {0.08, 1 << 30}, pressureShut: {0.04, 512 << 20}}

const (
	pressureEase = 1.25 // a level ends when that much more is left than where it begins
	stalledMuch  = 20   // per cent of the time in which somebody waits for memory: shed whatever is left
	ownPart      = 8    // a node that has less than one part in so many of what is used does not help by refusing work
)

// next is the level after a look at memory.
func (p pressure) next(m machine.Memory) pressure {
	if m.Limit <= 0 {
		return pressureNone // nothing is known, as with no limit
	}
	level := pressureNone
	for l := pressureShed; l <= pressureShut; l++ {
		below := min(pressureBelow[l].part*float64(m.Limit), float64(pressureBelow[l].bytes))
		if p >= l {
			below *= pressureEase
		}
		if float64(m.Available) < below {
			level = l
		}
	}
	if level == pressureNone && m.Stalled >= stalledMuch {
		level = pressureShed
	}
	if level == pressureShut && m.Own < (m.Limit-m.Available)/ownPart {
		level = pressureTight
	}
	return level
}

const (
	pressureLook = 500 * time.Millisecond // between two looks at memory; between two sheddings as well
	pressureGive = 10 * time.Second       // between two times the Go heap is given back, which costs a collection
)

// memoryWatch looks at memory and has the node give up what it can before the kernel does.
type memoryWatch struct {
	read  func() machine.Memory
	shed  func() int // closes sandboxes without work
	tight func(bool)
	shut  func(bool)
	log   *slog.Logger

	level     atomic.Int32 // a pressure; any goroutine
	available atomic.Int64 // bytes at the last look; any goroutine
	limit     atomic.Int64

	gaveBack time.Time
}

// run looks until ctx is done.
func (w *memoryWatch) run(ctx context.Context) error {
	tick := time.NewTicker(pressureLook)
	defer tick.Stop()
	for {
		w.look(time.Now())
		select {
		case <-ctx.Done():
			w.tight(false)
			w.shut(false)
			return nil
		case <-tick.C:
		}
	}
}

func (w *memoryWatch) look(now time.Time) {
	m := w.read()
	w.available.Store(m.Available)
	w.limit.Store(m.Limit)
	was := pressure(w.level.Load())
	level := was.next(m)
	if level != was {
		w.level.Store(int32(level))
		w.tight(level >= pressureTight)
		w.shut(level >= pressureShut)
		w.log.Warn("memory pressure has changed", "now", level.String(), "available", m.Available, "limit", m.Limit, "own", m.Own, "stalled", m.Stalled)
	}
	if level == pressureNone {
		return
	}
	w.shed()
	if level >= pressureTight && now.Sub(w.gaveBack) >= pressureGive {
		w.gaveBack = now
		debug.FreeOSMemory()
	}
}

// show registers what the watch saw last.
func (w *memoryWatch) show(reg prometheus.Registerer) {
	f := meter.For(reg, "node")
	f.GaugeFunc("memory_available_bytes", "Memory that is left, where it is scarcest: in the node's control group, one above it, or on the machine.", func() float64 {
		return float64(w.available.Load())
	})
	f.GaugeFunc("memory_limit_bytes", "Memory that there is in that place.", func() float64 { return float64(w.limit.Load()) })
	f.GaugeFunc("memory_pressure", "0, or what is given up for memory: 1 sandboxes without work, 2 also new sandboxes, 3 also new requests.", func() float64 {
		return float64(w.level.Load())
	})
}

// problem is what /readyz says, "" while requests are admitted.
func (w *memoryWatch) problem() string {
	if pressure(w.level.Load()) < pressureShut {
		return ""
	}
	return fmt.Sprintf("%d MiB of memory are left of %d; no new request is admitted", w.available.Load()>>20, w.limit.Load()>>20)
}
