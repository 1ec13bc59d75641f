package queue

import (
	"bytes"
	"reflect"
	"testing"
	"time"
)

// Whatever stands on the disk, reading it does not panic, and what is read writes itself back.
func FuzzRecords(f *testing.F) {
	e := entry{position: position{5, 7}, accepted: 3, size: MaxBody, attempts: 2, doubt: true}
	m := message{accepted: 1 << 40, nonce: 9, origin: "r-queue", body: []byte("body")}
	b := make([]byte, m.encodedLen())
	m.put(b)
	f.Add(appendEntry(nil, e))
	f.Add(appendLease(nil, []entry{e, {}}))
	f.Add(b)
	f.Add(appendCatalog(nil, catalogRecord{num: 1, epoch: 2, Settings: Settings{Name: "n", Retention: time.Hour}}))
	f.Add(dueKey(1, position{2, 3}))
	f.Fuzz(func(t *testing.T, b []byte) {
		if e, err := readEntry(position{}, b); err == nil {
			again, err := readEntry(position{}, appendEntry(nil, e))
			if err != nil || again != e {
				t.Errorf("entry %+v, again %+v, %v", e, again, err)
			}
		}
		if l, err := readLease(b); err == nil {
			again, err := readLease(appendLease(nil, l))
			if err != nil || !reflect.DeepEqual(again, l) {
				t.Errorf("lease %+v, again %+v, %v", l, again, err)
			}
		}
		if m, err := readMessage(b); err == nil {
			again := make([]byte, m.encodedLen())
			m.put(again)
			if !bytes.Equal(again, b) {
				t.Errorf("message %x, again %x", b, again)
			}
		}
		if c, err := readCatalog(b); err == nil {
			again, err := readCatalog(appendCatalog(nil, c))
			if err != nil || again != c {
				t.Errorf("queue %+v, again %+v, %v", c, again, err)
			}
		}
		if p, ok := readDueKey(b); ok && p.due >= 0 && len(b) == dueKeyLen && b[0] == dueClass {
			if q, ok := readDueKey(dueKey(1, p)); !ok || p != q {
				t.Errorf("position %v, again %v", p, q)
			}
		}
	})
}

// Ids and cursors come from outside; what is read is what was written.
func FuzzID(f *testing.F) {
	f.Add(messageID(1, 2))
	f.Add("+000000000000001+000000000000002")
	f.Add("")
	f.Fuzz(func(t *testing.T, id string) {
		seq, nonce, ok := readID(id)
		if !ok {
			return
		}
		if s, n, ok := readID(messageID(seq, nonce)); !ok || s != seq || n != nonce {
			t.Errorf("%q reads %d %d, again %d %d", id, seq, nonce, s, n)
		}
	})
}

// Keys sort as the positions they stand for.
func TestKeyOrder(t *testing.T) {
	ordered := []position{{}, {0, 1}, {0, 256}, {1, 0}, {255, 9}, {256, 0}, {1 << 40, 1}, end}
	for i := 1; i < len(ordered); i++ {
		a, b := ordered[i-1], ordered[i]
		if !a.before(b) || b.before(a) || bytes.Compare(dueKey(3, a), dueKey(3, b)) >= 0 {
			t.Errorf("%v and %v are out of order", a, b)
		}
	}
	for _, num := range []uint64{0, 1, 255, 1<<64 - 1} {
		if k := dueKey(num, end); bytes.Compare(k, classKey(dueClass, num)) < 0 || bytes.Compare(k, classEnd(dueClass, num)) >= 0 {
			t.Errorf("keys of queue %d are not within its bounds", num)
		}
	}
}
