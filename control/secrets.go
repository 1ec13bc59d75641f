package control

import (
	"context"
	"maps"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"edged/control/api"
	"edged/control/plan"
	"edged/control/rules"
	"edged/control/seal"
	"edged/control/state"
)

// keyFile holds the keys that private inputs are sealed with; it is not part of a backup.
const keyFile = "node.key"

// secrets seals and compares private inputs. The state keeps what it makes and never sees a value.
type secrets struct {
	ring   *seal.Ring
	marker atomic.Pointer[seal.Marker] // nil until readySecrets

	// underWay is held for reading from the sealing of a request's values to their commit, so that a rotation of the key
	// can wait for all that were sealed with the old one.
	underWay sync.RWMutex
	rotating sync.Mutex // one rotation at a time; taken before underWay
}

func openSecrets(dataDir string) (*secrets, error) {
	ring, err := seal.Open(filepath.Join(dataDir, keyFile))
	if err != nil {
		return nil, err
	}
	return &secrets{ring: ring}, nil
}

// inputContext is what a value is sealed for: it opens in no other place.
func inputContext(tenant, uid, name string) []string {
	return []string{"private input", tenant, uid, name}
}

// marked makes of values what can be compared, without the values themselves. key is the place of the request's
// idempotency record, uid the Resource's.
func (s *secrets) marked(values api.Private, uid, key string) *state.Inputs {
	if len(values) > state.MaxInputs {
		return &state.Inputs{TooMany: true}
	}
	m := s.marker.Load()
	in := &state.Inputs{Names: slices.Sorted(maps.Keys(values)), Marker: m.ID()}
	whole := []string{"request", key}
	for _, name := range in.Names {
		value := values[name]
		if value == "" && in.Blank == "" {
			in.Blank = name
		}
		in.Marks = append(in.Marks, m.Mark("value", uid, name, value))
		whole = append(whole, name, value)
	}
	in.Whole = m.Mark(whole...)
	return in
}

// sealed is marked with the sealed values, which expire unless their Operation begins before.
func (s *secrets) sealed(values api.Private, tenant, uid, key string, expires int64) (*state.Inputs, error) {
	in := s.marked(values, uid, key)
	in.Expires = expires
	for _, name := range in.Names {
		box, err := s.ring.Seal([]byte(values[name]), inputContext(tenant, uid, name)...)
		if err != nil {
			return nil, err
		}
		in.Boxes = append(in.Boxes, box)
	}
	return in, nil
}

// readySecrets opens the comparison key, makes one if there is none that can be opened, and finds out whose sealed values
// can be. Without the right node key nothing is lost yet: it can be put back for the next start.
func (c *Control) readySecrets() error {
	var marker *seal.Marker
	c.secrets.ring.Use(c.markedKey())
	stored, err := c.state.Marker(), error(nil)
	if stored != nil {
		if marker, err = c.secrets.ring.OpenMarker(stored); err != nil {
			c.opt.Log.Error("private inputs cannot be compared any more: the node key file does not fit this control state", "err", err,
				"do", "put the node.key of this control state back and start the node again")
		}
	}
	if marker == nil {
		var box seal.Box
		if marker, box, err = c.secrets.ring.NewMarker(); err != nil {
			return err
		}
		if _, err := c.submit(&state.Command{Kind: state.SetMarker, Secret: box}); err != nil {
			return err
		}
		c.secrets.ring.Use(box.KeyID())
	}
	c.secrets.marker.Store(marker)
	return c.checkSecrets()
}

// checkSecrets brings what the state says of sealed values in line with what can be opened. Marks of another comparison
// key are made anew from the values.
func (c *Control) checkSecrets() error {
	var changed []*state.Command
	c.state.Each(func(r *state.Resource) bool {
		s := r.Secrets
		if s == nil || s.Boxes == nil {
			return true
		}
		values, err := c.open(r.Tenant, r.UID, s.Names, s.Boxes)
		cmd := &state.Command{Kind: state.SecretsAre, UID: r.UID, Lost: err != nil}
		if err == nil && s.Marker != c.secrets.marker.Load().ID() {
			cmd.Inputs = c.secrets.marked(values, r.UID, "")
		}
		if cmd.Lost != s.Lost || cmd.Inputs != nil {
			changed = append(changed, cmd)
		}
		return true
	})
	for _, cmd := range changed {
		if cmd.Lost {
			c.opt.Log.Error("the sealed values of a version cannot be opened; it is not ready", "version", cmd.UID,
				"do", "put the node.key that sealed them back, or make a new version with the values")
		}
		if _, err := c.submit(cmd); err != nil {
			return err
		}
	}
	return nil
}

