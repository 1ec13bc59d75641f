package node

import (
	"context"
	"errors"
	"path/filepath"
	"time"

	"edged/control"
	"edged/control/form"
	"edged/control/state"
	"edged/kv"
	"edged/objects"
	"edged/queue"
	"edged/sqlstore"
)

// stores are the rooms that keep what workers store.
type stores struct {
	kv      *kv.Store
	sql     *sqlstore.Store
	queue   *queue.Store
	objects *objects.Store
}

func (n *Node) openStores() (err error) {
	dir := func(room string) string { return filepath.Join(n.opt.DataDir, room) }
	if n.stores.kv, err = kv.Open(kv.Options{Dir: dir("kv"), Node: n.id, Peers: n.kvPeers(), Space: n.space, Log: n.log, Metrics: kv.NewMetrics(n.registry)}); err != nil {
		return err
	}
	if n.fleet == nil {
		if err = n.stores.kv.SetMembers(nil); err != nil { // this node runs alone: only its own tombstones hold up their collection
			return err
		}
	}
	if n.stores.sql, err = sqlstore.Open(sqlstore.Options{Dir: dir("sql"), Space: n.space, Log: n.log, Metrics: sqlstore.NewMetrics(n.registry)}); err != nil {
		return err
	}
	if n.stores.objects, err = objects.Open(objects.Options{Dir: dir("objects"), Space: n.space, Log: n.log, Metrics: objects.NewMetrics(n.registry)}); err != nil {
		return err
	}
	n.stores.queue, err = queue.Open(queue.Options{Dir: dir("queue"), Space: n.space, Log: n.log, Metrics: queue.NewMetrics(n.registry),
		Deliver: n.deliver, Drain: n.opt.DrainTimeout})
	return err
}

func (s *stores) close() error {
	var errs []error
	if s.queue != nil {
		errs = append(errs, s.queue.Close())
	}
	if s.objects != nil {
		errs = append(errs, s.objects.Close())
	}
	if s.sql != nil {
		errs = append(errs, s.sql.Close())
	}
	if s.kv != nil {
		errs = append(errs, s.kv.Close())
	}
	return errors.Join(errs...)
}

// forControl are the stores as the control room sees them, by the kinds of its Forms.
func (s *stores) forControl() map[string]control.Store {
	return map[string]control.Store{"kv": kvStore{s.kv}, "sql": sqlStore{s.sql}, "queue": queueStore{s.queue},
		"objects": objectStore{s.objects}}
}

type kvStore struct{ s *kv.Store }

// Create, Delete and Exists are control.Store's.
func (k kvStore) Create(ctx context.Context, r control.StoreRequest) error {
	return k.s.Create(ctx, r.UID, r.Epoch)
}
func (k kvStore) Delete(ctx context.Context, r control.StoreRequest) error {
	return k.s.Delete(ctx, r.UID)
}
func (k kvStore) Exists(_ context.Context, uid string) (bool, error) { return k.s.Exists(uid), nil }

type sqlStore struct{ s *sqlstore.Store }

// Create, Delete and Exists are control.Store's.
func (q sqlStore) Create(ctx context.Context, r control.StoreRequest) error {
	return q.s.Create(ctx, r.UID, r.Epoch)
}
func (q sqlStore) Delete(ctx context.Context, r control.StoreRequest) error {
	return q.s.Delete(ctx, r.UID)
}
func (q sqlStore) Exists(_ context.Context, uid string) (bool, error) { return q.s.Exists(uid) }

type objectStore struct{ s *objects.Store }

// Create, Delete and Exists are control.Store's.
func (o objectStore) Create(ctx context.Context, r control.StoreRequest) error {
	return o.s.Create(ctx, r.UID, r.Epoch)
}
func (o objectStore) Delete(ctx context.Context, r control.StoreRequest) error {
	return o.s.Delete(ctx, r.UID)
}
func (o objectStore) Exists(_ context.Context, uid string) (bool, error) { return o.s.Exists(uid), nil }

// migrate is control.Options.Migrate.
func (s *stores) migrate(ctx context.Context, m control.Migration) (control.Migrated, error) {
	files := make([]sqlstore.MigrationFile, len(m.Files))
	for i, f := range m.Files {
		files[i] = sqlstore.MigrationFile(f)
	}
	applied, err := s.sql.Database(m.Database, m.Epoch).Apply(ctx, files)
	did := control.Migrated{Effect: state.Effect(applied.Effect)}
	if applied.Ledger != nil {
		did.Ledger = make([]form.Entry, len(applied.Ledger))
	}
	for i, e := range applied.Ledger {
		did.Ledger[i] = form.Entry(e)
	}
	return did, err
}

type queueStore struct{ s *queue.Store }

// homeEpoch is the epoch of every store of a single node.
const homeEpoch = 1

// Create, Delete and Exists are control.Store's. A batch gets its queue's name from the plan.
func (q queueStore) Create(ctx context.Context, r control.StoreRequest) error {
	return q.s.Create(ctx, queue.Ref{UID: r.UID, Epoch: r.Epoch}, queue.Settings{
		Retention:    time.Duration(r.Queue.RetentionSeconds) * time.Second,
		DefaultDelay: time.Duration(r.Queue.DelaySeconds) * time.Second,
	})
}
func (q queueStore) Delete(ctx context.Context, r control.StoreRequest) error {
	return q.s.Delete(ctx, queue.Ref{UID: r.UID, Epoch: r.Epoch})
}
func (q queueStore) Exists(_ context.Context, uid string) (bool, error) {
	return q.s.Exists(queue.Ref{UID: uid, Epoch: homeEpoch}), nil
}
