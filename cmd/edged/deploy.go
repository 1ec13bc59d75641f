package main

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"edged/cmd/edged/deploy"
	"edged/cmd/edged/manifest"
)

func newDeployCommand() *cobra.Command {
	var t target
	var opt deploy.Options
	var timeout time.Duration
	cmd := &cobra.Command{
		Use:   "deploy [DIR or FILE]",
		Short: "bundle, upload and deploy one worker from its manifest",
		Long: "Deploy the worker that worker.toml in DIR (default: here), or FILE, describes. What is missing is created, a new version is\n" +
			"made only if content or settings changed, and the deployment is moved to it. A second run with nothing changed changes\n" +
			"nothing; a run that failed half-way is taken up by the next. Files below [assets] whose names begin with a dot stay at\n" +
			"home, but for .well-known.",
		Args: cobra.MaximumNArgs(1),
	}
	f := cmd.Flags()
	t.flags(f)
	f.StringVar(&opt.Space, "space", "default", "Space of the worker")
	f.IntVar(&opt.Weight, "weight", 10000, "basis points of the traffic for the new version; the rest stays with the current one")
	f.DurationVar(&timeout, "timeout", 5*time.Minute, "how long everything may take")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		c, err := t.connect(cmd)
		if err != nil {
			return err
		}
		defer c.Close()
		if opt.Weight < 1 || opt.Weight > 10000 {
			return usagef("--weight: %d is not 1 to 10000 basis points", opt.Weight)
		}
		path := "."
		if len(args) > 0 {
			path = args[0]
		}
		m, err := manifest.Load(path)
		if err != nil {
			return usageError{explain(err)}
		}
		ctx, cancel := context.WithTimeout(cmd.Context(), timeout)
		defer cancel()
		opt.Client = c
		report, err := deploy.Run(ctx, opt, m)
		report.Reachable(t.listeners().HTTP)
		if werr := t.printReport(cmd, report); werr != nil && err == nil {
			err = werr
		}
		return explain(err)
	}
	return cmd
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