// open returns the values of boxes by name.
func (c *Control) open(tenant, uid string, names []string, boxes [][]byte) (api.Private, error) {
	out := make(api.Private, len(boxes))
	for i, box := range boxes {
		plain, err := c.secrets.ring.Open(box, inputContext(tenant, uid, names[i])...)
		if err != nil {
			return nil, err
		}
		out[names[i]] = string(plain)
		clear(plain)
	}
	return out, nil
}

// Secrets returns the values of a version's sensitive variables by name, for its sandbox alone; the map is the caller's.
// It needs no current state, so that a node can serve its last plan. The error is a Conflict when a value cannot be opened.
func (c *Control) Secrets(v *plan.Version) (map[string]string, error) { return c.secrets.ofVersion(v) }

func (s *secrets) ofVersion(v *plan.Version) (map[string]string, error) {
	out := make(map[string]string, len(v.Secrets))
	for name, box := range v.Secrets {
		plain, err := s.ring.Open(box, inputContext(v.Tenant, v.UID, name)...)
		if err != nil {
			return nil, err
		}
		out[name] = string(plain)
		clear(plain)
	}
	return out, nil
}

// replenish is R10. Only what changes something goes through the log.
func (c *Control) replenish(_ context.Context, cmd *state.Command, values api.Private) (state.Outcome, error) {
	c.secrets.underWay.RLock()
	defer c.secrets.underWay.RUnlock()
	cmd.At = time.Now().UnixMilli()
	if op := c.state.Operation(cmd.Operation); op != nil { // whose it is, is judged below
		in, err := c.secrets.sealed(values, op.Tenant, op.Resource, op.Key, cmd.At+c.opt.TransferLife.Milliseconds())
		if err != nil {
			return state.Outcome{}, err
		}
		cmd.Inputs = in
	}
	out := c.state.JudgeReplenish(cmd)
	if out.Refusal != nil || out.Operation.Status != state.Waiting {
		return out, nil
	}
	return c.submit(cmd)
}

// comparable reports whether the private inputs of an Operation could still be compared with others.
func (c *Control) comparable(op *state.Operation) bool {
	in := op.Command.Inputs
	return in == nil || in.Marker == c.secrets.marker.Load().ID()
}

// lacking says why a queued Operation cannot have its private inputs, "" if it can or needs none.
func (c *Control) lacking(op *state.Operation) state.InputReason {
	in := op.Command.Inputs
	switch {
	case op.Status != state.Queued || in == nil || len(in.Names) == 0:
		return ""
	case in.Boxes == nil || time.Now().UnixMilli() > in.Expires:
		return state.InputsExpired
	}
	if _, err := c.open(op.Tenant, op.Resource, in.Names, in.Boxes); err != nil {
		return state.InputsUnavailable
	}
	return ""
}

// hasInputs reports whether an Operation may begin. One whose values are gone waits for them; one that could not even
// compare what it is given fails, since nothing of it was begun (host-api §8).
func (c *Control) hasInputs(op *state.Operation) bool {
	why := c.lacking(op)
	switch {
	case why == "":
		return true
	case c.comparable(op):
		c.tell(&state.Command{Kind: state.AwaitInput, Operation: op.ID, Reason: why})
	case c.tell(&state.Command{Kind: state.StartOperation, Operation: op.ID}):
		c.tell(&state.Command{Kind: state.EndOperation, Operation: op.ID, Effect: state.EffectNone, Seed: rules.InputsUnverifiable,
			Message: "the private inputs and what to compare them with are lost"})
	}
	return false
}

// expireInputs takes the values from Operations that have waited for their turn for too long.
func (c *Control) expireInputs() {
	for _, op := range c.state.Unfinished() {
		if c.lacking(op) == state.InputsExpired {
			c.hasInputs(op)
		}
	}
}
