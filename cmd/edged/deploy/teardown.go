package deploy

import (
	"context"
	"encoding/json"
	"strings"

	"edged/control/client"
	"edged/control/form"
	"edged/internal/fault"
)

// Dependents is everything that goes with a worker, in the legal order, and what stands in the way.
type Dependents struct {
	Remove  []Step `json:"remove"`  // consumers, schedules, addresses, deployment, versions, bundles, migrations, last the worker
	Blocked []Step `json:"blocked"` // versions of other workers that call this one

	resources []*client.Resource // of Remove
}

// attachmentForms are removed in this order: what brings new work in goes first.
var attachmentForms = []string{form.QueueConsumerURL, form.CronTriggerURL, form.CustomDomainURL, form.WorkerEndpointURL}

// Dependents finds what has to go before the worker can, and the worker. Data Resources are not among it: other workers may
// use them, and what is in them is gone for ever.
func (w *Worker) Dependents(ctx context.Context) (*Dependents, error) {
	out := &Dependents{Remove: []Step{}, Blocked: []Step{}}
	for _, formURL := range attachmentForms {
		if err := w.each(ctx, formURL, func(r *client.Resource) {
			if attachment(r).Worker.UID == w.UID {
				out.add(r)
			}
		}); err != nil {
			return nil, err
		}
	}
	if w.deployment != nil {
		out.add(w.deployment)
	}
	kept := map[string]bool{} // bundles that versions of others use
	mine := map[string]bool{}
	if err := w.each(ctx, form.WorkerVersionURL, func(r *client.Resource) {
		var spec versionSpec
		_ = json.Unmarshal(r.Spec, &spec) // one that cannot be read refers to nothing
		uses := kept
		if spec.Worker.UID == w.UID {
			uses = mine
			out.add(r)
		} else {
			out.blockedBy(r, spec.Services, w.UID)
		}
		if spec.Bundle != nil {
			uses[spec.Bundle.UID] = true
		}
		if spec.Assets != nil {
			uses[spec.Assets.Bundle.UID] = true
		}
	}); err != nil {
		return nil, err
	}
	if err := w.artifacts(ctx, out, mine, kept); err != nil {
		return nil, err
	}
	r, err := w.c.Read(ctx, w.UID)
	if err != nil {
		return nil, failed("read", w.Name, err)
	}
	out.add(r)
	return out, nil
}

// artifacts adds what was made for this worker and nobody else uses.
func (w *Worker) artifacts(ctx context.Context, out *Dependents, mine, kept map[string]bool) error {
	for _, kind := range []struct{ form, role string }{
		{form.WorkerBundleURL, "bundle"}, {form.StaticAssetBundleURL, "assets"}, {form.MigrationURL, "migration"}, {form.SQLiteMigrationsURL, "migrations"},
	} {
		if err := w.each(ctx, kind.form, func(r *client.Resource) {
			if !kept[r.UID] && (mine[r.UID] || strings.HasPrefix(r.Name, w.Name+"."+kind.role+".")) {
				out.add(r)
			}
		}); err != nil {
			return err
		}
	}
	return nil
}

// each ranges over the Resources of a Form in the worker's Space; a Form that the node does not have, has none.
func (w *Worker) each(ctx context.Context, formURL string, do func(*client.Resource)) error {
	for r, err := range w.c.List(ctx, client.Filter{Space: w.Space, Form: formURL}) {
		if err != nil {
			return failed("read", Kind(formURL), err)
		}
		do(r)
	}
	return nil
}

func (d *Dependents) add(r *client.Resource) {
	s := Step{Action: "delete", Kind: Kind(r.Form), Name: r.Name, UID: r.UID}
	var a Address
	if json.Unmarshal(r.Output, &a) == nil {
		s.Note = a.Hostname
	}
	d.Remove, d.resources = append(d.Remove, s), append(d.resources, r)
}

func (d *Dependents) blockedBy(r *client.Resource, services []bound, worker string) {
	for _, b := range services {
		if b.Resource.UID == worker {
			d.Blocked = append(d.Blocked, Step{Action: "keep", Kind: Kind(r.Form), Name: r.Name, UID: r.UID, Note: "binds it as " + b.Name})
		}
	}
}

// Teardown deletes everything of d, in its order, and waits for each; done is told every step when it is finished. A teardown
// that failed half-way is taken up by the next: the worker itself goes last.
func (w *Worker) Teardown(ctx context.Context, d *Dependents, done func(Step)) error {
	if len(d.Blocked) > 0 {
		return fault.Newf(fault.Conflict, "deploy.Teardown", "%s %s: delete or change that first", d.Blocked[0].Name, d.Blocked[0].Note)
	}
	dep := &deployer{opt: Options{Client: w.c}}
	for i, r := range d.resources {
		step := d.Remove[i]
		r, err := dep.settled(ctx, r)
		if err != nil {
			return failed("read", step.Name, err)
		}
		if r != nil {
			if err := dep.remove(ctx, &want{name: step.Name}, r); err != nil {
				return err
			}
		}
		step.Action = "deleted"
		done(step)
	}
	return nil
}
