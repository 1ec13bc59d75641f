package main

import (
	"fmt"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"edged/control/client"
)

func newAuditCommand() *cobra.Command {
	var t target
	var f client.AuditFilter
	var limit int
	cmd := &cobra.Command{
		Use:   "audit",
		Short: "who changed what, or tried to: newest first",
		Long: "List the mutations that were accepted or refused, newest first: Resources, tokens and operators' calls. An operator of one\n" +
			"tenant sees that tenant's. Reads, previews, repetitions under the same key and requests without a valid token leave no record.",
		Args: cobra.NoArgs,
	}
	fl := cmd.Flags()
	t.flags(fl)
	fl.StringVar(&f.Principal, "principal", "", "only what this principal asked for")
	fl.StringVar(&f.Target, "target", "", "only what was about this UID or name")
	fl.StringVar(&f.Outcome, "outcome", "", "only accepted, refused or unknown")
	fl.IntVar(&limit, "limit", 100, "how many records at most")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		c, err := t.connect(cmd)
		if err != nil {
			return err
		}
		defer c.Close()
		if limit < 1 {
			return usagef("--limit: %d is not positive", limit)
		}
		list, err := c.Audit(cmd.Context(), f, limit)
		if err != nil {
			return explain(err)
		}
		if t.json {
			return printJSON(cmd, append([]client.AuditRecord{}, list...))
		}
		tab := tabwriter.NewWriter(cmd.OutOrStdout(), 0, 0, 2, ' ', 0)
		fmt.Fprintln(tab, "AT\tBY\tACTION\tTENANT\tSPACE\tNAME\tUID\tOUTCOME")
		for _, r := range list {
			by, outcome := r.ByTenant+"/"+r.ByPrincipal, r.Outcome
			if r.ByPrincipal == "" {
				by = "the node"
			}
			if r.Code != "" {
				outcome += " " + r.Code
			}
			fmt.Fprintf(tab, "%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\n", r.At, by, r.Action, r.Tenant, dash(r.Space), dash(r.Name), dash(r.UID), outcome)
		}
		return tab.Flush()
	}
	return cmd
}

func dash(s string) string {
	if s == "" {
		return "-"
	}
	return s
}
