package replica

import (
	"cmp"
	"fmt"
	"time"
)

// Origin names one life of one disk: a random number that a store draws when it is made or restored and never again. A
// sequence number is never used twice under one origin. Zero is no origin.
type Origin uint64

// String renders the origin as operators see it.
func (o Origin) String() string { return fmt.Sprintf("%016x", uint64(o)) }

// HLC is a hybrid logical time: 48 bits of Unix milliseconds, then a 16-bit counter.
type HLC uint64

const counterBits = 16

// At returns the first HLC of a millisecond.
func At(ms int64) HLC { return HLC(ms) << counterBits }

// Millis returns the wall part as Unix milliseconds.
func (h HLC) Millis() int64 { return int64(h >> counterBits) }

// Time returns the wall part.
func (h HLC) Time() time.Time { return time.UnixMilli(h.Millis()) }

// Version is the identity of one write. No two writes of a fleet share one.
type Version struct {
	HLC    HLC
	Origin Origin
	Seq    uint64 // position among the writes of Origin, from 1
}

// Compare orders versions totally: by time, then origin, then sequence. The greater one wins.
func (v Version) Compare(w Version) int {
	return cmp.Or(cmp.Compare(v.HLC, w.HLC), cmp.Compare(v.Origin, w.Origin), cmp.Compare(v.Seq, w.Seq))
}
