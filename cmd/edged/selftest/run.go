package selftest

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/tls"
	"embed"
	"errors"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"edged/cmd/edged/deploy"
	"edged/cmd/edged/manifest"
	"edged/control/client"
	"edged/internal/fault"
)

// Prefix begins the name of every Space that a selftest makes, and only such are removed.
const Prefix = "edged-selftest-"

// How long a check may take beside waiting, and the removal.
const (
	checkTime  = time.Minute
	removeTime = 3 * time.Minute
)

//go:embed probes
var probes embed.FS

// Options is what a selftest needs. The client's credential has to be able to change Resources of any Space.
type Options struct {
	Client   *client.Client // required
	Front    *url.URL       // scheme http or https, and address, of a public listener; required
	TLS      *tls.Config    // for https; nil is the system's trust
	Skip     []string       // names of checks to leave out
	Reuses   bool           // the node runs with --isolation worker
	Patience time.Duration  // how long what comes about by and by may take, 0 means 30 s
	Progress func(Result)   // told each result; nil tells nobody
}

// run is one selftest at work.
type run struct {
	opt   Options
	front front
	space string
	probe string // host names
	peer  string
}

// Names lists the checks in their order.
func Names() []string {
	var names []string
	for _, c := range checks {
		names = append(names, c.name)
	}
	return names
}

// Run checks the node. The report is whole also if ctx ends before: what was not checked then is skipped, and the Space is emptied all
// the same. The error says why nothing could be begun: Invalid for a name in Skip that is none, Conflict for a Space that is in use.
func Run(ctx context.Context, opt Options) (*Report, error) {
	const op = "selftest.Run"
	for _, name := range opt.Skip {
		if !slices.Contains(Names(), name) {
			return nil, fault.Newf(fault.Invalid, op, "there is no check %q; there are %s", name, strings.Join(Names(), ", "))
		}
	}
	if opt.Patience == 0 {
		opt.Patience = 30 * time.Second
	}
	if opt.Progress == nil {
		opt.Progress = func(Result) {}
	}
	r := &run{opt: opt, front: front{opt.Front, opt.TLS, opt.Patience}, space: Prefix + strings.ToLower(rand.Text()[:12])}
	for have, err := range opt.Client.List(ctx, client.Filter{Space: r.space}) {
		if err != nil {
			return nil, err
		}
		return nil, fault.Newf(fault.Conflict, op, "Space %s is in use: it has %s", r.space, have.Name)
	}
	report := &Report{Space: r.space, Checks: []Result{}, Left: []Left{}}
	defer func() {
		after, cancel := context.WithTimeout(context.WithoutCancel(ctx), removeTime)
		defer cancel()
		remove(after, opt.Client, r.space, report)
	}()
	r.all(ctx, report)
	return report, nil
}

// all runs every check; those that need the workers are left out if these could not be deployed.
func (r *run) all(ctx context.Context, report *Report) {
	missing := ""
	for _, c := range checks {
		out := Result{Name: c.name, Section: c.section, Outcome: Skipped}
		switch {
		case slices.Contains(r.opt.Skip, c.name):
			out.Why = "as asked"
		case ctx.Err() != nil:
			out.Why = "interrupted"
		case missing != "":
			out.Why = "needs " + missing
		default:
			r.judge(ctx, c, &out)
		}
		if c.name == deployed && out.Outcome != Passed {
			missing = deployed
		}
		report.add(out)
		r.opt.Progress(out)
	}
}

func (r *run) judge(ctx context.Context, c check, out *Result) {
	bounded, cancel := context.WithTimeout(ctx, checkTime+r.opt.Patience)
	defer cancel()
	began := time.Now()
	err := c.run(bounded, r)
	out.Millis = time.Since(began).Milliseconds()
	switch {
	case err == nil:
		out.Outcome = Passed
	case ctx.Err() != nil:
		out.Why = "interrupted"
	default:
		out.Outcome, out.Why = Failed, err.Error()
	}
}

// deploy makes both workers.
func (r *run) deploy(ctx context.Context) (err error) {
	dir, err := os.MkdirTemp("", "edged-selftest-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	if r.peer, err = r.deployOne(ctx, dir, "peer", nil, 0); err != nil {
		return err
	}
	r.probe, err = r.deployOne(ctx, dir, "probe", nil, 0)
	return err
}

// split gives a second version of the peer half of its traffic.
func (r *run) split(ctx context.Context) (err error) {
	dir, err := os.MkdirTemp("", "edged-selftest-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	_, err = r.deployOne(ctx, dir, "peer", func(manifest []byte) []byte { return bytes.Replace(manifest, []byte(`"one"`), []byte(`"two"`), 1) }, deploy.Whole/2)
	return err
}

// deployOne deploys one of the probes, as edged deploy would, and returns its host name.
func (r *run) deployOne(ctx context.Context, dir, name string, change func([]byte) []byte, weight int) (host string, err error) {
	source, err := fs.Sub(probes, "probes/"+name)
	if err != nil {
		return "", err
	}
	dir = filepath.Join(dir, name)
	if err := os.CopyFS(dir, source); err != nil {
		return "", err
	}
	if change != nil {
		path := filepath.Join(dir, manifest.FileName)
		text, err := os.ReadFile(path)
		if err == nil {
			err = os.WriteFile(path, change(text), 0o600)
		}
		if err != nil {
			return "", err
		}
	}
	m, err := manifest.Load(dir)
	if err != nil {
		return "", err
	}
	report, err := deploy.Run(ctx, deploy.Options{Client: r.opt.Client, Space: r.space, Weight: weight}, m)
	if err != nil {
		return "", err
	}
	if len(report.Addresses) == 0 {
		return "", fault.Newf(fault.Internal, "selftest.deploy", "%s was deployed and got no address", name)
	}
	return report.Addresses[0].Hostname, nil
}
