package queue

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"time"

	"edged/internal/fault"
)

// The contract's numbers (queue §§1–3, attachments §5).
const (
	MaxBody         = 127_000 // bytes of a message's body
	MaxBatch        = 100     // messages of a sendBatch and of a delivered batch
	MaxDelaySeconds = 43_200  // of a send and of a retry

	// DefaultDelay, given as a delay, means the one that is set: the queue's for a send, the consumer's for a retry.
	DefaultDelay = -1
)

const (
	minRetention = 60 * time.Second
	maxRetention = 1_209_600 * time.Second
	maxUID       = 255
	maxName      = 128 * 4 // bytes of a name of 128 characters
)

// Ref names a queue: the UID of its Resource and the epoch of the home that this caller believes in. The store serves a
// queue under one epoch and refuses every other, so that a home that lost a queue cannot write to it any more.
type Ref struct {
	UID   string // 1–255 bytes
	Epoch uint64
}

// Settings is what a queue's Resource says about it.
type Settings struct {
	Name         string        // the Resource's name, the batch's queue value (queue §4)
	Retention    time.Duration // 60 s to 14 days, from acceptance; the newest value decides about every message
	DefaultDelay time.Duration // 0 to 12 h, of messages accepted from now on that name none
}

func (s Settings) check() error {
	var faults []error
	if len(s.Name) > maxName {
		faults = append(faults, errors.New("the name is too long"))
	}
	if s.Retention < minRetention || s.Retention > maxRetention || s.Retention%time.Second != 0 {
		faults = append(faults, fmt.Errorf("retention %v is not 60 to 1209600 whole seconds", s.Retention))
	}
	if s.DefaultDelay < 0 || s.DefaultDelay > MaxDelaySeconds*time.Second || s.DefaultDelay%time.Second != 0 {
		faults = append(faults, fmt.Errorf("delivery delay %v is not 0 to 43200 whole seconds", s.DefaultDelay))
	}
	return errors.Join(faults...)
}

func (r Ref) check() error {
	if r.UID == "" || len(r.UID) > maxUID {
		return fmt.Errorf("a queue's UID has 1 to %d bytes", maxUID)
	}
	return nil
}

func invalid(op string, err error) error {
	if err == nil {
		return nil
	}
	return fault.New(fault.Invalid, op, err.Error())
}

// catalogRecord is what is stored of a queue.
type catalogRecord struct {
	num   uint64 // its number in keys, never used again
	epoch uint64
	Settings
}

func appendCatalog(dst []byte, c catalogRecord) []byte {
	dst = append(dst, 0)
	dst = binary.AppendUvarint(dst, c.num)
	dst = binary.AppendUvarint(dst, c.epoch)
	dst = binary.AppendUvarint(dst, uint64(c.Retention/time.Second))
	dst = binary.AppendUvarint(dst, uint64(c.DefaultDelay/time.Second))
	dst = binary.AppendUvarint(dst, uint64(len(c.Name)))
	return append(dst, c.Name...)
}

func readCatalog(b []byte) (catalogRecord, error) {
	if len(b) == 0 || b[0] != 0 {
		return catalogRecord{}, errRecord
	}
	r := reader{b[1:], true}
	c := catalogRecord{num: r.uvarint(math.MaxUint64), epoch: r.uvarint(math.MaxUint64)}
	c.Retention = time.Duration(r.uvarint(uint64(maxRetention/time.Second))) * time.Second
	c.DefaultDelay = time.Duration(r.uvarint(MaxDelaySeconds)) * time.Second
	c.Name = string(r.bytes(maxName))
	if err := r.end(); err != nil {
		return catalogRecord{}, err
	}
	return c, c.check()
}
