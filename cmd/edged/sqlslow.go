package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"edged/control/client"
)

// slowCall is one call that took longer than a second.
type slowCall struct {
	Database     string   `json:"database"`
	Op           string   `json:"op"`
	At           string   `json:"at"`
	Milliseconds int64    `json:"milliseconds"`
	SQL          []string `json:"sql"`
	Plan         []string `json:"plan"`
}

func newSQLSlow() *cobra.Command {
	var t target
	cmd := &cobra.Command{Use: "slow", Short: "the slow calls of late with their plans, oldest first", Args: cobra.NoArgs,
		Long: "Show the last calls of all databases of the node that took over a second, with the text of their statements, which may hold literals,\n" +
			"and SQLite's query plans. It needs an operator of the whole node."}
	t.flags(cmd.Flags())
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		list := struct {
			Calls []slowCall `json:"calls"`
		}{[]slowCall{}}
		if err := t.askNode(cmd, client.Call{Method: "GET", Path: "sql/slow"}, &list); err != nil {
			return err
		}
		if t.json {
			return printJSON(cmd, list.Calls)
		}
		out := cmd.OutOrStdout()
		for _, c := range list.Calls {
			fmt.Fprintf(out, "%s  %d ms  %s of %s\n", c.At, c.Milliseconds, c.Op, c.Database)
			for _, text := range c.SQL {
				fmt.Fprintf(out, "    %s\n", printable(text))
			}
			for _, step := range c.Plan {
				fmt.Fprintf(out, "      %s\n", step)
			}
		}
		if len(list.Calls) == 0 {
			fmt.Fprintln(out, "no slow calls")
		}
		return nil
	}
	return cmd
}
