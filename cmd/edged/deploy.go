package main

import (
	"context"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"edged/cmd/edged/deploy"
	"edged/cmd/edged/manifest"
	"edged/control/client"
)

func newDeployCommand() *cobra.Command {
	var t target
	var opt deploy.Options
	var timeout time.Duration
	var secretsFile string
	var wait bool
	weight := points(deploy.Whole)
	cmd := &cobra.Command{
		Use:   "deploy [DIR or FILE]",
		Short: "bundle, upload and deploy one worker from its manifest",
		Long: "Deploy the worker that worker.toml in DIR (default: here), or FILE, describes. What is missing is created, a new version is\n" +
			"made only if content or settings changed, and the deployment is moved to it. A second run with nothing changed changes\n" +
			"nothing; a run that failed half-way is taken up by the next. What can be refused is refused before anything is changed, all\n" +
			"of it at once, with file and line.\n\n" +
			"Data (namespaces, databases, buckets, queues) is made and never removed. Schedules and consumers that left the manifest are\n" +
			"removed; addresses stay and are told. Files below [assets] whose names begin with a dot stay at home, but for .well-known.\n\n" +
			"The values of [secrets] come from --secrets-file (TOML: NAME = \"value\") or else from the environment variable of the same\n" +
			"name. They are needed when a new version is due. A changed value cannot be seen from outside: --rotate-secrets makes a new\n" +
			"version with the values given.",
		Args: cobra.MaximumNArgs(1),
	}
	f := cmd.Flags()
	t.flags(f)
	f.StringVar(&opt.Space, "space", "default", "Space of the worker")
	f.Var(&weight, "weight", "part of the traffic for the new version, in basis points or like 5%; the rest stays with the current one")
	f.StringVar(&secretsFile, "secrets-file", "", "file with the values of secrets; names that are not in it are looked for in the environment")
	f.BoolVar(&opt.RotateSecrets, "rotate-secrets", false, "make a new version with the values given, also if nothing else changed")
	f.BoolVar(&opt.DryRun, "dry-run", false, "change nothing: say what would be done and, asking the node, what would be refused, in the order in which to mend it")
	f.BoolVar(&wait, "wait", false, "wait until every node of the fleet serves it, within --timeout, and say how many do")
	f.DurationVar(&timeout, "timeout", 5*time.Minute, "how long everything may take")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		c, err := t.connect(cmd)
		if err != nil {
			return err
		}
		defer c.Close()
		path := "."
		if len(args) > 0 {
			path = args[0]
		}
		m, err := manifest.Load(path)
		if err != nil {
			return usageError{explain(err)}
		}
		if opt.Secret, err = secretValues(secretsFile); err != nil {
			return usageError{explain(err)}
		}
		ctx, cancel := context.WithTimeout(cmd.Context(), timeout)
		defer cancel()
		opt.Client, opt.Weight = c, int(weight)
		report, err := deploy.Run(ctx, opt, m)
		report.Reachable(t.listeners().HTTP)
		if werr := t.printReport(cmd, report); werr != nil && err == nil {
			err = werr
		}
		if err == nil && wait && !opt.DryRun {
			err = waitServed(ctx, cmd, c, t.json)
		}
		if n := len(report.Refusals); err == nil && n > 0 {
			return fmt.Errorf("the dry run found %d to mend", n)
		}
		return explain(err)
	}
	return cmd
}

// waitServed waits until every member of the fleet that serves traffic has the plan of now in use, and says how many do.
func waitServed(ctx context.Context, cmd *cobra.Command, c *client.Client, quiet bool) error {
	var want uint64
	for {
		fleet, err := askFleet(ctx, c)
		if err != nil {
			return err
		}
		if want == 0 {
			want = fleet.Index
		}
		all, late := 0, []string(nil)
		for _, n := range fleet.Items {
			if n.Edge && !n.Draining {
				if all++; n.Serves < want {
					late = append(late, n.Name)
				}
			}
		}
		switch {
		case len(late) == 0:
			if !quiet {
				fmt.Fprintf(cmd.ErrOrStderr(), "all of %d nodes serve it\n", max(all, 1)) // one that is in no fleet has waited for itself
			}
			return nil
		case !pause(ctx, 200*time.Millisecond):
			return fmt.Errorf("%d of %d nodes serve it; not yet: %s", all-len(late), all, strings.Join(late, ", "))
		}
	}
}

func pause(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// secretValues looks in the file, if one is named, and else in the environment.
func secretValues(file string) (func(string) string, error) {
	if file == "" {
		return os.Getenv, nil
	}
	values, err := manifest.ReadValues(file)
	if err != nil {
		return nil, err
	}
	return func(name string) string {
		if v, ok := values[name]; ok {
			return v
		}
		return os.Getenv(name)
	}, nil
}

func (t *target) printReport(cmd *cobra.Command, r *deploy.Report) error {
	if t.json {
		return printJSON(cmd, r)
	}
	for _, w := range r.Warnings {
		fmt.Fprintln(cmd.ErrOrStderr(), "warning:", w.Error())
	}
	return r.WriteText(cmd.OutOrStdout())
}

// points is a part of the traffic on the command line: whole basis points, or a percentage with up to two decimals.
type points int

// String, Set and Type are pflag.Value's.
func (p *points) String() string { return deploy.Percent(int(*p)) }
func (p *points) Type() string   { return "points" }
func (p *points) Set(text string) error {
	n, err := deploy.ParsePoints(text)
	if err != nil {
		return err
	}
	if n == 0 {
		return fmt.Errorf("%q is not 1 to 10000 basis points", text)
	}
	*p = points(n)
	return nil
}
