package control

import (
	"cmp"
	"context"
	"errors"

	"edged/control/rules"
	"edged/control/state"
	"edged/internal/fault"
)

// send has a member do an errand, within workTimeout.
func (c *Control) send(ctx context.Context, member, what string, in, out any) error {
	ctx, cancel := context.WithTimeout(ctx, workTimeout)
	defer cancel()
	return c.opt.Fleet.ask(ctx, member, "hands/"+what, in, out)
}

// home returns the member that has the store of a data Resource.
func (c *Control) home(r *state.Resource) string {
	home := ""
	c.state.View(func(v state.View) { home = v.Home(r) })
	return cmp.Or(home, c.opt.NodeID)
}

// homeStore is a Store at its home. While that cannot be reached its calls fail, and what waits for them goes on waiting: nothing is made
// in its place.
type homeStore struct {
	c            *Control
	member, kind string
}

// Create, Delete and Exists are Store's.
func (s homeStore) Create(ctx context.Context, req StoreRequest) error {
	_, err := s.do(ctx, "create", req)
	return err
}

func (s homeStore) Delete(ctx context.Context, req StoreRequest) error {
	_, err := s.do(ctx, "delete", req)
	return err
}

func (s homeStore) Exists(ctx context.Context, uid string) (bool, error) {
	out, err := s.do(ctx, "exists", StoreRequest{UID: uid})
	return out.There, err
}

func (s homeStore) do(ctx context.Context, what string, req StoreRequest) (out storeDone, err error) {
	in := storeErrand{s.c.leading.Load(), what, s.kind, req}
	if s.member == s.c.opt.NodeID {
		return s.c.hands.store(ctx, &in)
	}
	return out, s.c.send(ctx, s.member, "store", in, &out)
}

// storeOf returns the store of a data Resource, wherever it lives; nil if there is none of its kind.
func (c *Control) storeOf(r *state.Resource) Store {
	kind := r.Driver().Store
	if c.opt.Fleet == nil {
		return c.opt.Stores[kind]
	}
	return homeStore{c, c.home(r), kind}
}

// migrateAt applies a migration set at the home of its database.
func (c *Control) migrateAt(ctx context.Context, m Migration) (did Migrated, seed rules.Seed, err error) {
	if c.opt.Fleet == nil {
		did, err = c.opt.Migrate(ctx, m)
		return did, migrationSeed(err), err
	}
	const op = "control.migrate"
	r := c.state.Resource(m.Database)
	if r == nil {
		return did, "", fault.Newf(fault.Unavailable, op, "the database %s is gone", m.Database)
	}
	in := migrateErrand{Term: c.leading.Load(), Tenant: []byte(r.Tenant), Database: m.Database, Epoch: m.Epoch}
	for _, f := range m.Files {
		in.Files = append(in.Files, migrationFileRef{f.Path, f.SHA256})
	}
	var out migrateDone
	if home := c.home(r); home == c.opt.NodeID {
		out = c.hands.migrate(ctx, &in)
	} else if err := c.send(ctx, home, "migrate", in, &out); err != nil {
		return Migrated{Effect: state.EffectUnknown}, "", err
	}
	if out.Failed {
		err = fault.Newf(codeNamed(out.Code), op, "%.512s", out.Detail)
	}
	return Migrated{Ledger: out.Ledger, Effect: out.Effect}, out.Seed, err
}

// everywhere has an errand done by every member that may run workers, all at once, and returns when all have done it. One that cannot be
// reached is waited for: it may serve on by its last plan for as long as it is cut off, and an end that nobody confirmed is none
// (worker-deployment §4). What is removed from the fleet serves for nobody and is asked no more.
func (c *Control) everywhere(ctx context.Context, what string, in runErrand, own func(context.Context, *runErrand) error) error {
	var errs []error
	answers := make(chan error)
	asked := 0
	if c.opt.Fleet != nil {
		for _, member := range c.opt.Fleet.Serving() {
			if member != c.opt.NodeID {
				asked++
				go func() { answers <- c.send(ctx, member, what, in, &struct{}{}) }() // ends within workTimeout; read below
			}
		}
	}
	errs = append(errs, own(ctx, &in))
	for range asked {
		errs = append(errs, <-answers)
	}
	return errors.Join(errs...)
}

// inUse reports whether invocations of a version still run, here or on any member that serves. One that does not answer may run some.
func (c *Control) inUse(ctx context.Context, version string) bool {
	in := runErrand{Versions: []string{version}}
	if c.hands.inUse(&in).InUse {
		return true
	}
	if c.opt.Fleet == nil {
		return false
	}
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	answers := make(chan bool)
	asked := 0
	for _, member := range c.opt.Fleet.Serving() {
		if member == c.opt.NodeID {
			continue
		}
		asked++
		go func() { // ends with ctx at the latest; read below
			var out inUseDone
			err := c.opt.Fleet.ask(ctx, member, "hands/in-use", in, &out)
			answers <- err != nil || out.InUse
		}()
	}
	used := false
	for range asked {
		used = <-answers || used
	}
	return used
}
