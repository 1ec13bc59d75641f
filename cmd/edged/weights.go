package main

import (
	"context"
	"fmt"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"edged/cmd/edged/deploy"
)

// workerTarget is one worker as the command line names it.
type workerTarget struct {
	target
	space   string
	timeout time.Duration
}

func (t *workerTarget) workerFlags(cmd *cobra.Command) {
	t.flags(cmd.Flags())
	cmd.Flags().StringVar(&t.space, "space", "default", "Space of the worker")
	cmd.Flags().DurationVar(&t.timeout, "timeout", 5*time.Minute, "how long everything may take")
}

// with finds the worker and hands it to use.
func (t *workerTarget) with(cmd *cobra.Command, name string, use func(context.Context, *deploy.Worker) error) error {
	c, err := t.connect(cmd)
	if err != nil {
		return err
	}
	defer c.Close()
	ctx, cancel := context.WithTimeout(cmd.Context(), t.timeout)
	defer cancel()
	w, err := deploy.FindWorker(ctx, c, t.space, name)
	if err != nil {
		return explain(err)
	}
	return explain(use(ctx, w))
}

func newWeightsCommand() *cobra.Command {
	var t workerTarget
	cmd := &cobra.Command{
		Use:   "weights NAME [VERSION=PART…]",
		Short: "show or change which versions of a worker get which part of the traffic",
		Long: "Without VERSION=PART show the distribution. A VERSION is a name, a UID, or the beginning of the digest in its name; a PART is\n" +
			"whole basis points (500) or a percentage (5%, 0.25%); 0 takes the version out. The rest stays with the versions that have\n" +
			"traffic now and are not named, in proportion to what they have; if there are none, the parts must add up to 100%.",
		Example: "  edged weights hello 2dd0b6=5%\n  edged weights hello hello.version.48ee0dbd3798=10000",
		Args:    cobra.MinimumNArgs(1),
	}
	t.workerFlags(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		set := map[string]int{}
		for _, arg := range args[1:] {
			version, part, ok := strings.Cut(arg, "=")
			if _, twice := set[version]; !ok || version == "" || twice {
				return usagef("%q is not VERSION=PART, or its version stands twice", arg)
			}
			n, err := deploy.ParsePoints(part)
			if err != nil {
				return usagef("%s: %w", version, explain(err))
			}
			set[version] = n
		}
		return t.with(cmd, args[0], func(ctx context.Context, w *deploy.Worker) error {
			if len(set) == 0 {
				return t.printChange(cmd, &deploy.Change{Space: w.Space, Worker: w.Name, Before: w.Shares(), After: w.Shares()})
			}
			change, err := w.Shift(ctx, set)
			if err != nil {
				return err
			}
			return t.printChange(cmd, change)
		})
	}
	return cmd
}

func newRollbackCommand() *cobra.Command {
	var t workerTarget
	cmd := &cobra.Command{
		Use:   "rollback NAME",
		Short: "give a worker the distribution that it had before the present one",
		Long: "Make the distribution before the present one the present one again: versions and their parts of the traffic. It is found in\n" +
			"the node's audit, so it needs a token of the role operator, and a node restored from a backup does not know it. Data,\n" +
			"migrations, addresses, schedules and consumers stay as they are. A second rollback undoes the first.",
		Args: cobra.ExactArgs(1),
	}
	t.workerFlags(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		return t.with(cmd, args[0], func(ctx context.Context, w *deploy.Worker) error {
			change, err := w.Rollback(ctx)
			if err != nil {
				return err
			}
			return t.printChange(cmd, change)
		})
	}
	return cmd
}

func (t *workerTarget) printChange(cmd *cobra.Command, c *deploy.Change) error {
	c.Before, c.After = append([]deploy.NamedShare{}, c.Before...), append([]deploy.NamedShare{}, c.After...)
	if t.json {
		return printJSON(cmd, c)
	}
	out := cmd.OutOrStdout()
	if len(c.After) == 0 {
		_, err := fmt.Fprintf(out, "nothing of %s is deployed\n", c.Worker)
		return err
	}
	before := map[string]int{}
	for _, s := range c.Before {
		before[s.Version] = s.Weight
	}
	tab := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	row := func(s deploy.NamedShare, now int) {
		was := ""
		if before[s.Version] != now {
			was = "  (was " + deploy.Percent(before[s.Version]) + ")"
		}
		fmt.Fprintf(tab, "%s\t%s%s\n", deploy.Percent(now), s.Name, was)
	}
	has := map[string]bool{}
	for _, s := range c.After {
		has[s.Version] = true
		row(s, s.Weight)
	}
	for _, s := range c.Before {
		if !has[s.Version] {
			row(s, 0)
		}
	}
	return tab.Flush()
}
