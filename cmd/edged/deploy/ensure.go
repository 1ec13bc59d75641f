package deploy

import (
	"context"
	"errors"
	"fmt"

	"golang.org/x/sync/errgroup"

	"edged/control/client"
	"edged/internal/fault"
)

// StepError says at which Resource a deploy stopped. Unwrap gives the reason.
type StepError struct {
	Action string // create, update, delete, upload, read
	Name   string
	Err    error
}

// Error names the Resource and the reason.
func (e *StepError) Error() string { return e.Action + " " + e.Name + ": " + e.Err.Error() }

// Unwrap returns the reason.
func (e *StepError) Unwrap() error { return e.Err }

func failed(action, name string, err error) error {
	if err == nil {
		return nil
	}
	return &StepError{action, name, err}
}

// ensure makes a Resource what it should be and returns it as it then is.
func (d *deployer) ensure(ctx context.Context, w *want) (*client.Resource, error) {
	have := d.have[w.name]
	switch action := w.action(have); action {
	case "create":
		return d.create(ctx, w, "created")
	case "unchanged":
		d.done(w, "unchanged", have)
		return have, nil
	case "repair":
		return d.update(ctx, w, have, "repaired")
	case "update":
		return d.update(ctx, w, have, "updated")
	case "replace":
		if err := d.remove(ctx, w, have); err != nil {
			return nil, err
		}
		return d.create(ctx, w, "replaced")
	}
	return nil, failed("update", w.name, fault.Newf(fault.Conflict, "deploy.ensure",
		"a %s of this name exists (uid %s) and is not what this manifest makes: delete or rename one of them", Kind(w.form), have.UID))
}

// action says what has to be done to make a settled Resource, nil if there is none, what it should be: create, unchanged,
// repair, update, replace, or "" if it is another one of that name.
func (w *want) action(have *client.Resource) string {
	switch {
	case have == nil:
		return "create"
	case have.Phase == "idle" && w.right(have):
		return "unchanged"
	case w.equalSpec(have):
		return "repair"
	case w.mutable:
		return "update"
	case have.Phase == "error" && w.content != nil:
		// Another node's address was in it. Nothing can refer to a bundle that was never verified.
		return "replace"
	}
	return ""
}

// settled returns the Resource as it is once nothing is unfinished on it; nil if it is gone. What an earlier run left to the
// node is waited for here.
func (d *deployer) settled(ctx context.Context, r *client.Resource) (*client.Resource, error) {
	for r.Phase == "pending" || r.Phase == "deleting" {
		op, err := d.opt.Client.Operation(ctx, r.LastOperation)
		if err == nil {
			_, err = d.opt.Client.Wait(ctx, op)
		}
		if ended := (*client.OperationError)(nil); err != nil && !errors.As(err, &ended) {
			return nil, err
		} else if ended != nil && !ended.Operation.Terminal() {
			return nil, err
		}
		fresh, err := d.opt.Client.Read(ctx, r.UID)
		if fault.CodeOf(err) == fault.NotFound {
			return nil, nil
		} else if err != nil {
			return nil, err
		}
		r = fresh
	}
	return r, nil
}

func (d *deployer) create(ctx context.Context, w *want, action string) (*client.Resource, error) {
	if err := d.upload(ctx, w); err != nil {
		return nil, failed("upload", w.name, err)
	}
	op, err := d.opt.Client.Create(ctx, client.Create{Form: w.form, Space: d.opt.Space, Name: w.name, Spec: w.spec, PrivateInputs: w.private}, client.NewKey())
	return d.finish(ctx, w, "create", action, op, err)
}

func (d *deployer) update(ctx context.Context, w *want, r *client.Resource, action string) (*client.Resource, error) {
	if err := d.upload(ctx, w); err != nil {
		return nil, failed("upload", w.name, err)
	}
	op, err := d.opt.Client.Update(ctx, r.UID, r.Generation, w.spec, nil, client.NewKey())
	return d.finish(ctx, w, "update", action, op, err)
}

func (d *deployer) finish(ctx context.Context, w *want, verb, action string, op *client.Operation, err error) (*client.Resource, error) {
	if err == nil {
		op, err = d.opt.Client.Wait(ctx, op)
	}
	if err != nil {
		return nil, failed(verb, w.name, err)
	}
	r, err := d.opt.Client.Read(ctx, op.ResourceUID)
	if err != nil {
		return nil, failed("read", w.name, err)
	}
	d.done(w, action, r)
	return r, nil
}

func (d *deployer) remove(ctx context.Context, w *want, r *client.Resource) error {
	op, err := d.opt.Client.Delete(ctx, r.UID, r.Generation, client.NewKey())
	if err == nil {
		_, err = d.opt.Client.Wait(ctx, op)
	}
	return failed("delete", w.name, err)
}

// parallelUploads bounds connections, and memory: each holds a file of up to 16 MiB.
const parallelUploads = 4

// upload makes the node hold what a bundle consists of.
func (d *deployer) upload(ctx context.Context, w *want) error {
	if w.content == nil {
		return nil
	}
	group, gctx := errgroup.WithContext(ctx)
	group.SetLimit(parallelUploads)
	seen := map[string]bool{}
	for i := range w.content.Files {
		f := &w.content.Files[i]
		if seen[f.SHA256] {
			continue
		}
		seen[f.SHA256] = true
		group.Go(func() error {
			content, err := f.read()
			if err == nil {
				_, _, err = d.opt.Client.Upload(gctx, content)
			}
			if err != nil {
				return fmt.Errorf("%s: %w", f.Path, err)
			}
			return nil
		})
	}
	if err := group.Wait(); err != nil {
		return err
	}
	doc, err := w.content.manifest(d.opt.Client)
	if err != nil {
		return err
	}
	_, _, err = d.opt.Client.Upload(ctx, doc)
	return err
}
