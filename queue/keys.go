package queue

import (
	"encoding/binary"
	"math"
)

// The first byte of a key says what it holds. All numbers in keys are big-endian.
const (
	catalogClass = 'q' // + queue's UID: a queue
	systemClass  = 's' // + what: numbers of the whole store
	messageClass = 'm' // + queue number, sequence: a message, never changed
	dueClass     = 'd' // + queue number, due instant, sequence: a waiting message
	leaseClass   = 'b' // + queue number, batch number: a batch that a handler holds
)

var (
	reservedKey = []byte{systemClass, 'r'} // sequences below this value may have been given out
	leaseEndKey = []byte{systemClass, 'l'} // every lease of the process that wrote it ends by then, Unix milliseconds
)

// position is a place in a queue's due index.
type position struct {
	due int64 // Unix milliseconds, never negative
	seq uint64
}

var end = position{math.MaxInt64, math.MaxUint64} // behind every entry

func (p position) before(q position) bool {
	return p.due < q.due || p.due == q.due && p.seq < q.seq
}

func (p position) next() position { return position{p.due, p.seq + 1} }

func classKey(class byte, num uint64) []byte {
	return binary.BigEndian.AppendUint64(append(make([]byte, 0, 25), class), num)
}

// classEnd is the bound behind all keys of a class and queue.
func classEnd(class byte, num uint64) []byte {
	if num == math.MaxUint64 {
		return []byte{class + 1}
	}
	return classKey(class, num+1)
}

func seqKey(class byte, num, seq uint64) []byte {
	return binary.BigEndian.AppendUint64(classKey(class, num), seq)
}

func messageKey(num, seq uint64) []byte { return seqKey(messageClass, num, seq) }

func leaseKey(num, batch uint64) []byte { return seqKey(leaseClass, num, batch) }

func dueKey(num uint64, p position) []byte {
	return binary.BigEndian.AppendUint64(seqKey(dueClass, num, uint64(p.due)), p.seq)
}

const dueKeyLen = 1 + 8 + 8 + 8

// readDueKey returns the position in a due key.
func readDueKey(key []byte) (position, bool) {
	if len(key) != dueKeyLen {
		return position{}, false
	}
	due := binary.BigEndian.Uint64(key[9:])
	if due > math.MaxInt64 {
		return position{}, false
	}
	return position{int64(due), binary.BigEndian.Uint64(key[17:])}, true
}

// readSeqKey returns the last number of a message or lease key.
func readSeqKey(key []byte) (uint64, bool) {
	if len(key) != 17 {
		return 0, false
	}
	return binary.BigEndian.Uint64(key[9:]), true
}

func catalogKey(uid string) []byte { return append([]byte{catalogClass}, uid...) }
