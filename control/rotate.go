package control

import (
	"context"
	"slices"

	"edged/control/seal"
	"edged/control/state"
	"edged/internal/fault"
)

// RotateKey makes a fresh node key, seals everything with it anew while the node serves, and forgets the old keys once no
// record and no plan needs them. It may be repeated: an interrupted rotation is finished by the next. It returns how many
// sealed records were rewritten. Backups made before need the key file as it was then.
//
// In a fleet nothing is sealed with the fresh key before most voters keep it. From then on it is a fact of the control log which key seals: the
// one that the comparison key is sealed with (markedKey).
func (c *Control) RotateKey(ctx context.Context) (resealed int, err error) {
	c.secrets.rotating.Lock()
	defer c.secrets.rotating.Unlock()
	if err := c.forgetKeys(); err != nil { // of rotations that did not come so far
		return 0, err
	}
	if err := c.secrets.ring.Rotate(); err != nil {
		return 0, err
	}
	fresh := c.secrets.ring.Newest()
	if err := c.spreadKey(ctx, fresh); err != nil {
		return 0, err
	}
	return c.finishRotation(ctx, fresh)
}

// markedKey is the id of the key that seals, as the control log has it; "" while there is none.
func (c *Control) markedKey() string { return seal.Box(c.state.Marker()).KeyID() }

// spreadKey has most of the voters keep a key, so that what is sealed with it is not lost with this node.
func (c *Control) spreadKey(ctx context.Context, id string) error {
	if c.opt.Fleet == nil || c.opt.Fleet.Keys == nil {
		return nil
	}
	voters, err := c.voters()
	if err != nil {
		return err
	}
	want, have := keyWanted{id}, 0
	for _, v := range voters {
		ask, cancel := context.WithTimeout(ctx, askTimeout)
		if v == c.opt.NodeID || c.opt.Fleet.ask(ask, v, "keys", want, &want) == nil {
			have++
		}
		cancel()
	}
	if most := len(voters)/2 + 1; have < most {
		return fault.Newf(fault.Unavailable, "control.RotateKey", "only %d of %d voters could be given the new key, %d are needed: repeat the rotation when they are there",
			have, len(voters), most)
	}
	return nil
}

// keyWanted is what a leader asks another voter to have.
type keyWanted struct {
	ID string `json:"id"` // of a key, not the key
}

// takeKey brings the node key file up to date and returns nil if it then has the key.
func (c *Control) takeKey(ctx context.Context, want keyWanted) error {
	const op = "control.takeKey"
	if c.opt.Fleet.Keys == nil {
		return fault.New(fault.Unavailable, op, "this node has no way to the keys of others")
	}
	if err := c.opt.Fleet.Keys(ctx); err != nil {
		return fault.Wrap(fault.Unavailable, op, err)
	}
	if !slices.Contains(c.secrets.ring.IDs(), want.ID) {
		return fault.New(fault.Unavailable, op, "the key is not among those that the others gave")
	}
	return nil
}

// resumeRotation finishes a rotation that a restart interrupted, or one whose values could not be opened then. In a fleet one that most voters
// do not know of is not begun again by itself: it is forgotten.
func (c *Control) resumeRotation(ctx context.Context) {
	c.secrets.rotating.Lock()
	defer c.secrets.rotating.Unlock()
	if len(c.secrets.ring.IDs()) == 1 {
		return
	}
	key := c.secrets.ring.Current()
	if c.opt.Fleet == nil {
		key = c.secrets.ring.Newest()
	}
	if _, err := c.finishRotation(ctx, key); err != nil && ctx.Err() == nil {
		c.opt.Log.Warn("the rotation of the node key is not finished", "err", err)
	}
}

// finishRotation seals everything with a key and forgets those that nothing is sealed with then.
func (c *Control) finishRotation(ctx context.Context, key string) (resealed int, err error) {
	c.secrets.underWay.Lock() // whoever sealed with the old key has committed by now
	c.secrets.ring.Use(key)
	todo, err := c.resealings()
	c.secrets.underWay.Unlock()
	if err != nil {
		return 0, err
	}
	for _, cmd := range todo {
		if ctx.Err() != nil {
			return resealed, fault.Wrap(fault.CodeOf(ctx.Err()), "control.RotateKey", ctx.Err())
		}
		if _, err := c.submit(cmd); err != nil {
			return resealed, err
		}
		resealed++
	}
	if err := c.plans.reach(ctx, c.machine.planned.Load()); err != nil { // the last plan is on disk, under the new key
		return resealed, fault.Wrap(fault.CodeOf(err), "control.RotateKey", err)
	}
	return resealed, c.forgetKeys()
}

func (c *Control) forgetKeys() error {
	used := c.keysInUse()
	return c.secrets.ring.Forget(func(id string) bool { return used[id] })
}

// resealings returns the commands that put under the current key what is under another. What cannot be opened stays as it
// is: its key may come back.
func (c *Control) resealings() ([]*state.Command, error) {
	var todo []*state.Command
	if box, err := c.secrets.ring.ResealMarker(c.state.Marker()); err != nil {
		return nil, err
	} else if seal.Box(c.state.Marker()).KeyID() != box.KeyID() {
		todo = append(todo, &state.Command{Kind: state.Reseal, Secret: box})
	}
	if a, err := c.resealedAuthority(); err != nil {
		return nil, err
	} else if a != nil {
		todo = append(todo, &state.Command{Kind: state.Reseal, Fleet: &state.FleetChange{Authority: a}})
	}
	c.state.Each(func(r *state.Resource) bool {
		if s := r.Secrets; s != nil {
			if boxes := c.resealed(r.Tenant, r.UID, s.Names, s.Boxes); boxes != nil {
				todo = append(todo, &state.Command{Kind: state.Reseal, UID: r.UID, Inputs: &state.Inputs{Boxes: boxes}})
			}
		}
		return true
	})
	for _, op := range c.state.Unfinished() {
		if in := op.Command.Inputs; in != nil {
			if boxes := c.resealed(op.Tenant, op.Resource, in.Names, in.Boxes); boxes != nil {
				todo = append(todo, &state.Command{Kind: state.Reseal, Operation: op.ID, Inputs: &state.Inputs{Boxes: boxes}})
			}
		}
	}
	return todo, nil
}

// resealed returns boxes under the current key; nil if all are already, or one cannot be opened.
func (c *Control) resealed(tenant, uid string, names []string, boxes [][]byte) [][]byte {
	out, moved := make([][]byte, len(boxes)), false
	for i, box := range boxes {
		fresh, err := c.secrets.ring.Reseal(box, inputContext(tenant, uid, names[i])...)
		if err != nil {
			return nil
		}
		out[i], moved = fresh, moved || seal.Box(box).KeyID() != fresh.KeyID()
	}
	if !moved {
		return nil
	}
	return out
}

// keysInUse returns the ids of the keys that something stored is sealed with.
func (c *Control) keysInUse() map[string]bool {
	used := map[string]bool{seal.Box(c.state.Marker()).KeyID(): true}
	note := func(boxes [][]byte) {
		for _, box := range boxes {
			used[seal.Box(box).KeyID()] = true
		}
	}
	if a := c.state.Fleet().Authority; a != nil {
		note([][]byte{a.Key, a.Gossip})
	}
	c.state.Each(func(r *state.Resource) bool {
		if r.Secrets != nil {
			note(r.Secrets.Boxes)
		}
		return true
	})
	for _, op := range c.state.Unfinished() {
		if op.Command.Inputs != nil {
			note(op.Command.Inputs.Boxes)
		}
	}
	return used
}
