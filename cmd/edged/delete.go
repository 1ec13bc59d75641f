package main

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"edged/cmd/edged/deploy"
	"edged/internal/fault"
)

func newDeleteCommand() *cobra.Command {
	var t workerTarget
	var withDependents, yes bool
	cmd := &cobra.Command{
		Use:   "delete NAME",
		Short: "delete a worker, with all that was made for it if asked to",
		Long: "Delete a worker. With --with-dependents everything that depends on it goes first, in the legal order: consumers, schedules,\n" +
			"domains, endpoint, deployment, versions, then the bundles and migrations that nobody else uses. What is going to be deleted\n" +
			"is shown, and asked for unless --yes is given. Data (namespaces, databases, buckets, queues) stays: delete it with\n" +
			"edged resources delete. A worker that others call is not deleted. What was interrupted is finished by the next run.",
		Args: cobra.ExactArgs(1),
	}
	t.workerFlags(cmd)
	cmd.Flags().BoolVar(&withDependents, "with-dependents", false, "also delete what depends on it")
	cmd.Flags().BoolVar(&yes, "yes", false, "do not ask")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		return t.with(cmd, args[0], func(ctx context.Context, w *deploy.Worker) error {
			d, err := w.Dependents(ctx)
			if err != nil {
				return err
			}
			if err := deletable(d, withDependents); err != nil {
				return err
			}
			if !yes {
				if err := ask(cmd, d); err != nil {
					return err
				}
			}
			deleted := []deploy.Step{}
			err = w.Teardown(ctx, d, func(s deploy.Step) {
				deleted = append(deleted, s)
				if !t.json {
					fmt.Fprintf(cmd.OutOrStdout(), "deleted %s %s\n", s.Kind, s.Name)
				}
			})
			if t.json {
				if perr := printJSON(cmd, map[string]any{"space": w.Space, "worker": w.Name, "deleted": deleted}); err == nil {
					err = perr
				}
			}
			return err
		})
	}
	return cmd
}

func deletable(d *deploy.Dependents, withDependents bool) error {
	var lines []string
	for _, s := range d.Blocked {
		lines = append(lines, fmt.Sprintf("%s %s %s", s.Kind, s.Name, s.Note))
	}
	if len(lines) > 0 {
		return fault.New(fault.Conflict, "delete", "other workers call it; delete or change first:\n"+strings.Join(lines, "\n"))
	}
	if withDependents || len(d.Remove) == 1 {
		return nil
	}
	for _, s := range d.Remove[:len(d.Remove)-1] {
		lines = append(lines, s.Kind+" "+s.Name)
	}
	return fault.New(fault.Conflict, "delete", "this goes with it, if --with-dependents is given:\n"+strings.Join(lines, "\n"))
}

// ask shows what is going to be deleted and asks.
func ask(cmd *cobra.Command, d *deploy.Dependents) error {
	out := cmd.ErrOrStderr()
	tab := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	for _, s := range d.Remove {
		fmt.Fprintf(tab, "delete\t%s\t%s\t%s\n", s.Kind, s.Name, s.Note)
	}
	if err := tab.Flush(); err != nil {
		return err
	}
	return confirm(cmd, fmt.Sprintf("Delete these %d, for ever? [y/N] ", len(d.Remove)))
}

// confirm asks and reads a yes. No answer is a no.
func confirm(cmd *cobra.Command, question string) error {
	fmt.Fprint(cmd.ErrOrStderr(), question)
	answer, err := bufio.NewReader(cmd.InOrStdin()).ReadString('\n')
	if err != nil && err != io.EOF {
		return err
	}
	switch strings.ToLower(strings.TrimSpace(answer)) {
	case "y", "yes":
		return nil
	}
	return fault.New(fault.Canceled, "confirm", "nothing was deleted: the answer was no (--yes does not ask)")
}
