package kv

import (
	"encoding/binary"
)

// The keys of the store. A place is uidLen u8, uid, key: where a record lives.
//
//	k<place>          record
//	c<lseq>           place; one entry per record, the order of the feed
//	v<origin>         seq; the vector of this store (its own entry is in h)
//	p<origin>         lseq; how far that store's feed was read
//	e<ms><lseq>       place; records that expire, by instant
//	t<ms><lseq>       place; dead records, by the instant they died
//	b<digest><place>  nothing; who uses a value file
//	n<uid>            state of a namespace
//	u<uid>            what a namespace uses
//	h                 last lseq, last own seq, last clock
//	m<name>           identity and secrets of the store
const (
	prefixRecord  = 'k'
	prefixChange  = 'c'
	prefixVector  = 'v'
	prefixRead    = 'p'
	prefixExpiry  = 'e'
	prefixDead    = 't'
	prefixBlob    = 'b'
	prefixSpace   = 'n'
	prefixUsage   = 'u'
	prefixMeta    = 'm'
	headKeyString = "h"
)

func appendPlace(dst []byte, uid, key string) []byte {
	dst = append(dst, byte(len(uid)))
	dst = append(dst, uid...)
	return append(dst, key...)
}

// splitPlace is the inverse of appendPlace; ok is false for what appendPlace cannot have written.
func splitPlace(place []byte) (uid, key []byte, ok bool) {
	if len(place) == 0 || len(place) < 1+int(place[0]) {
		return nil, nil, false
	}
	n := 1 + int(place[0])
	return place[1:n], place[n:], true
}

func numKey(dst []byte, prefix byte, n uint64) []byte {
	return binary.BigEndian.AppendUint64(append(dst, prefix), n)
}

func timeKey(dst []byte, prefix byte, ms int64, lseq uint64) []byte {
	return binary.BigEndian.AppendUint64(numKey(dst, prefix, uint64(ms)), lseq)
}

func prefixed(dst []byte, prefix byte, rest []byte) []byte {
	return append(append(dst, prefix), rest...)
}

// after returns the first key that does not begin with prefix; nil when there is none.
func after(prefix []byte) []byte {
	end := append([]byte(nil), prefix...)
	for i := len(end) - 1; i >= 0; i-- {
		if end[i]++; end[i] != 0 {
			return end[:i+1]
		}
	}
	return nil
}
