package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net/url"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"edged/control/client"
	"edged/control/form"
	"edged/control/operator"
)

func newQueueCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use: "queue", Short: "look into queues, move dead letters back, purge (role operator)", Args: cobra.NoArgs, RunE: needSubcommand,
		Long: "Look into queues and change them. QUEUE is the name of an AtLeastOnceQueue in a Space, or a UID with --uid. The token needs the\n" +
			"role operator; every change leaves an audit record.",
	}
	cmd.AddCommand(newQueueStats(), newQueuePeek(), newQueueRedrive(), newQueuePurge())
	return cmd
}

func queueTarget() storeTarget { return storeTarget{form: form.QueueURL, path: "queue/queues"} }

// queueStats is the state of a queue.
type queueStats struct {
	UID       string  `json:"uid"`
	Name      string  `json:"name"`
	Waiting   int64   `json:"waiting"`
	InFlight  int64   `json:"inFlight"`
	Bytes     int64   `json:"bytes"`
	Oldest    *string `json:"oldest"`
	LagMillis int64   `json:"lagMillis"`
	Retries   int64   `json:"retries"`
	Dead      int64   `json:"dead"`
	Discarded int64   `json:"discarded"`
	Consumed  bool    `json:"consumed"`
}

func newQueueStats() *cobra.Command {
	t := queueTarget()
	cmd := &cobra.Command{Use: "stats [QUEUE…]", Short: "what waits, what is in hands, how long it has waited", Args: cobra.ArbitraryArgs,
		Long: "Show queues, by default all of the Space. LAG is how long the message that has been due longest has been due. RETRIES, DEAD and\n" +
			"DISCARDED count since the node started."}
	t.storeFlags(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		c, err := t.connect(cmd)
		if err != nil {
			return err
		}
		defer c.Close()
		uids, err := t.queues(cmd.Context(), c, args)
		if err != nil {
			return explain(err)
		}
		list := []queueStats{}
		for _, uid := range uids {
			var s queueStats
			if err := c.Ask(cmd.Context(), client.Call{Method: "GET", Path: t.path + "/" + url.PathEscape(uid) + "/stats"}, &s); err != nil {
				return explain(err)
			}
			list = append(list, s)
		}
		if t.json {
			return printJSON(cmd, list)
		}
		tab := tabwriter.NewWriter(cmd.OutOrStdout(), 0, 0, 2, ' ', 0)
		fmt.Fprintln(tab, "QUEUE\tWAITING\tIN HANDS\tBYTES\tLAG\tOLDEST\tRETRIES\tDEAD\tDISCARDED\tCONSUMED")
		for _, s := range list {
			lag, oldest := time.Duration(s.LagMillis)*time.Millisecond, "-"
			if s.Oldest != nil {
				oldest = *s.Oldest
			}
			fmt.Fprintf(tab, "%s\t%d\t%d\t%d\t%v\t%s\t%d\t%d\t%d\t%s\n", s.Name, s.Waiting, s.InFlight, s.Bytes, lag, oldest, s.Retries, s.Dead, s.Discarded, yesNo(&s.Consumed))
		}
		return tab.Flush()
	}
	return cmd
}

// queues returns the UIDs of the queues named, of all in the Space if none is.
func (t *storeTarget) queues(ctx context.Context, c *client.Client, names []string) (uids []string, err error) {
	for _, name := range names {
		uid, err := t.resolve(ctx, c, name)
		if err != nil {
			return nil, err
		}
		uids = append(uids, uid)
	}
	if len(names) > 0 {
		return uids, nil
	}
	for r, err := range c.List(ctx, client.Filter{Space: t.space, Form: t.form}) {
		if err != nil {
			return nil, err
		}
		uids = append(uids, r.UID)
	}
	return uids, nil
}

// waitingMessage is a message that waits.
type waitingMessage struct {
	ID       string          `json:"id"`
	Accepted string          `json:"accepted"`
	Due      string          `json:"due"`
	Attempts int             `json:"attempts"`
	Size     int             `json:"size"`
	Origin   string          `json:"origin,omitempty"`
	Body     *operator.Bytes `json:"body,omitempty"`
}

