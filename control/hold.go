package control

import (
	"context"
	"net/http"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"

	"edged/control/artifact"
	"edged/internal/fault"
)

// holdsAtOnce bounds how many files a voter takes from another at the same time.
const holdsAtOnce = 4

// holdRequest asks a voter to make a tenant hold bytes, or whether it does.
type holdRequest struct {
	Tenant  []byte   `json:"tenant"` // bytes: a tenant need not be UTF-8
	Digests []string `json:"digests"`
}

func (h *holdRequest) parse() ([]artifact.Digest, error) {
	out := make([]artifact.Digest, len(h.Digests))
	ok := len(out) > 0 && len(out) <= artifact.MaxFiles+1 // and the manifest
	for i := 0; ok && i < len(out); i++ {
		out[i], ok = artifact.ParseDigest(h.Digests[i])
	}
	if !ok {
		return nil, fault.New(fault.Invalid, "control.hold", "a digest is malformed, or there are too many")
	}
	return out, nil
}

// hold takes what it lacks from the voter that asks, and returns when all is durable here.
func (c *Control) hold(ctx context.Context, caller string, in *holdRequest) error {
	digests, err := in.parse()
	if err != nil {
		return err
	}
	if caller == "" {
		return fault.New(fault.Denied, "control.hold", "only a voter may say what is to be held")
	}
	return c.holdFrom(ctx, []string{caller}, string(in.Tenant), digests)
}

func (c *Control) holdFrom(ctx context.Context, from []string, tenant string, digests []artifact.Digest) error {
	jobs, ctx := errgroup.WithContext(ctx)
	jobs.SetLimit(holdsAtOnce)
	for _, d := range digests {
		jobs.Go(func() error {
			err := c.artifacts.Hold(tenant, d)
			if fault.CodeOf(err) == fault.NotFound {
				err = c.pull(ctx, from, tenant, d)
			}
			return err
		})
	}
	return jobs.Wait()
}

// pull makes tenant hold bytes that come from the first of the members that has them.
func (c *Control) pull(ctx context.Context, from []string, tenant string, d artifact.Digest) error {
	err := error(fault.Newf(fault.Unavailable, "control.pull", "no other node can be asked for the bytes %s", d))
	for _, member := range from {
		if err = c.pullFrom(ctx, member, tenant, d); err == nil || ctx.Err() != nil {
			return err
		}
	}
	return err
}

func (c *Control) pullFrom(ctx context.Context, member, tenant string, d artifact.Digest) error {
	const op = "control.pull"
	ctx, cancel := context.WithTimeout(ctx, workTimeout)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, peerURL(member, "/blob/v1/"+d.String()), nil)
	if err != nil {
		return fault.Wrap(fault.Internal, op, err)
	}
	resp, err := c.opt.Fleet.Client.Do(req)
	if err != nil {
		return unreachable(op, member, err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return fault.Newf(fault.Unavailable, op, "node %s does not give the bytes %s: status %d", member, d, resp.StatusCode)
	}
	return c.artifacts.Keep(ctx, d, resp.Body, map[string]time.Time{tenant: time.Now()})
}

// otherVoters returns everybody else who gets the log, the leader first.
func (c *Control) otherVoters() ([]string, error) {
	servers, err := c.servers()
	if err != nil {
		return nil, err
	}
	var out []string
	leader := c.leader()
	for _, s := range servers {
		switch id := string(s.ID); id {
		case c.opt.NodeID:
		case leader:
			out = slices.Insert(out, 0, id)
		default:
			out = append(out, id)
		}
	}
	return out, nil
}

// spread returns when most voters hold the bytes, so that whoever leads next has them or finds them. Unavailable if that cannot be had.
func (c *Control) spread(ctx context.Context, tenant string, digests []artifact.Digest) error {
	if c.opt.Fleet == nil {
		return nil
	}
	in := holdRequest{Tenant: []byte(tenant)}
	for _, d := range digests {
		in.Digests = append(in.Digests, d.String())
	}
	voters, err := c.voters()
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, workTimeout)
	defer cancel() // who is not needed any more takes the bytes later (keepBundles)
	answers := make(chan error, len(voters))
	asked := 0
	for _, id := range voters {
		if id != c.opt.NodeID {
			asked++
			go func() { answers <- c.opt.Fleet.ask(ctx, id, "hold", in, &struct{}{}) }() // ends with ctx at the latest
		}
	}
	need := len(voters) / 2 // beside this one
	var last error
	for ; asked > 0 && need > 0; asked-- {
		if err := <-answers; err != nil {
			last = err
		} else {
			need--
		}
	}
	if need > 0 {
		return because(fault.Newf(fault.Unavailable, "control.spread", "too few voters can be reached to keep the bytes: %d more are needed", need), last)
	}
	return nil
}

func (c *Control) spreadOne(ctx context.Context, tenant string, d artifact.Digest) error {
	return c.spread(ctx, tenant, []artifact.Digest{d})
}

// findElsewhere is artifact.Options.Elsewhere. Most voters hold what an upload was acknowledged for, so that enough of them who do not are
// proof that nobody does.
func (c *Control) findElsewhere(ctx context.Context, tenant string, d artifact.Digest) (found bool, err error) {
	voters, err := c.voters()
	if err != nil {
		return false, err
	}
	type told struct {
		id   string
		held bool
		err  error
	}
	tell, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	answers := make(chan told, len(voters))
	asked := 0
	for _, id := range voters {
		if id != c.opt.NodeID {
			asked++
			go func() { // ends with tell at the latest
				var has heldAnswer
				err := c.opt.Fleet.ask(tell, id, "holds", holdRequest{[]byte(tenant), []string{d.String()}}, &has)
				answers <- told{id, has.Held, err}
			}()
		}
	}
	without, need := 1, len(voters)/2+1
	var last error
	for ; asked > 0 && without < need; asked-- {
		switch a := <-answers; {
		case a.err != nil:
			last = a.err
		case a.held:
			return true, c.pullFrom(ctx, a.id, tenant, d)
		default:
			without++
		}
	}
	if without < need {
		return false, because(fault.New(fault.Unavailable, "control.findElsewhere", "too few voters can be asked for the bytes"), last)
	}
	return false, nil
}

type heldAnswer struct {
	Held bool `json:"held"`
}

func (c *Control) holds(in *holdRequest) (any, error) {
	digests, err := in.parse()
	if err != nil {
		return nil, err
	}
	held, err := c.artifacts.Holds(string(in.Tenant), digests[0])
	return heldAnswer{held}, err
}

// blob opens bytes that a Resource of the tenant refers to; a voter that does not have them takes them from another.
func (c *Control) blob(ctx context.Context, tenant string, d artifact.Digest) (*artifact.Blob, error) {
	blob, err := c.artifacts.Open(d)
	if c.opt.Fleet == nil || fault.CodeOf(err) != fault.NotFound {
		return blob, err
	}
	from, err := c.otherVoters()
	if err != nil {
		return nil, err
	}
	if err := c.pull(ctx, from, tenant, d); err != nil {
		return nil, err
	}
	return c.artifacts.Open(d)
}
