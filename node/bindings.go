package node

import (
	"context"
	"errors"
	"fmt"
	"time"

	"edged/control/form"
	"edged/control/plan"
	"edged/internal/fault"
	"edged/kv"
	"edged/queue"
	"edged/router/table"
	"edged/sandbox/binding"
	"edged/sandbox/event"
	"edged/sqlstore"
	"edged/sqlstore/codec"
)

// bindings opens the doors of a version. What is behind one is looked up with each call: a store that is gone then says so.
func (n *Node) bindings(pv *plan.Version) ([]binding.Binding, error) {
	out := make([]binding.Binding, 0, len(pv.Bindings))
	for _, b := range pv.Bindings {
		door := binding.Binding{Name: b.Name}
		switch b.Kind {
		case "kv":
			door.KV = kvDoor{n.stores.kv.Namespace(b.Target)}
		case "sql":
			door.SQL = sqlDoor{n.stores.sql.Database(b.Target, homeEpoch)}
		case "queue":
			door.Queue = queueDoor{n.stores.queue, queue.Ref{UID: b.Target, Epoch: homeEpoch}}
		case "objects":
			door.Bucket, door.Counted = bucketDoor{n.stores.objects.Bucket(b.Target)}, b.Form == form.ObjectBucket3URL
		case "service":
			door.Service = serviceDoor{n, b.Target}
		default:
			return nil, fmt.Errorf("binding %s: this node has nothing of the kind %s", b.Name, b.Kind)
		}
		out = append(out, door)
	}
	return out, nil
}

// environment is what a version gets in env besides its plain variables.
func (n *Node) environment(pv *plan.Version) ([]binding.Binding, map[string]string, error) {
	secrets, err := n.secrets(pv)
	if err != nil {
		return nil, nil, err
	}
	bindings, err := n.bindings(pv)
	return bindings, secrets, err
}

type kvDoor struct{ ns *kv.Namespace }

// Get is binding.KV's.
func (d kvDoor) Get(ctx context.Context, key string) (e binding.KVEntry, found bool, err error) {
	item, found, err := d.ns.GetWithMetadata(ctx, key)
	if err != nil || !found {
		return e, false, err
	}
	e.Value = item.Value
	e.Metadata, err = kv.ParseMetadata(item.Metadata)
	return e, err == nil, err
}

// Put is binding.KV's.
func (d kvDoor) Put(ctx context.Context, key string, e binding.KVEntry, ttl time.Duration) error {
	return d.ns.Put(ctx, key, e.Value, kv.PutOptions{Metadata: e.Metadata, TTL: ttl})
}

// Delete is binding.KV's.
func (d kvDoor) Delete(ctx context.Context, key string) error { return d.ns.Delete(ctx, key) }

// List is binding.KV's.
func (d kvDoor) List(ctx context.Context, q binding.KVQuery) (binding.KVPage, error) {
	page, err := d.ns.List(ctx, kv.ListOptions{Prefix: q.Prefix, Limit: q.Limit, Cursor: q.Cursor})
	return binding.KVPage{Keys: page.Keys, Cursor: page.Cursor}, err
}

type sqlDoor struct{ db *sqlstore.Database }

// Execute is binding.SQL's.
func (d sqlDoor) Execute(ctx context.Context, sql string, params []byte) ([]byte, error) {
	return one(ctx, sql, params, d.db.Execute)
}

// Query is binding.SQL's.
func (d sqlDoor) Query(ctx context.Context, sql string, params []byte) ([]byte, error) {
	return one(ctx, sql, params, d.db.Query)
}

func one(ctx context.Context, sql string, params []byte, run func(context.Context, codec.Statement) (codec.Result, error)) ([]byte, error) {
	st, err := codec.ParseCall(sql, params)
	if err != nil {
		return nil, err
	}
	r, err := run(ctx, st)
	if err != nil {
		return nil, err
	}
	return codec.AppendResult(nil, &r), nil
}

// Transaction is binding.SQL's.
func (d sqlDoor) Transaction(ctx context.Context, statements []byte) ([]byte, error) {
	list, err := codec.ParseStatements(statements)
	if err != nil {
		return nil, err
	}
	results, err := d.db.Transaction(ctx, list)
	if err != nil {
		return nil, err
	}
	return codec.AppendResults(nil, results), nil
}

type queueDoor struct {
	s   *queue.Store
	ref queue.Ref
}

// Send is binding.Queue's.
func (d queueDoor) Send(ctx context.Context, messages []binding.Message) ([]string, error) {
	list := make([]queue.Message, len(messages))
	for i, m := range messages {
		list[i] = queue.Message(m)
	}
	return d.s.SendBatch(ctx, d.ref, list)
}

// serviceDoor is another worker's HTTP route, found anew with each call.
type serviceDoor struct {
	n      *Node
	worker string
}

// Serve is binding.Service's.
func (d serviceDoor) Serve(ctx context.Context, req *event.Request, res *event.Response) error {
	for w := d.n.versions.worker(d.worker); w != nil; {
		err := d.n.router.Call(ctx, w, req, res)
		next := d.n.versions.worker(d.worker)
		if !errors.Is(err, event.ErrNotServing) || next == w {
			return err
		}
		w = next // a switch retired the version before it accepted anything (worker-deployment §3)
	}
	return fault.New(fault.Unavailable, "node.service", "the worker has no active deployment")
}

var (
	_ binding.KV      = kvDoor{}
	_ binding.SQL     = sqlDoor{}
	_ binding.Queue   = queueDoor{}
	_ binding.Service = serviceDoor{}
	_ binding.Bucket  = bucketDoor{}
	_ table.Handler   = serviceDoor{}
)
