package main

import (
	"context"
	"fmt"
	"net/url"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"edged/control/client"
)

// kvLag is how a node's key-value store stands among those of the other members.
type kvLag struct {
	Alone       bool     `json:"alone"`
	Epoch       string   `json:"epoch"`
	Resurrected uint64   `json:"resurrected"`
	Peers       []kvPeer `json:"peers"`
	Namespaces  []struct {
		UID        string             `json:"uid"`
		Records    int64              `json:"records"`
		Bytes      int64              `json:"bytes"`
		Newest     *string            `json:"newest"`
		Watermarks map[string]*string `json:"watermarks"`
	} `json:"namespaces"`
}

type kvPeer struct {
	Name         string `json:"name"`
	Epoch        string `json:"epoch"`
	Pulled       bool   `json:"pulled"`
	Known        bool   `json:"known"`
	Records      uint64 `json:"records"`
	BehindMillis int64  `json:"behindMillis"`
}

func newKVLag() *cobra.Command {
	var t target
	cmd := &cobra.Command{Use: "lag", Short: "how far this node's replicas are behind the other members'", Args: cobra.NoArgs,
		Long: "Show, for each other member, how many of its writes are known and not here, and for how long; then each namespace with its newest\n" +
			"write. RESURRECTED counts deletes that came back and must stay 0. It needs an operator of the whole node."}
	t.flags(cmd.Flags())
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		var lag kvLag
		if err := t.askNode(cmd, client.Call{Method: "GET", Path: "kv/lag"}, &lag); err != nil {
			return err
		}
		if t.json {
			return printJSON(cmd, lag)
		}
		return lag.write(cmd)
	}
	return cmd
}

func (l *kvLag) write(cmd *cobra.Command) error {
	out := cmd.OutOrStdout()
	if l.Alone {
		fmt.Fprintln(out, "the node runs alone: there is nothing to be behind")
	} else {
		fmt.Fprintf(out, "resurrected %d\n\n", l.Resurrected)
	}
	tab := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	if len(l.Peers) > 0 {
		fmt.Fprintln(tab, "MEMBER\tEPOCH\tREAD FROM\tRECORDS BEHIND\tFOR")
	}
	for _, p := range l.Peers {
		records, since := fmt.Sprint(p.Records), (time.Duration(p.BehindMillis) * time.Millisecond).String()
		if !p.Known {
			records, since = "not heard of yet", "-"
		}
		fmt.Fprintf(tab, "%s\t%s\t%s\t%s\t%s\n", p.Name, p.Epoch, yesNo(&p.Pulled), records, since)
	}
	if err := tab.Flush(); err != nil || len(l.Namespaces) == 0 {
		return err
	}
	fmt.Fprintln(out)
	fmt.Fprintln(tab, "NAMESPACE\tRECORDS\tBYTES\tNEWEST WRITE")
	for _, s := range l.Namespaces {
		newest := "-"
		if s.Newest != nil {
			newest = *s.Newest
		}
		fmt.Fprintf(tab, "%s\t%d\t%d\t%s\n", s.UID, s.Records, s.Bytes, newest)
	}
	return tab.Flush()
}

func newKVPosition() *cobra.Command {
	var t target
	cmd := &cobra.Command{Use: "position", Short: "what another node has to reach to have all of this one's writes so far", Args: cobra.NoArgs}
	t.flags(cmd.Flags())
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		var at struct {
			Position string `json:"position"`
		}
		if err := t.askNode(cmd, client.Call{Method: "GET", Path: "kv/position"}, &at); err != nil {
			return err
		}
		return t.say(cmd, at, "%s", at.Position)
	}
	return cmd
}

func newKVWait() *cobra.Command {
	var t target
	var until string
	var timeout time.Duration
	cmd := &cobra.Command{Use: "wait --until POSITION", Short: "wait until this node has all writes up to a position of another", Args: cobra.NoArgs,
		Long:    "Wait until this node's store has all that another had written at POSITION, which edged kv position prints there.",
		Example: "  edged kv wait --until $(edged kv position --data-dir /nodes/a) --data-dir /nodes/b"}
	t.flags(cmd.Flags())
	cmd.Flags().StringVar(&until, "until", "", "position of another node (required)")
	cmd.Flags().DurationVar(&timeout, "timeout", time.Minute, "how long to wait")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		if until == "" {
			return usagef("--until is needed")
		}
		ctx, cancel := context.WithTimeout(cmd.Context(), timeout)
		defer cancel()
		cmd.SetContext(ctx)
		if err := t.askNode(cmd, client.Call{Method: "GET", Path: "kv/wait", Query: url.Values{"until": {until}}}, nil); err != nil {
			return err
		}
		return t.say(cmd, map[string]string{"reached": until}, "reached %s", until)
	}
	return cmd
}

// askNode makes a call about the whole node.
func (t *target) askNode(cmd *cobra.Command, call client.Call, out any) error {
	c, err := t.connect(cmd)
	if err != nil {
		return err
	}
	defer c.Close()
	return explain(c.Ask(cmd.Context(), call, out))
}
