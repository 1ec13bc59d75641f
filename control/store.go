package control

import (
	"context"

	"edged/control/form"
	"edged/control/rules"
	"edged/control/state"
	"edged/internal/fault"
)

// Store makes and removes the stores behind the Resources of one kind (kv, objects, sql, queue). Every call is idempotent,
// returns when its effect is durable, and may be repeated after a crash at any instant. The runner makes one call at a time for
// one UID; calls for different UIDs come at once. An error means that the outcome is open: the call is repeated.
type Store interface {
	// Create makes an empty store under a UID that never had one. Of a UID that has one it only takes over the settings.
	Create(ctx context.Context, req StoreRequest) error
	// Delete removes a store with everything in it and goes on where an earlier call stopped. What is absent counts as done.
	Delete(ctx context.Context, req StoreRequest) error
	// Exists reports whether the store is there. It is asked only about UIDs whose Create returned without an error.
	Exists(ctx context.Context, uid string) (bool, error)
}

// StoreRequest names a store.
type StoreRequest struct {
	UID, Tenant string     // opaque, 1 to 1,020 bytes
	Epoch       uint64     // of the node that is its home: 1 on a single node
	Queue       form.Queue // of a queue, within the bounds of its Form; zero for other kinds
}

// homeEpoch is the epoch of every store of a single node.
const homeEpoch = 1

// storeEffect creates, verifies or deletes the store of a data Resource. A store that was there and is not any more is never made
// anew in silence: the update fails and says so (host-api §7.2).
func (c *Control) storeEffect(ctx context.Context, op *state.Operation, r *state.Resource) (*state.Command, error) {
	store := c.storeOf(r)
	if store == nil {
		return nil, fault.Newf(fault.Unavailable, "control.store", "this node has no %s store", r.Driver().Store)
	}
	req := StoreRequest{UID: r.UID, Tenant: r.Tenant, Epoch: homeEpoch, Queue: r.Parsed().Queue}
	if op.Action == form.Delete {
		return &state.Command{OK: true}, store.Delete(ctx, req)
	}
	if r.Settled {
		there, err := store.Exists(ctx, r.UID)
		if err != nil {
			return nil, err
		}
		if !there {
			gone := rules.Refuse(rules.UnsupportedCapability, "REL-10", "", []string{r.UID}, "the store of %s is gone; delete the Resource", r.UID)
			return &state.Command{Effect: state.EffectNone, Seed: gone.Seed, Message: gone.Detail(), Lost: true}, nil
		}
	}
	return &state.Command{OK: true}, store.Create(ctx, req)
}

// has reports whether this node has a capability: a store of a kind, or what applies migrations and their store.
func (o *Options) has(capability string) bool {
	if capability == form.Migrations {
		return o.Migrate != nil && o.Stores[form.StoreSQL] != nil
	}
	return o.Stores[capability] != nil
}
