package main

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"edged/control/client"
)

func newFleetCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use: "fleet", Short: "invite nodes, list them, give them a vote, drain and remove them", Args: cobra.NoArgs, RunE: needSubcommand,
		Long: "Look at the fleet and change who is in it. NODE is the ID or the name of a member. The node's own token, or one of an operator\n" +
			"for every Space of its tenant, is needed; every change leaves an audit record.",
	}
	cmd.AddCommand(newFleetInvite(), newFleetNodes(), newFleetAddControl(), newFleetDrain(), newFleetRemove())
	return cmd
}

func newFleetInvite() *cobra.Command {
	var t target
	var roles []string
	var labels map[string]string
	var life time.Duration
	cmd := &cobra.Command{Use: "invite", Short: "make a one-time invite for a node and print it", Args: cobra.NoArgs,
		Long: "Make an invite and print it: whoever has it can join the fleet with it, once. The fleet keeps only a hash of it. The new node is\n" +
			"started with `edged run --peer OWN --role ROLES --join ADDRESS --invite @FILE`: OWN is where it listens for other members, ROLES are\n" +
			"those of the invite, ADDRESS is the --peer address of a member with the role control, FILE holds the invite."}
	f := cmd.Flags()
	t.flags(f)
	f.StringSliceVar(&roles, "role", []string{"edge"}, "roles of the new node: edge, control or both")
	f.StringToStringVar(&labels, "label", nil, "NAME=VALUE that the new node has whatever it says of itself; may be given several times")
	f.DurationVar(&life, "for", time.Hour, "how long the invite is good, from 1m to 720h")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		c, err := t.connect(cmd)
		if err != nil {
			return err
		}
		defer c.Close()
		in := map[string]any{"seconds": int64(life / time.Second), "labels": labels}
		for _, r := range roles {
			if r != "edge" && r != "control" {
				return usagef("--role is edge, control or both, not %q", r)
			}
			in[r] = true
		}
		var made struct {
			Invite  string `json:"invite"`
			ID      string `json:"id"`
			Expires string `json:"expires"`
		}
		if err := c.Ask(cmd.Context(), client.Call{Method: "POST", Path: "fleet/invites", Body: in}, &made); err != nil {
			return explain(err)
		}
		if t.json {
			return printJSON(cmd, made)
		}
		fmt.Fprintf(cmd.ErrOrStderr(), "invite %s, good once until %s; it is shown only now\n", made.ID, made.Expires)
		_, err = fmt.Fprintln(cmd.OutOrStdout(), made.Invite)
		return err
	}
	return cmd
}

// fleetNode is a member as `edged fleet nodes` shows it.
type fleetNode struct {
	ID       string            `json:"id"`
	Name     string            `json:"name"`
	Control  bool              `json:"control"`
	Edge     bool              `json:"edge"`
	Labels   map[string]string `json:"labels,omitempty"`
	Peer     string            `json:"peer"`
	Gossip   string            `json:"gossip,omitempty"`
	Serial   string            `json:"serial"`
	Joined   string            `json:"joined"`
	Draining bool              `json:"draining"`
	Founder  bool              `json:"founder"`
	Votes    bool              `json:"votes"`
	Leads    bool              `json:"leads"`
	Serves   uint64            `json:"serves"`
	Version  string            `json:"version"`
	Level    int               `json:"level"` // 0: it announces none, or was not heard of
}

type fleetInvite struct {
	ID      string            `json:"id"`
	Control bool              `json:"control"`
	Edge    bool              `json:"edge"`
	Labels  map[string]string `json:"labels,omitempty"`
	Expires string            `json:"expires"`
	UsedBy  string            `json:"usedBy,omitempty"`
}

// fleetList is what the control room says of its fleet; without items it has none.
type fleetList struct {
	Items    []fleetNode   `json:"items"`
	Invites  []fleetInvite `json:"invites"`
	Warnings []string      `json:"warnings"`
	Index    uint64        `json:"index"`
}

func askFleet(ctx context.Context, c *client.Client) (fleetList, error) {
	var out fleetList
	err := c.Ask(ctx, client.Call{Method: "GET", Path: "fleet/nodes"}, &out)
	return out, err
}

func newFleetNodes() *cobra.Command {
	var t target
	cmd := &cobra.Command{Use: "nodes", Short: "list the members of the fleet, and the invites that are good", Args: cobra.NoArgs}
	t.flags(cmd.Flags())
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		c, err := t.connect(cmd)
		if err != nil {
			return err
		}
		defer c.Close()
		fleet, err := askFleet(cmd.Context(), c)
		if err != nil {
			return explain(err)
		}
		if t.json {
			return printJSON(cmd, fleet)
		}
		if len(fleet.Items) == 0 {
			_, err := fmt.Fprintln(cmd.OutOrStdout(), "this node is in no fleet: started with --peer it can invite others")
			return err
		}
		tab := tabwriter.NewWriter(cmd.OutOrStdout(), 0, 0, 2, ' ', 0)
		fmt.Fprintln(tab, "ID\tNAME\tROLES\tPEER\tGOSSIP\tLABELS\tJOINED\tVERSION\tLEVEL\tPLAN\tSTATE")
		for _, n := range fleet.Items {
			fmt.Fprintf(tab, "%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\n", n.ID, n.Name, rolesOf(n.Control, n.Edge), n.Peer, cmp.Or(n.Gossip, "-"), labelsOf(n.Labels), n.Joined,
				cmp.Or(n.Version, "-"), levelOf(n), planOf(n, fleet.Index), stateOf(n))
		}
		for _, i := range fleet.Invites {
			if i.UsedBy == "" {
				fmt.Fprintf(tab, "%s\t-\t%s\t-\t-\t%s\t-\t-\t-\t-\tinvited until %s\n", i.ID, rolesOf(i.Control, i.Edge), labelsOf(i.Labels), i.Expires)
			}
		}
		if err := tab.Flush(); err != nil {
			return err
		}
		for _, w := range fleet.Warnings {
			fmt.Fprintln(cmd.ErrOrStderr(), "warning:", w)
		}
		return nil
	}
	return cmd
}

