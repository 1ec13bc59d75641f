package kv

import (
	"bytes"
	"encoding/binary"
	"errors"
	"maps"
	"slices"

	"github.com/cockroachdb/pebble/v2"

	"edged/kv/replica"
)

// tx stages changes into one batch. It exists under ledger.mu only.
type tx struct {
	l       *ledger
	b       *pebble.Batch
	now     int64
	seen    map[string]replica.Record // by place: what this batch wrote; its Value and Meta are dropped
	touched map[*space]bool
	vectors map[replica.Origin]bool
	orphans [][replica.DigestBytes]byte

	keyBuf, valBuf, placeBuf []byte // scratch
}

func newTx(l *ledger) *tx {
	return &tx{l: l, b: l.db.NewBatch(), now: l.now()}
}

// get returns what a place holds, as this batch would leave it. Value and Meta are not filled in.
func (t *tx) get(place []byte) (rec replica.Record, ok bool, err error) {
	if rec, ok = t.seen[string(place)]; ok {
		return rec, rec.Origin != 0, nil
	}
	t.keyBuf = prefixed(t.keyBuf[:0], prefixRecord, place)
	v, closer, err := t.l.db.Get(t.keyBuf)
	if errors.Is(err, pebble.ErrNotFound) {
		return rec, false, nil
	}
	if err != nil {
		return rec, false, err
	}
	defer closer.Close()
	if rec, err = replica.ParseRecord(v); err != nil {
		return rec, false, err
	}
	rec.Value = nil
	return rec, true, nil
}

// stored is what a place holds: rec is zero when had is false. rec's Value and Meta are not to be read, only measured.
type stored struct {
	rec replica.Record
	had bool
}

// lookup returns what the store, without this batch, holds at the places of changes that wants picks; the others are left
// zero. It reads in the order of the places with one iterator, and looks at the filters of the last level too: most of what a
// feed brings is new here, and a filter that says so spares a block.
func (t *tx) lookup(changes []replica.Change, wants func(*replica.Change) bool) ([]stored, error) {
	out := make([]stored, len(changes))
	order := make([]int, 0, len(changes))
	keys := make([][]byte, len(changes))
	var arena []byte
	for i := range changes {
		if c := &changes[i]; wants(c) {
			from := len(arena)
			arena = appendPlace(append(arena, prefixRecord), c.UID, c.Key)
			keys[i] = arena[from:len(arena):len(arena)]
			order = append(order, i)
		}
	}
	if len(order) == 0 {
		return out, nil
	}
	slices.SortFunc(order, func(a, b int) int { return bytes.Compare(keys[a], keys[b]) })
	it, err := t.l.db.NewIter(&pebble.IterOptions{UseL6Filters: true})
	if err != nil {
		return nil, err
	}
	defer it.Close()
	for _, i := range order {
		if !it.SeekPrefixGE(keys[i]) || !bytes.Equal(it.Key(), keys[i]) {
			if err := it.Error(); err != nil {
				return nil, err
			}
			continue
		}
		v, err := it.ValueAndErr()
		if err != nil {
			return nil, err
		}
		if out[i].rec, err = replica.ParseRecord(v); err != nil {
			return nil, err
		}
		out[i].rec.Value, out[i].had = nil, true
	}
	return out, nil
}

func (t *tx) remember(place []byte, rec replica.Record) {
	if t.seen == nil {
		t.seen = map[string]replica.Record{}
	}
	rec.Value = nil
	t.seen[string(place)] = rec
}

// weight is what a record counts for in its namespace: a dead one still takes room until it is forgotten.
func weight(keyBytes int, r *replica.Record) int64 {
	const overhead = 96 // the record's own fields and its entries in the indexes
	return int64(overhead+keyBytes) + int64(r.Size) + int64(len(r.Meta))
}

// set replaces old (zero for nothing) by rec at a place and gives rec the next position in the feed.
func (t *tx) set(sp *space, place []byte, old, rec replica.Record) error {
	if err := t.unlist(sp, place, &old); err != nil {
		return err
	}
	t.l.head++
	rec.LSeq = t.l.head
	return t.put(sp, place, rec)
}

