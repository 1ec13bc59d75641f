package sandbox

import (
	"strings"
	"sync/atomic"
	"time"
)

// Level is the severity of an Entry.
type Level uint8

// The levels of the console, and one for what the runtime itself reports about a worker.
const (
	LevelDebug Level = iota
	LevelLog
	LevelInfo
	LevelWarn
	LevelError
	LevelUncaught // an error that ended an invocation or a task
)

var levelNames = [...]string{"debug", "log", "info", "warn", "error", "uncaught"}

// String returns the level's name, "log" for an unknown one.
func (l Level) String() string {
	if int(l) >= len(levelNames) {
		return "log"
	}
	return levelNames[l]
}

// Entry is one line of a worker's log. Its text comes from the guest.
type Entry struct {
	Time                    time.Time
	Tenant, Worker, Version string
	Level                   Level
	Text                    string // at most 16 KiB, valid UTF-8
	Dropped                 uint64 // entries of this version that were dropped since the one before
}

// What a version may log, counted in tokens: one per entry, and one more for each KiB of text.
const (
	maxEntryBytes   = 16 << 10
	maxTokens       = 1000 // at once
	tokensPerSecond = 200
)

// rate is a token bucket that holds its state in one word: the time at which it will be full again.
type rate struct {
	full    atomic.Int64 // nanoseconds
	dropped atomic.Uint64
}

// take takes n tokens if they are there.
func (r *rate) take(now time.Time, n int64) bool {
	const per = int64(time.Second) / tokensPerSecond
	at := now.UnixNano()
	for {
		was := r.full.Load()
		next := max(was, at) + n*per
		if next-at > maxTokens*per {
			return false
		}
		if r.full.CompareAndSwap(was, next) {
			return true
		}
	}
}

// console writes one entry of version v, unless the version writes too much.
func (v *Version) console(level Level, text string) {
	sink := v.box.opt.Console
	if sink == nil || v.silent {
		return
	}
	text = text[:min(len(text), maxEntryBytes)]
	now := time.Now()
	if !v.rate.take(now, 1+int64(len(text)>>10)) {
		v.rate.dropped.Add(1)
		v.box.opt.Metrics.logDropped.Inc()
		return
	}
	if level >= LevelWarn {
		text = v.maps.rewrite(text)
		text = text[:min(len(text), maxEntryBytes)]
	}
	sink(Entry{Time: now, Tenant: v.spec.Tenant, Worker: v.spec.Worker, Version: v.spec.UID, Level: level,
		Text: strings.ToValidUTF8(text, "\ufffd"), Dropped: v.rate.dropped.Swap(0)})
}