func newQueuePeek() *cobra.Command {
	t := queueTarget()
	var limit int
	var bodies bool
	cmd := &cobra.Command{Use: "peek QUEUE", Short: "show waiting messages without taking them", Args: cobra.ExactArgs(1),
		Long: "Show waiting messages in the order in which they are due; those in a handler's hands are not among them. ORIGIN is the UID of the\n" +
			"queue that gave a dead letter up. Bodies are shown with --bodies, quoted where they are not printable."}
	t.storeFlags(cmd)
	cmd.Flags().IntVar(&limit, "limit", 20, "how many messages at most, 0 for all")
	cmd.Flags().BoolVar(&bodies, "bodies", false, "show bodies too")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if limit < 0 {
			return usagef("--limit: %d is negative", limit)
		}
		return t.with(cmd, args[0], func(ctx context.Context, s *store) error {
			query := url.Values{}
			if bodies {
				query.Set("bodies", "1")
			}
			list := []waitingMessage{}
			err := s.pages(ctx, "messages", query, limit, func(raw json.RawMessage) (int, error) {
				var page struct{ Messages []waitingMessage }
				err := json.Unmarshal(raw, &page)
				list = append(list, page.Messages...)
				return len(page.Messages), err
			})
			if err != nil {
				return err
			}
			if t.json {
				return printJSON(cmd, list)
			}
			tab := tabwriter.NewWriter(cmd.OutOrStdout(), 0, 0, 2, ' ', 0)
			fmt.Fprintln(tab, "ID\tACCEPTED\tDUE\tATTEMPTS\tSIZE\tORIGIN\tBODY")
			for _, m := range list {
				body := "-"
				if m.Body != nil {
					body = printable(string(*m.Body))
				}
				fmt.Fprintf(tab, "%s\t%s\t%s\t%d\t%d\t%s\t%s\n", m.ID, m.Accepted, m.Due, m.Attempts, m.Size, dash(m.Origin), body)
			}
			return tab.Flush()
		})
	}
	return cmd
}

func newQueueRedrive() *cobra.Command {
	t := queueTarget()
	var to, origin, after, before string
	var most, rate int
	cmd := &cobra.Command{Use: "redrive QUEUE", Short: "move dead letters back to where they came from, or to another queue", Args: cobra.ExactArgs(1),
		Long: "Move waiting messages of QUEUE, usually dead letters, to the queue that gave them up, or with --to to another queue of the Space.\n" +
			"There each is a new message with all attempts before it. It goes once through what waited when it began. An interrupted redrive\n" +
			"has moved what it moved; the rest is where it was.",
		Example: "  edged queue redrive tasks-dead --after 2026-11-30T00:00:00Z --rate 100"}
	t.storeFlags(cmd)
	f := cmd.Flags()
	f.StringVar(&to, "to", "", "queue that gets them (default: the one each came from)")
	f.StringVar(&origin, "origin", "", "only what this queue gave up")
	f.StringVar(&after, "after", "", "only what was accepted at or after this instant (RFC 3339)")
	f.StringVar(&before, "before", "", "only what was accepted before this instant (RFC 3339)")
	f.IntVar(&most, "max", 0, "how many messages at most (default: all)")
	f.IntVar(&rate, "rate", 0, "messages a second (default: 1000)")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		body := map[string]any{"max": most, "rate": rate}
		for flag, text := range map[string]string{"after": after, "before": before} {
			if text == "" {
				continue
			}
			if _, err := time.Parse(time.RFC3339, text); err != nil {
				return usagef("--%s: %q is no RFC 3339 instant", flag, text)
			}
			body[flag] = text
		}
		return t.with(cmd, args[0], func(ctx context.Context, s *store) error {
			for member, name := range map[string]string{"to": to, "origin": origin} {
				if name == "" {
					continue
				}
				uid, err := t.resolve(ctx, s.c, name)
				if err != nil {
					return err
				}
				body[member] = uid
			}
			var done struct {
				Moved int `json:"moved"`
				Left  int `json:"left"`
			}
			if err := s.c.Ask(ctx, s.call("POST", "redrive", nil, body), &done); err != nil {
				return err
			}
			return t.say(cmd, done, "moved %d, left %d that have no queue to go to", done.Moved, done.Left)
		})
	}
	return cmd
}

func newQueuePurge() *cobra.Command {
	t := queueTarget()
	var yes bool
	cmd := &cobra.Command{Use: "purge QUEUE", Short: "remove every waiting message, for ever", Args: cobra.ExactArgs(1),
		Long: "Remove every waiting message of QUEUE in one step. What a handler has in hands stays and is settled as usual. It asks unless --yes\n" +
			"is given."}
	t.storeFlags(cmd)
	cmd.Flags().BoolVar(&yes, "yes", false, "do not ask")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		return t.with(cmd, args[0], func(ctx context.Context, s *store) error {
			if !yes {
				if err := confirm(cmd, fmt.Sprintf("Remove every waiting message of %s, for ever? [y/N] ", args[0])); err != nil {
					return err
				}
			}
			var done struct {
				Purged int64 `json:"purged"`
			}
			if err := s.c.Ask(ctx, s.call("POST", "purge", nil, nil), &done); err != nil {
				return err
			}
			return t.say(cmd, done, "removed %d", done.Purged)
		})
	}
	return cmd
}
