package deploy

import (
	"context"
	"encoding/json"
	"path/filepath"
	"slices"
	"strings"

	"edged/cmd/edged/manifest"
	"edged/control/client"
	"edged/control/form"
	"edged/internal/fault"
)

// Options is what a deploy needs beside the manifest.
type Options struct {
	Client *client.Client // required
	Space  string         // "" means default
	Weight int            // basis points for the new version, beside the current one; 0 means all
	// Done is told every step when it is finished. nil tells nobody.
	Done func(Step)
}

type deployer struct {
	opt      Options
	manifest *manifest.Manifest
	code     *FileSet // nil without
	assets   *FileSet // nil without
	names    names
	have     map[string]*client.Resource // what stood there at the start, by name
	domains  map[string]*client.Resource // this worker's custom domains at the start, by host name
	report   *Report
}

// Run deploys the worker that m describes and waits until everything has settled. The report, also of a run that fails,
// says what was done until then. An error in the sources is manifest.Faults; one at a Resource is a *StepError; both
// leave a state that the next run takes up.
func Run(ctx context.Context, opt Options, m *manifest.Manifest) (*Report, error) {
	if opt.Space == "" {
		opt.Space = "default"
	}
	if opt.Weight == 0 {
		opt.Weight = all
	}
	d := &deployer{opt: opt, manifest: m, report: &Report{Name: m.Name, Space: opt.Space}}
	if opt.Weight < 1 || opt.Weight > all {
		return d.report, fault.Newf(fault.Invalid, "deploy.Run", "a weight is 1 to %d basis points, not %d", all, opt.Weight)
	}
	if err := d.build(ctx); err != nil {
		return d.report, err
	}
	if err := d.survey(ctx); err != nil {
		return d.report, err
	}
	return d.report, d.apply(ctx)
}

// build makes the files of the worker; it talks to nobody.
func (d *deployer) build(ctx context.Context) (err error) {
	m := d.manifest
	if m.Main != "" {
		d.code, d.report.Warnings, err = Bundle(ctx, filepath.Dir(m.File), m.Main, m.Handlers)
		if err != nil {
			return err
		}
	}
	if m.Assets != nil {
		if d.assets, err = assetSet(m.Assets); err != nil {
			return err
		}
	}
	d.names, err = nameAll(m, d.code, d.assets)
	return err
}

// survey looks at what is there and refuses what can be refused before anything is changed.
func (d *deployer) survey(ctx context.Context) error {
	d.have, d.domains = map[string]*client.Resource{}, map[string]*client.Resource{}
	if _, err := d.opt.Client.Discover(ctx); err != nil {
		return err
	}
	n := d.names
	for _, w := range []struct{ name, form string }{
		{n.worker, form.ModuleWorkerURL}, {n.bundle, form.WorkerBundleURL}, {n.assets, form.StaticAssetBundleURL},
		{n.version, form.WorkerVersionURL}, {n.deployment, form.WorkerDeploymentURL}, {n.endpoint, form.WorkerEndpointURL},
	} {
		if err := d.look(ctx, w.name, w.form); err != nil {
			return err
		}
	}
	if err := d.lookDomains(ctx); err != nil {
		return err
	}
	_, err := next(d.current(), "new", d.opt.Weight)
	return err
}

// look finds the Resource of a name, which must be of the Form that this client gives it.
func (d *deployer) look(ctx context.Context, name, formURL string) error {
	if name == "" {
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
		return failed("create", name, fault.Newf(fault.Conflict, "deploy.survey",
			"the name is taken by a %s (uid %s), and names are unique in a Space; this would be a %s", Kind(r.Form), r.UID, Kind(formURL)))
	}
	d.have[name] = r
	return nil
}

// lookDomains finds the custom domains of this worker, whatever they are called, and the names of those to be made.
func (d *deployer) lookDomains(ctx context.Context) error {
	if worker := d.have[d.names.worker]; worker != nil {
		for r, err := range d.opt.Client.List(ctx, client.Filter{Space: d.opt.Space, Form: form.CustomDomainURL}) {
			if err != nil {
				return failed("read", d.names.worker, err)
			}
			if spec := attachment(r); spec.Worker.UID == worker.UID {
				d.domains[spec.Hostname] = r
			}
		}
	}
	for _, host := range d.manifest.Domains {
		if d.domains[host] == nil {
			if err := d.look(ctx, domainName(d.names.worker, host), form.CustomDomainURL); err != nil {
				return err
			}
		}
	}
	return nil
}

// current is the distribution before this run.
func (d *deployer) current() []Share {
	if r := d.have[d.names.deployment]; r != nil {
		return active(r.Observed)
	}
	return nil
}