func stateOf(n fleetNode) string {
	state := "member"
	switch {
	case n.Leads:
		state = "leads"
	case n.Votes:
		state = "votes"
	}
	if n.Draining {
		state += ", draining"
	}
	return state
}

func rolesOf(control, edge bool) string {
	var roles []string
	if control {
		roles = append(roles, "control")
	}
	if edge {
		roles = append(roles, "edge")
	}
	return strings.Join(roles, ",")
}

// planOf says how far the plan is that a member serves.
func planOf(n fleetNode, index uint64) string {
	switch {
	case n.Serves == 0:
		return "not heard of"
	case n.Serves >= index:
		return "current"
	}
	return fmt.Sprintf("%d of %d", n.Serves, index)
}

func levelOf(n fleetNode) string {
	if n.Level == 0 {
		return "-"
	}
	return strconv.Itoa(n.Level)
}

func labelsOf(labels map[string]string) string {
	var out []string
	for _, name := range slices.Sorted(maps.Keys(labels)) {
		out = append(out, name+"="+labels[name])
	}
	return cmp.Or(strings.Join(out, ","), "-")
}

// fleetChanged is the member that a command changed.
type fleetChanged struct {
	ID       string `json:"id"`
	Name     string `json:"name"`
	Draining *bool  `json:"draining,omitempty"`
}

// changeMember makes a call about a member, at what below it.
func (t *target) changeMember(cmd *cobra.Command, node, what string, call client.Call) (m fleetChanged, err error) {
	c, err := t.connect(cmd)
	if err != nil {
		return m, err
	}
	defer c.Close()
	call.Path = "fleet/nodes/" + url.PathEscape(node) + what
	err = explain(c.Ask(cmd.Context(), call, &m))
	return m, err
}

func newFleetDrain() *cobra.Command {
	var t target
	var off bool
	cmd := &cobra.Command{Use: "drain NODE", Short: "take a node out of service, or back into it with --off", Args: cobra.ExactArgs(1),
		Long: "Tell the fleet that a node is to get no traffic: its /readyz answers 503 with the reason. It stays a member and the home of what it\n" +
			"holds. With --off it is in service again."}
	t.flags(cmd.Flags())
	cmd.Flags().BoolVar(&off, "off", false, "the node is in service again")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		m, err := t.changeMember(cmd, args[0], "/drain", client.Call{Method: "POST", Body: map[string]bool{"draining": !off}})
		if err != nil {
			return err
		}
		if off {
			return t.say(cmd, m, "%s (%s) is in service", m.ID, m.Name)
		}
		return t.say(cmd, m, "%s (%s) drains", m.ID, m.Name)
	}
	return cmd
}

func newFleetAddControl() *cobra.Command {
	var t target
	cmd := &cobra.Command{Use: "add-control NODE", Short: "give a member with the role control a vote about the control log", Args: cobra.ExactArgs(1),
		Long: "Make a member that was invited with the role control one of the voters, once it has the whole control log. Have 1, 3 or 5: with 3 the\n" +
			"fleet bears the loss of one, with 5 of two. It is repeated when it was interrupted. `edged fleet remove` takes the vote away."}
	t.flags(cmd.Flags())
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		m, err := t.changeMember(cmd, args[0], "/vote", client.Call{Method: "POST"})
		if err != nil {
			return err
		}
		return t.say(cmd, m, "%s (%s) votes", m.ID, m.Name)
	}
	return cmd
}

func newFleetRemove() *cobra.Command {
	var t target
	var lose bool
	cmd := &cobra.Command{Use: "remove NODE", Short: "end the membership of a node, for ever", Args: cobra.ExactArgs(1),
		Long: "End the membership of a node. The others talk to it no more, and its ID never joins this fleet again: the machine can come back\n" +
			"with an empty data directory and a new invite. From when it knows, the node serves nothing: drain it first. A node that is the home\n" +
			"of databases, buckets or queues is removed only with --lose-data: they are lost with it. The last node with the role control cannot\n" +
			"be removed. Ask another node than the one that goes: the leader hands leadership on first and has the command repeated."}
	t.flags(cmd.Flags())
	cmd.Flags().BoolVar(&lose, "lose-data", false, "databases, buckets and queues whose home the node is may be lost")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		call := client.Call{Method: "DELETE"}
		if lose {
			call.Query = url.Values{"loseData": {"true"}}
		}
		m, err := t.changeMember(cmd, args[0], "", call)
		if err != nil {
			return err
		}
		return t.say(cmd, m, "removed %s (%s)", m.ID, m.Name)
	}
	return cmd
}
