package deploy

import (
	"context"
	"encoding/json"
	"path/filepath"
	"slices"

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
	// Secret returns the value of a secret, "" if there is none; it is asked only when a new version is due. nil knows none.
	Secret        func(name string) string
	RotateSecrets bool // make a new version although nothing but the values may have changed
	DryRun        bool // change nothing: the report says what would be done and what would be refused
}

type deployer struct {
	opt        Options
	manifest   *manifest.Manifest
	code       *FileSet            // nil without
	assets     *FileSet            // nil without
	migrations map[string]*FileSet // by the database's name
	names      names
	values     map[string]string // of secrets, if a new version is due

	have         map[string]*client.Resource // what stood there at the start, by name
	domains      map[string]*client.Resource // this worker's custom domains at the start, by host name
	crons        map[string]*client.Resource // its schedules that the manifest asks for, by canonical expression
	consumers    map[string]*client.Resource // its consumers that the manifest asks for, by the queue's name
	strays       []*client.Resource          // its schedules and consumers that the manifest does not ask for
	queues       map[string]string           // names of the queues of its consumers, by UID
	versionNames map[string]string           // of what has traffic, by UID

	steps  []*step
	unfit  map[string]bool // names of steps that are refused already
	faults manifest.Faults
	report *Report
}

// Run deploys the worker that m describes and waits until everything has settled. The report, also of a run that fails,
// says what was done until then. An error in the sources, and what can be refused beforehand, is manifest.Faults; one at a
// Resource is a *StepError; both leave a state that the next run takes up. A dry run changes nothing and returns no error for
// what would be refused: the report has it.
func Run(ctx context.Context, opt Options, m *manifest.Manifest) (*Report, error) {
	if opt.Space == "" {
		opt.Space = "default"
	}
	if opt.Weight == 0 {
		opt.Weight = all
	}
	d := &deployer{opt: opt, manifest: m, report: newReport(m.Name, &opt)}
	if opt.Weight < 1 || opt.Weight > all {
		return d.report, fault.Newf(fault.Invalid, "deploy.Run", "a weight is 1 to %d basis points, not %d", all, opt.Weight)
	}
	if err := d.build(ctx); err != nil {
		return d.report, err
	}
	if err := d.survey(ctx); err != nil {
		return d.report, err
	}
	slices.SortStableFunc(d.faults, func(a, b manifest.Fault) int { return a.Line - b.Line })
	if len(d.faults) > 0 && !opt.DryRun {
		return d.report, d.faults
	}
	if err := d.foresee(ctx); err != nil {
		return d.report, err
	}
	if opt.DryRun {
		return d.report, nil
	}
	if len(d.report.Refusals) > 0 {
		return d.report, refusedAll(d.report.Refusals)
	}
	d.report.Weights = []Share{} // of what was foreseen
	return d.report, d.apply(ctx)
}

// build makes the files of the worker; it talks to nobody.
func (d *deployer) build(ctx context.Context) (err error) {
	m := d.manifest
	if m.Main != "" {
		var warnings manifest.Faults
		if d.code, warnings, err = Bundle(ctx, filepath.Dir(m.File), m.Main, m.Handlers); err != nil {
			return err
		}
		d.report.Warnings = append(d.report.Warnings, warnings...)
	}
	if m.Assets != nil {
		if d.assets, err = assetSet(m.Assets); err != nil {
			return err
		}
	}
	if d.migrations, err = migrationSets(m); err != nil {
		return err
	}
	d.names, err = nameAll(m, d.code, d.assets)
	return err
}

// plan lists everything in the order in which each finds what it refers to: data and its migrations, code, version, then what
// has to leave before the version that handled it, the distribution, and what it serves.
func (d *deployer) plan() []*step {
	line := d.manifest.NameLine
	steps := d.dataSteps()
	migrated := len(steps)
	if d.code != nil {
		steps = append(steps, d.artifactStep(form.WorkerBundleURL, d.names.bundle, d.code, line))
	}
	if d.assets != nil {
		steps = append(steps, d.artifactStep(form.StaticAssetBundleURL, d.names.assets, d.assets, line))
	}
	steps = append(steps, &step{form: form.ModuleWorkerURL, name: d.names.worker, line: line,
		want: func(func(string) string) *want { return &want{spec: struct{}{}} }})
	steps = append(steps, d.versionStep())
	gone := d.leaving()
	deployment := d.deploymentStep()
	for _, s := range append(steps[:migrated:migrated], gone...) {
		deployment.after = append(deployment.after, s.name)
	}
	return append(append(append(steps, gone...), deployment), d.attachSteps()...)
}

func (d *deployer) artifactStep(formURL, name string, set *FileSet, line int) *step {
	return &step{form: formURL, name: name, line: line, want: func(func(string) string) *want {
		w, err := d.artifact(set)
		if err != nil { // the list of files is too long
			d.refuse(line, "%s: %s", name, fault.Detail(err))
			return nil
		}
		return w
	}}
}

func (d *deployer) deploymentStep() *step {
	return &step{form: form.WorkerDeploymentURL, name: d.names.deployment, line: d.manifest.NameLine, uses: []string{d.names.worker, d.names.version},
		want: func(uid func(string) string) *want {
			version := uid(d.names.version)
			shares, err := next(d.current(), version, d.opt.Weight)
			if err != nil {
				return nil // the survey has refused it
			}
			d.versionNames[version] = d.names.version
			d.report.Weights = shares
			spec := deploymentOf(uid(d.names.worker), shares)
			return &want{spec: spec, mutable: true, note: describeShares(shares, d.versionNames), same: func(r *client.Resource) bool {
				var have deploymentSpec
				return json.Unmarshal(r.Spec, &have) == nil && spec.equal(have)
			}}
		}}
}

// current is the distribution before this run.
func (d *deployer) current() []Share {
	if r := d.have[d.names.deployment]; r != nil {
		return active(r.Observed)
	}
	return nil
}

// apply makes everything, in order.
func (d *deployer) apply(ctx context.Context) error {
	for _, s := range d.steps {
		if s.remove != nil {
			if err := d.detach(ctx, s); err != nil {
				return err
			}
			continue
		}
		w := s.want(d.uid)
		if w == nil {
			return d.faults
		}
		w.form, w.name = s.form, s.name
		r, err := d.ensure(ctx, w)
		if err != nil {
			return err
		}
		d.have[s.name] = r
		if s.made != nil {
			if err := s.made(r); err != nil {
				return err
			}
		}
	}
	return nil
}

// uid is that of the Resource with a name, as far as it is there; "" if it is not.
func (d *deployer) uid(name string) string {
	if r := d.have[name]; r != nil {
		return r.UID
	}
	return ""
}

// detach takes away an attachment that the manifest does not ask for any more.
func (d *deployer) detach(ctx context.Context, s *step) error {
	r, err := d.settled(ctx, s.remove)
	if err != nil {
		return failed("read", s.name, err)
	}
	if r == nil {
		return nil
	}
	w := &want{form: s.form, name: s.name, note: d.noteOf(r)}
	if err := d.remove(ctx, w, r); err != nil {
		return err
	}
	d.done(w, "deleted", r)
	return nil
}
