package control

import (
	"context"
	"sync"
	"testing"

	"edged/control/form"
	"edged/internal/fault"
)

// fakeStore is a Store in memory that outlives the node that uses it, as a disk does. Its hooks stop a call before or after its
// effect: with ctx's end for a process that dies there, or with an error.
type fakeStore struct {
	mu      sync.Mutex
	stores  map[string]*StoreRequest // by UID; the last settings
	made    map[string]int           // how often a store came to be under a UID
	removed map[string]int
	calls   int

	before, after func(ctx context.Context, what string) error // nil lets pass; called without the lock
}

func newFakeStore() *fakeStore {
	return &fakeStore{stores: map[string]*StoreRequest{}, made: map[string]int{}, removed: map[string]int{}}
}

func (s *fakeStore) around(ctx context.Context, what string, do func()) error {
	if s.before != nil {
		if err := s.before(ctx, what); err != nil {
			return err
		}
	}
	s.mu.Lock()
	s.calls++
	do()
	s.mu.Unlock()
	if s.after != nil {
		return s.after(ctx, what)
	}
	return nil
}

func (s *fakeStore) Create(ctx context.Context, req StoreRequest) error {
	return s.around(ctx, "create", func() {
		if s.stores[req.UID] == nil {
			s.made[req.UID]++
		}
		s.stores[req.UID] = &req
	})
}

func (s *fakeStore) Delete(ctx context.Context, req StoreRequest) error {
	return s.around(ctx, "delete", func() {
		if s.stores[req.UID] != nil {
			s.removed[req.UID]++
		}
		delete(s.stores, req.UID)
	})
}

func (s *fakeStore) Exists(ctx context.Context, uid string) (there bool, err error) {
	err = s.around(ctx, "exists", func() { there = s.stores[uid] != nil })
	return there, err
}

func (s *fakeStore) get(uid string) *StoreRequest {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.stores[uid]
}

// fakes is one store of each kind.
type fakes map[string]*fakeStore

func newFakes() fakes {
	out := fakes{}
	for _, kind := range []string{form.StoreKV, form.StoreObjects, form.StoreSQL, form.StoreQueue} {
		out[kind] = newFakeStore()
	}
	return out
}

func (f fakes) into(o *Options) {
	o.ServiceBindings = true
	o.Stores = map[string]Store{}
	for kind, s := range f {
		o.Stores[kind] = s
	}
}

// startWithStores is startNode with the fakes given.
func startWithStores(t testing.TB, dir string, f fakes, change func(*Options)) *node {
	t.Helper()
	return startNode(t, dir, func(o *Options) {
		f.into(o)
		if change != nil {
			change(o)
		}
	})
}

var errOutOfOrder = fault.New(fault.Unavailable, "test", "the store is out of order")
