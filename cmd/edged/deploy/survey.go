package deploy

import (
	"context"
	"encoding/json"
	"path"
	"slices"

	"edged/cmd/edged/manifest"
	"edged/control/client"
	"edged/control/form"
	"edged/internal/cronexpr"
	"edged/internal/fault"
)

// survey looks at what is there and collects what can be refused before anything is changed. It mutates nothing, but waits
// for what an earlier run left to the node.
func (d *deployer) survey(ctx context.Context) error {
	d.have, d.domains = map[string]*client.Resource{}, map[string]*client.Resource{}
	d.crons, d.consumers = map[string]*client.Resource{}, map[string]*client.Resource{}
	d.unfit = map[string]bool{}
	if _, err := d.opt.Client.Discover(ctx); err != nil {
		return err
	}
	if err := d.look(ctx, d.names.worker, form.ModuleWorkerURL, d.manifest.NameLine); err != nil {
		return err
	}
	if err := d.lookServices(ctx); err != nil {
		return err
	}
	if err := d.lookAttached(ctx); err != nil {
		return err
	}
	if err := d.chooseVersion(ctx); err != nil {
		return err
	}
	d.steps = d.plan()
	for _, s := range d.steps {
		if s.remove != nil {
			continue
		}
		if err := d.look(ctx, s.name, s.form, s.line); err != nil {
			return err
		}
	}
	if err := d.lookDeployed(ctx); err != nil {
		return err
	}
	d.blocked()
	return d.support(ctx)
}

// look finds the Resource of a name, which must be of the Form that this client gives it.
func (d *deployer) look(ctx context.Context, name, formURL string, line int) error {
	if name == "" || d.have[name] != nil {
		return nil
	}
	r, ok, err := d.opt.Client.Lookup(ctx, d.opt.Space, name)
	if err != nil {
		return failed("read", name, err)
	}
	if !ok {
		return nil
	}
	if r.Form != formURL {
		d.unfit[name] = true
		d.refuse(line, "%s: the name is taken by a %s (uid %s), and names are unique in a Space; this would be a %s", name, describeForm(r.Form, formURL), r.UID, describeForm(formURL, r.Form))
		return nil
	}
	if r, err = d.settled(ctx, r); err != nil {
		return failed("read", name, err)
	}
	if r != nil {
		d.have[name] = r
	}
	return nil
}

// describeForm is the short name of a Form, with its version where the other has the same.
func describeForm(formURL, other string) string {
	if Kind(formURL) != Kind(other) {
		return Kind(formURL)
	}
	return Kind(formURL) + " " + path.Base(formURL)
}

// refuse notes why nothing can be changed, and where the manifest asks for it.
func (d *deployer) refuse(line int, format string, args ...any) {
	d.faults = append(d.faults, d.manifest.Fault(line, format, args...))
}

// lookServices finds the workers that are bound: they have to be there.
func (d *deployer) lookServices(ctx context.Context) error {
	for _, b := range d.manifest.Bindings {
		if b.Kind != manifest.Service {
			continue
		}
		before := len(d.faults)
		if err := d.look(ctx, b.Target, form.ModuleWorkerURL, b.Line); err != nil {
			return err
		}
		if d.have[b.Target] == nil && len(d.faults) == before {
			d.refuse(b.Line, "binding %s: there is no ModuleWorker %q in Space %q yet: deploy that first", b.Name, b.Target, d.opt.Space)
		}
	}
	return nil
}

// lookAttached finds the attachments of this worker, whatever they are called.
func (d *deployer) lookAttached(ctx context.Context) error {
	worker := d.have[d.names.worker]
	if worker == nil {
		return nil
	}
	if err := d.look(ctx, d.names.endpoint, form.WorkerEndpointURL, d.manifest.NameLine); err != nil {
		return err
	}
	d.queues = map[string]string{}
	for _, formURL := range []string{form.CustomDomainURL, form.CronTriggerURL, form.QueueConsumerURL} {
		for r, err := range d.opt.Client.List(ctx, client.Filter{Space: d.opt.Space, Form: formURL}) {
			if err != nil {
				return failed("read", d.names.worker, err)
			}
			if attachment(r).Worker.UID != worker.UID {
				continue
			}
			if err := d.sort(ctx, r); err != nil {
				return err
			}
		}
	}
	return nil
}

// sort puts an attachment of this worker where it belongs.
func (d *deployer) sort(ctx context.Context, r *client.Resource) error {
	switch r.Form {
	case form.CustomDomainURL:
		d.domains[attachment(r).Hostname] = r
	case form.CronTriggerURL:
		canonical := canonicalOf(r)
		if d.crons[canonical] == nil && slices.ContainsFunc(d.manifest.Crons, func(c manifest.Cron) bool { return c.Canonical == canonical }) {
			d.crons[canonical] = r
			return nil
		}
		d.strays = append(d.strays, r)
	case form.QueueConsumerURL:
		uid := queueOf(r)
		if d.queues[uid] == "" {
			q, err := d.opt.Client.Read(ctx, uid)
			if err != nil && fault.CodeOf(err) != fault.NotFound {
				return failed("read", r.Name, err)
			}
			if err == nil {
				d.queues[uid] = q.Name
			}
		}
		if slices.ContainsFunc(d.manifest.Consumers, func(c manifest.Consumer) bool { return c.Queue == d.queues[uid] }) {
			d.consumers[d.queues[uid]] = r
			return nil
		}
		d.strays = append(d.strays, r)
	}
	return nil
}

// whatOf is what an attachment is for, as its name has it.
func (d *deployer) whatOf(r *client.Resource) string {
	if r.Form == form.CronTriggerURL {
		return canonicalOf(r)
	}
	return d.queues[queueOf(r)]
}

func canonicalOf(r *client.Resource) string {
	var spec cronSpec
	_ = json.Unmarshal(r.Spec, &spec) // one that cannot be read is like no other
	expr, err := cronexpr.Parse(spec.Cron)
	if err != nil {
		return spec.Cron
	}
	return expr.Canonical()
}

func queueOf(r *client.Resource) string {
	var spec consumerSpec
	_ = json.Unmarshal(r.Spec, &spec)
	return spec.Queue.UID
}

// lookDeployed reads the names of the versions that have traffic, and refuses a weight that cannot be given.
func (d *deployer) lookDeployed(ctx context.Context) error {
	d.versionNames = map[string]string{}
	if _, err := next(d.current(), "new", d.opt.Weight); err != nil {
		d.refuse(d.manifest.NameLine, "%s", fault.Detail(err))
	}
	for _, s := range d.current() {
		r, err := d.opt.Client.Read(ctx, s.Version)
		if err != nil {
			return failed("read", s.Version, err)
		}
		d.versionNames[s.Version] = r.Name
	}
	return nil
}

// support refuses, at its line, what the node has no Form for.
func (d *deployer) support(ctx context.Context) error {
	asked := map[string]bool{}
	for _, s := range d.steps {
		has, known := asked[s.form]
		if !known {
			answer, err := d.opt.Client.Support(ctx, s.form)
			if err != nil && fault.CodeOf(err) != fault.NotFound {
				return failed("read", Kind(s.form), err)
			}
			has = err == nil && answer.Supported
			asked[s.form] = has
		}
		if !has && s.remove == nil {
			d.unfit[s.name] = true
			d.refuse(s.line, "%s: %s", s.name, unsupportedText(s.form))
		}
	}
	return nil
}