// put writes a record under the position it has, with its entries in the indexes.
func (t *tx) put(sp *space, place []byte, rec replica.Record) error {
	t.keyBuf = prefixed(t.keyBuf[:0], prefixRecord, place)
	t.valBuf = rec.Append(t.valBuf[:0])
	err := t.b.Set(t.keyBuf, t.valBuf, nil)
	t.keyBuf = numKey(t.keyBuf[:0], prefixChange, rec.LSeq)
	err = errors.Join(err, t.b.Set(t.keyBuf, place, nil))
	switch {
	case rec.Dead():
		t.keyBuf = timeKey(t.keyBuf[:0], prefixDead, rec.DeadSince(), rec.LSeq)
		err = errors.Join(err, t.b.Set(t.keyBuf, place, nil))
	case rec.Flags&replica.Expires != 0:
		t.keyBuf = timeKey(t.keyBuf[:0], prefixExpiry, rec.Expires, rec.LSeq)
		err = errors.Join(err, t.b.Set(t.keyBuf, place, nil))
	}
	if rec.Flags&replica.Blob != 0 {
		t.keyBuf = append(prefixed(t.keyBuf[:0], prefixBlob, rec.Digest[:]), place...)
		err = errors.Join(err, t.b.Set(t.keyBuf, nil, nil))
	}
	t.use(sp, place, &rec, 1)
	t.remember(place, rec)
	return err
}

// unlist takes a record's entries out of the indexes; the record itself is for the caller to replace or delete.
func (t *tx) unlist(sp *space, place []byte, old *replica.Record) error {
	if old.Origin == 0 {
		return nil
	}
	t.keyBuf = numKey(t.keyBuf[:0], prefixChange, old.LSeq)
	err := t.b.Delete(t.keyBuf, nil)
	switch {
	case old.Dead():
		t.keyBuf = timeKey(t.keyBuf[:0], prefixDead, old.DeadSince(), old.LSeq)
		err = errors.Join(err, t.b.Delete(t.keyBuf, nil))
	case old.Flags&replica.Expires != 0:
		t.keyBuf = timeKey(t.keyBuf[:0], prefixExpiry, old.Expires, old.LSeq)
		err = errors.Join(err, t.b.Delete(t.keyBuf, nil))
	}
	if old.Flags&replica.Blob != 0 {
		t.keyBuf = append(prefixed(t.keyBuf[:0], prefixBlob, old.Digest[:]), place...)
		err = errors.Join(err, t.b.Delete(t.keyBuf, nil))
		t.orphans = append(t.orphans, old.Digest)
	}
	t.use(sp, place, old, -1)
	return err
}

// forget removes a record and all that points to it.
func (t *tx) forget(sp *space, place []byte, old replica.Record) error {
	err := t.unlist(sp, place, &old)
	t.keyBuf = prefixed(t.keyBuf[:0], prefixRecord, place)
	err = errors.Join(err, t.b.Delete(t.keyBuf, nil))
	t.remember(place, replica.Record{})
	return err
}

func (t *tx) use(sp *space, place []byte, r *replica.Record, sign int64) {
	keyBytes := len(place) - 1 - int(place[0])
	sp.bytes.Add(sign * weight(keyBytes, r))
	if !r.Dead() {
		sp.records.Add(sign)
	}
	if sign > 0 {
		sp.see(r.Version)
	}
	if t.touched == nil {
		t.touched = map[*space]bool{}
	}
	t.touched[sp] = true
}

// merge raises the vector.
func (t *tx) merge(v replica.Vector) {
	for o, seq := range v {
		if o != t.l.epoch && t.l.vector[o] < seq {
			t.raise(o, seq)
		}
	}
}

func (t *tx) raise(o replica.Origin, seq uint64) {
	t.l.vector[o] = seq
	if t.vectors == nil {
		t.vectors = map[replica.Origin]bool{}
	}
	t.vectors[o] = true
}

// version gives out the next version of this store.
func (t *tx) version(floor replica.HLC) replica.Version {
	t.l.seq++
	t.l.vector[t.l.epoch] = t.l.seq
	return replica.Version{HLC: t.l.clock.Next(t.now, floor), Origin: t.l.epoch, Seq: t.l.seq}
}

// finish adds what is written once per batch.
func (t *tx) finish() error {
	err := t.b.Set([]byte(headKeyString), t.l.headValue(), nil)
	for o := range maps.Keys(t.vectors) {
		t.keyBuf = numKey(t.keyBuf[:0], prefixVector, uint64(o))
		err = errors.Join(err, t.b.Set(t.keyBuf, binary.BigEndian.AppendUint64(nil, t.l.vector[o]), nil))
	}
	for sp := range t.touched {
		t.keyBuf = append(append(t.keyBuf[:0], prefixUsage), sp.uid...)
		err = errors.Join(err, t.b.Set(t.keyBuf, sp.usage(), nil))
	}
	return err
}
