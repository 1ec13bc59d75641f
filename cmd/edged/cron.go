package main

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"edged/control/client"
	"edged/control/form"
	"edged/internal/cronexpr"
)

func newCronCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "cron", Short: "schedules of workers", Args: cobra.NoArgs, RunE: needSubcommand}
	cmd.AddCommand(newCronList(), newCronTrigger())
	return cmd
}

func newCronTrigger() *cobra.Command {
	t := storeTarget{form: form.CronTriggerURL, path: "cron/triggers"}
	cmd := &cobra.Command{Use: "trigger NAME", Short: "fire a schedule now, as if this minute matched (role operator)", Args: cobra.ExactArgs(1),
		Long: "Record and fire a match of this minute for one cron trigger, whatever its expression says. The command ends when the match is on\n" +
			"record, not when the handler has. It is refused while the trigger's last run goes on, and for a minute that is on record already."}
	t.storeFlags(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		return t.with(cmd, args[0], func(ctx context.Context, s *store) error {
			var m struct {
				Minute string `json:"minute"`
			}
			if err := s.c.Ask(ctx, s.call("POST", "trigger", nil, nil), &m); err != nil {
				return err
			}
			return t.say(cmd, m, "fired %s for %s", args[0], m.Minute)
		})
	}
	return cmd
}

// schedule is one cron trigger.
type schedule struct {
	Space  string `json:"space"`
	Name   string `json:"name"`
	UID    string `json:"uid"`
	Worker string `json:"worker"` // name, or UID where the worker cannot be read
	Cron   string `json:"cron"`
	Ready  string `json:"ready"`          // yes, no or -
	Next   string `json:"next,omitempty"` // the next match from now on, by this machine's clock; empty if none follows
}

func newCronList() *cobra.Command {
	var t target
	var space string
	cmd := &cobra.Command{
		Use:   "list",
		Short: "list schedules with their workers and next matches",
		Long: "List cron triggers. NEXT is the next minute that the expression matches from now on, in UTC, by the clock of this machine;\n" +
			"whether it fires then is for the node to say: READY tells that a version with the handler has traffic.",
		Args: cobra.NoArgs,
	}
	t.flags(cmd.Flags())
	cmd.Flags().StringVar(&space, "space", "", "only of this Space")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		c, err := t.connect(cmd)
		if err != nil {
			return err
		}
		defer c.Close()
		list, err := schedules(cmd, c, space, time.Now())
		if err != nil {
			return explain(err)
		}
		if t.json {
			return printJSON(cmd, list)
		}
		tab := tabwriter.NewWriter(cmd.OutOrStdout(), 0, 0, 2, ' ', 0)
		fmt.Fprintln(tab, "SPACE\tWORKER\tCRON\tREADY\tNEXT\tNAME")
		for _, s := range list {
			fmt.Fprintf(tab, "%s\t%s\t%s\t%s\t%s\t%s\n", s.Space, s.Worker, s.Cron, s.Ready, dash(s.Next), s.Name)
		}
		return tab.Flush()
	}
	return cmd
}

func schedules(cmd *cobra.Command, c *client.Client, space string, now time.Time) ([]schedule, error) {
	workers := map[string]string{}
	for r, err := range c.List(cmd.Context(), client.Filter{Space: space, Form: form.ModuleWorkerURL}) {
		if err != nil {
			return nil, err
		}
		workers[r.UID] = r.Name
	}
	list := []schedule{}
	for r, err := range c.List(cmd.Context(), client.Filter{Space: space, Form: form.CronTriggerURL}) {
		if err != nil {
			return nil, err
		}
		var spec struct{ Cron string }
		var observed struct{ ScheduleReady *bool }
		_ = json.Unmarshal(r.Spec, &spec) // what cannot be read shows as empty
		_ = json.Unmarshal(r.Observed, &observed)
		s := schedule{Space: r.Space, Name: r.Name, UID: r.UID, Worker: workers[ownerOf(r)], Cron: spec.Cron, Ready: yesNo(observed.ScheduleReady)}
		if s.Worker == "" {
			s.Worker = ownerOf(r)
		}
		if expr, err := cronexpr.Parse(spec.Cron); err == nil {
			if next, ok := expr.Next(now); ok {
				s.Next = next.UTC().Format(time.RFC3339)
			}
		}
		list = append(list, s)
	}
	slices.SortFunc(list, func(a, b schedule) int {
		return strings.Compare(a.Space+"\x00"+a.Worker+"\x00"+a.Name, b.Space+"\x00"+b.Worker+"\x00"+b.Name)
	})
	return list, nil
}

func yesNo(b *bool) string {
	switch {
	case b == nil:
		return "-"
	case *b:
		return "yes"
	}
	return "no"
}
