package control

import (
	"context"
	"errors"
	"io"
	"slices"
	"time"

	"edged/control/artifact"
	"edged/control/form"
	"edged/control/state"
	"edged/internal/fault"
)

// inspectBundle has a bundle evaluated. That it does not load is an answer; an error means that there is none now.
func (c *Control) inspectBundle(ctx context.Context, want *state.Inspect) (*state.Inspected, error) {
	const op = "control.inspect"
	out := &state.Inspected{Bundle: want.Bundle}
	if c.opt.Inspect == nil {
		return nil, fault.New(fault.Unavailable, op, "this node cannot evaluate modules")
	}
	done, err := c.inspect.take(ctx, want.Tenant)
	if err != nil {
		return nil, fault.Wrap(fault.CodeOf(err), op, err)
	}
	defer done()
	in := Inspection{Tenant: want.Tenant, Entrypoint: want.Index.Entrypoint, Handlers: want.Handlers}
	for i := range want.Index.Files {
		m, err := c.module(ctx, want.Tenant, &want.Index.Files[i])
		if err != nil {
			return nil, err
		}
		in.Modules = append(in.Modules, m)
	}
	start := time.Now()
	ctx, cancel := context.WithTimeout(ctx, c.opt.InspectTimeout)
	defer cancel()
	exported, err := c.opt.Inspect(ctx, in)
	c.opt.Metrics.inspect.Observe(time.Since(start).Seconds())
	if err == nil {
		out.Exports = inOrder(exported)
		return out, nil
	}
	out.Code, out.Text = fault.NameOf(err), fault.Detail(err)
	if out.Text == "" {
		out.Text = "the module graph could not be evaluated"
	}
	if ctx.Err() == nil && isVerdict(err) {
		return out, nil
	}
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		out.Text = "the module graph did not settle in time"
		return out, nil
	}
	return nil, fault.Wrap(fault.Unavailable, op, err)
}

// isVerdict tells whether an error speaks of the modules (they do not load, or ran into a limit of their own) and not of
// this node.
func isVerdict(err error) bool {
	switch fault.CodeOf(err) {
	case fault.Invalid, fault.NotFound, fault.TooLarge, fault.Denied, fault.Conflict:
		return true
	case fault.Unavailable, fault.Canceled:
		return false
	}
	return fault.NamedOf(err) != nil && fault.NameOf(err) != "overloaded"
}

// inOrder lists exported handlers in the order in which they are compared, without unknown ones and repeats.
func inOrder(exported []string) []string {
	var out []string
	for _, h := range form.Handlers {
		if slices.Contains(exported, h) {
			out = append(out, h)
		}
	}
	return out
}

// module reads one verified file.
func (c *Control) module(ctx context.Context, tenant string, f *form.File) (Module, error) {
	const op = "control.inspect"
	digest, ok := artifact.ParseDigest(f.SHA256)
	if !ok {
		return Module{}, fault.New(fault.Internal, op, "")
	}
	blob, err := c.blob(ctx, tenant, digest)
	if err != nil {
		return Module{}, err
	}
	defer blob.Close()
	body := make([]byte, f.Size) // at most 16 MiB, checked when the bundle was verified
	if _, err := io.ReadFull(blob, body); err != nil {
		return Module{}, fault.Wrap(fault.Unavailable, op, err)
	}
	return Module{Path: f.Path, MediaType: f.MediaType, Bytes: body}, nil
}
