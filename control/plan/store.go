package plan

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"

	"github.com/cockroachdb/pebble/v2"

	"edged/internal/disk"
	"edged/internal/fault"
)

// storeFormat is the version of everything below the store's directory.
const storeFormat = 1

// The first byte of a key says what stands under it; the rest is the part's id.
const (
	hostKey     = 'h'
	workerKey   = 'w'
	versionKey  = 'v'
	bundleKey   = 'b'
	cronKey     = 'c'
	consumerKey = 'q'
	dataKey     = 'd'
	memberKey   = 'm'
	indexKey    = 'i' // no id: the index, 8 bytes big-endian
)

// Store keeps the last plan on disk, part by part: a delta costs what it changes. It is used by one goroutine at a time.
type Store struct {
	db    *pebble.DB
	stale bool  // the disk does not have what the plan before Save had
	mark  *Mark // written with each Save; nil on a node that follows nobody
}

// OpenStore opens or makes the store in dir. A newer format is refused with a Conflict. The caller closes it.
func OpenStore(dir string, log *slog.Logger) (*Store, error) {
	if err := disk.Prepare(dir); err != nil {
		return nil, err
	}
	if _, err := disk.CheckFormat(dir, "plan", storeFormat); err != nil {
		return nil, err
	}
	db, err := disk.OpenPebble(disk.PebbleOptions{Dir: dir + "/parts", Log: log})
	if err != nil {
		return nil, err
	}
	return &Store{db: db}, nil
}

// Close frees the store.
func (s *Store) Close() error { return fault.Wrap(fault.Unavailable, "plan.Close", s.db.Close()) }

// Load reads the plan that was saved last; an empty one if there is none. After an error the next Save replaces everything.
func (s *Store) Load() (*Plan, error) {
	p, err := s.load()
	if err != nil {
		s.stale = true
	}
	return p, err
}

func (s *Store) load() (*Plan, error) {
	it, err := s.db.NewIter(nil)
	if err != nil {
		return nil, fault.Wrap(fault.Unavailable, "plan.Load", err)
	}
	p := New()
	for it.First(); it.Valid(); it.Next() {
		val, err := it.ValueAndErr()
		if err == nil {
			err = p.read(it.Key(), val)
		}
		if err != nil {
			return nil, fault.Wrap(fault.Invalid, "plan.Load", errors.Join(fmt.Errorf("part %q: %w", it.Key(), err), it.Close()))
		}
	}
	return p, fault.Wrap(fault.Unavailable, "plan.Load", errors.Join(it.Error(), it.Close()))
}

// read puts one row into the plan.
func (p *Plan) read(key, val []byte) error {
	if len(key) == 0 {
		return errors.New("a key is empty")
	}
	id := string(key[1:])
	switch key[0] {
	case hostKey:
		return readPart(p.Hosts, id, val)
	case workerKey:
		return readPart(p.Workers, id, val)
	case versionKey:
		return readPart(p.Versions, id, val)
	case bundleKey:
		return readPart(p.Bundles, id, val)
	case cronKey:
		return readPart(p.Crons, id, val)
	case consumerKey:
		return readPart(p.Consumers, id, val)
	case dataKey:
		return readPart(p.Data, id, val)
	case memberKey:
		return readPart(p.Members, id, val)
	case indexKey:
		if len(val) != 8 {
			return errors.New("the index has not 8 bytes")
		}
		p.Index = binary.BigEndian.Uint64(val)
		return nil
	case markKey:
		return nil // Store.Mark reads it
	}
	return errors.New("it is of no known kind")
}

func readPart[T any, P part[T]](m map[string]*T, id string, val []byte) error {
	x := new(T)
	if err := json.Unmarshal(val, x); err != nil {
		return err
	}
	if P(x).id() != id {
		return fmt.Errorf("it holds %q", P(x).id())
	}
	m[id] = x
	return nil
}

// Save makes the store hold the plan after d, whole or not at all, and returns when that is durable. now is that plan; it is
// written as a whole when an earlier Save or Load failed.
func (s *Store) Save(d *Delta, now *Plan) error {
	b := s.db.NewBatch()
	defer b.Close()
	var errs []error
	if s.stale {
		errs = append(errs, b.DeleteRange([]byte{0}, []byte{0xff}, nil))
		d = now.Delta()
	}
	errs = append(errs, b.Set([]byte{indexKey}, binary.BigEndian.AppendUint64(nil, d.Index), nil),
		write(b, hostKey, &d.Hosts), write(b, workerKey, &d.Workers), write(b, versionKey, &d.Versions), write(b, bundleKey, &d.Bundles),
		write(b, cronKey, &d.Crons), write(b, consumerKey, &d.Consumers), write(b, dataKey, &d.Data),
		write(b, memberKey, &d.Members))
	errs = append(errs, s.writeMark(b))
	if err := errors.Join(errs...); err != nil {
		s.stale = true
		return fault.Wrap(fault.Internal, "plan.Save", err)
	}
	err := b.Commit(pebble.Sync)
	s.stale = err != nil
	return fault.Wrap(fault.Unavailable, "plan.Save", err)
}

func write[T any, P part[T]](b *pebble.Batch, kind byte, c *Changes[T]) error {
	for _, x := range c.Put {
		val, err := json.Marshal(x)
		if err != nil {
			return err
		}
		if err := b.Set(append([]byte{kind}, P(x).id()...), val, nil); err != nil {
			return err
		}
	}
	for _, id := range c.Gone {
		if err := b.Delete(append([]byte{kind}, id...), nil); err != nil {
			return err
		}
	}
	return nil
}
