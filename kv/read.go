package kv

import (
	"errors"

	"github.com/cockroachdb/pebble/v2"

	"edged/kv/replica"
)

// read calls fn with what readers see at a key; ok is false when they see nothing. The record's slices are valid during the
// call; the one that is returned has none.
func (l *ledger) read(uid, key string, fn func(*replica.Record)) (rec replica.Record, ok bool, err error) {
	k := append(make([]byte, 0, 2+len(uid)+len(key)), prefixRecord)
	v, closer, err := l.db.Get(appendPlace(k, uid, key))
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
	if rec.Dead() || rec.Flags&replica.Expires != 0 && l.expired(&rec, l.now()) {
		return rec, false, nil
	}
	fn(&rec)
	rec.Value, rec.Meta = nil, nil
	return rec, true, nil
}

// eachRecord calls fn for every record of the store, dead ones too, in order. The record's slices are valid during the call.
func (l *ledger) eachRecord(r pebble.Reader, fn func(uid, key string, rec replica.Record) error) error {
	return scan(r, []byte{prefixRecord}, nil, func(k, v []byte) (bool, error) {
		uid, key, ok := splitPlace(k[1:])
		if !ok {
			return false, errors.New("record key is malformed")
		}
		rec, err := replica.ParseRecord(v)
		if err == nil {
			err = fn(string(uid), string(key), rec)
		}
		return err == nil, err
	})
}