// apply makes everything, in the order in which each finds what it refers to.
func (d *deployer) apply(ctx context.Context) error {
	bundle, err := d.ensureArtifact(ctx, form.WorkerBundleURL, d.names.bundle, d.code)
	if err != nil {
		return err
	}
	assets, err := d.ensureArtifact(ctx, form.StaticAssetBundleURL, d.names.assets, d.assets)
	if err != nil {
		return err
	}
	worker, err := d.ensure(ctx, &want{form: form.ModuleWorkerURL, name: d.names.worker, spec: struct{}{}})
	if err != nil {
		return err
	}
	version, err := d.ensureVersion(ctx, d.versionSpec(worker.UID, bundle, assets))
	if err != nil {
		return err
	}
	if err := d.ensureDeployment(ctx, worker.UID, version); err != nil {
		return err
	}
	if err := d.attach(ctx, worker.UID); err != nil {
		return err
	}
	d.keep(worker.UID)
	return nil
}

func (d *deployer) ensureArtifact(ctx context.Context, formURL, name string, set *FileSet) (uid string, err error) {
	if set == nil {
		return "", nil
	}
	w, err := d.artifact(formURL, name, set)
	if err != nil {
		return "", err
	}
	r, err := d.ensure(ctx, w)
	if err != nil {
		return "", err
	}
	return r.UID, nil
}

func (d *deployer) ensureVersion(ctx context.Context, spec versionSpec) (*client.Resource, error) {
	w := &want{form: form.WorkerVersionURL, name: d.names.version, spec: spec, note: describeVersion(spec)}
	r, err := d.ensure(ctx, w)
	if err != nil {
		return nil, err
	}
	var observed struct{ Ready bool }
	if json.Unmarshal(r.Observed, &observed) != nil || !observed.Ready {
		return nil, failed("read", w.name, fault.Newf(fault.Conflict, "deploy.version", "the version is not ready: %s", conditions(r)))
	}
	d.report.Version = r.UID
	return r, nil
}

func conditions(r *client.Resource) string {
	if len(r.HostConditions) == 0 {
		return "the node does not say why"
	}
	return string(r.HostConditions)
}

func (d *deployer) ensureDeployment(ctx context.Context, worker string, version *client.Resource) error {
	shares, err := next(d.current(), version.UID, d.opt.Weight)
	if err != nil {
		return err
	}
	spec := deploymentOf(worker, shares)
	d.report.Weights = shares
	names := map[string]string{version.UID: version.Name}
	for _, s := range shares {
		if s.Version == version.UID {
			continue
		}
		other, err := d.opt.Client.Read(ctx, s.Version)
		if err != nil {
			return failed("read", s.Version, err)
		}
		names[s.Version] = other.Name
	}
	_, err = d.ensure(ctx, &want{
		form: form.WorkerDeploymentURL, name: d.names.deployment, spec: spec, mutable: true, note: describeShares(shares, names),
		same: func(r *client.Resource) bool {
			var have deploymentSpec
			return json.Unmarshal(r.Spec, &have) == nil && spec.equal(have)
		},
	})
	return err
}

// attach makes the addresses.
func (d *deployer) attach(ctx context.Context, worker string) error {
	if d.manifest.Endpoint {
		r, err := d.ensure(ctx, &want{form: form.WorkerEndpointURL, name: d.names.endpoint, spec: attachmentSpec{Worker: ref{worker}}})
		if err != nil {
			return err
		}
		d.address(r)
	}
	for _, host := range d.manifest.Domains {
		name := domainName(d.names.worker, host)
		if r := d.domains[host]; r != nil {
			name = r.Name
			d.have[name] = r
		}
		r, err := d.ensure(ctx, &want{form: form.CustomDomainURL, name: name, spec: attachmentSpec{ref{worker}, host}})
		if err != nil {
			return err
		}
		d.address(r)
	}
	return nil
}

func (d *deployer) address(r *client.Resource) {
	var a Address
	if json.Unmarshal(r.Output, &a) == nil && a.URL != "" {
		d.report.Addresses = append(d.report.Addresses, a)
	}
}

// keep reports the addresses that the manifest no longer asks for: taking a name off the net is a decision of its own.
func (d *deployer) keep(worker string) {
	if r := d.have[d.names.endpoint]; r != nil && !d.manifest.Endpoint && attachment(r).Worker.UID == worker {
		d.report.Kept = append(d.report.Kept, keptOf(r))
	}
	for host, r := range d.domains {
		if !slices.Contains(d.manifest.Domains, host) {
			d.report.Kept = append(d.report.Kept, keptOf(r))
		}
	}
	slices.SortFunc(d.report.Kept, func(a, b Kept) int { return strings.Compare(a.Name, b.Name) })
}
