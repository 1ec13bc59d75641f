package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"edged/node"
)

// asked does what somebody wishes.
func (s *supervisor) asked(w wish) {
	switch {
	case w.Upgrade:
		s.upgrade(w)
	case w.Explain:
		if c := s.serving; c == nil || c.link == nil {
			w.fail(errors.New("no process serves at this moment: try again"))
		} else {
			c.explains = append(c.explains, w)
			c.say(message{Say: sayExplain})
		}
	default:
		if w.Wait {
			s.drained = append(s.drained, w)
		} else {
			w.done(0, "", 0)
		}
		s.stop.wish()
	}
}

// explained answers those who asked what holds a child; nil where it has ended.
func (s *supervisor) explained(c *child, holding json.RawMessage) {
	for _, w := range c.explains {
		if holding == nil {
			w.fail(errors.New("the process has ended: nothing holds it"))
			continue
		}
		w.replies <- reply{Done: true, Holding: holding}
		close(w.replies)
	}
	c.explains = nil
}

// explainEvery is how often a drain that is waited for says what it waits for.
const explainEvery = 2 * time.Second

func newDrainCommand() *cobra.Command {
	var dir string
	var wait, explained, asJSON bool
	cmd := &cobra.Command{
		Use: "drain", Short: "stop the running node politely, or tell what holds it", Args: cobra.NoArgs,
		Long: "Stop the node that runs on a data directory, as SIGTERM does: /readyz turns 503, the listeners close, what is at work may end within\n" +
			"--drain-timeout, and the process ends. With --wait the command ends when it has. With --explain alone nothing is stopped: it lists what a\n" +
			"drain, or an upgrade, would wait for or waits for now. (A member of a fleet is taken out of service, and goes on running, by\n" +
			"\"edged fleet drain\".)",
	}
	f := cmd.Flags()
	f.StringVar(&dir, "data-dir", "./data", "data directory of a node that runs on this machine, started by edged run")
	f.BoolVar(&wait, "wait", false, "wait for the end of the process")
	f.BoolVar(&explained, "explain", false, "list what holds the node; with --wait while it drains")
	f.BoolVar(&asJSON, "json", false, "machine output")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		if err := applyConfig(f, "", os.LookupEnv); err != nil {
			return usageError{err}
		}
		out := cmd.OutOrStdout()
		if explained && !wait {
			h, err := askHolding(dir)
			switch {
			case err != nil:
				return err
			case asJSON:
				return printJSON(cmd, h)
			}
			return writeHolding(out, h)
		}
		if explained && !asJSON {
			ctx, stop := context.WithCancel(cmd.Context())
			told := make(chan struct{})
			go func() { defer close(told); keepTelling(ctx, dir, out) }()
			defer func() { stop(); <-told }()
		}
		if _, err := askSupervisor(dir, request{Drain: true, Wait: wait}, func(string) {}); err != nil {
			return err
		}
		text := "the node drains"
		if wait {
			text = "the node has ended"
		}
		if asJSON {
			return printJSON(cmd, map[string]bool{"draining": true, "ended": wait})
		}
		_, err := fmt.Fprintln(out, text)
		return err
	}
	return cmd
}

// keepTelling says what holds a node until ctx is done or nothing can be known of it any more.
func keepTelling(ctx context.Context, dir string, out io.Writer) {
	tick := time.NewTicker(explainEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		h, err := askHolding(dir)
		if err != nil || writeHolding(out, h) != nil {
			return // the drain's own answer says how it ends
		}
	}
}

func askHolding(dir string) (h node.Holding, err error) {
	r, err := askSupervisor(dir, request{Explain: true}, func(string) {})
	if err == nil {
		err = json.Unmarshal(r.Holding, &h)
	}
	return h, err
}

// writeHolding shows what holds a node.
func writeHolding(out io.Writer, h node.Holding) error {
	var states []string
	for _, state := range slices.Sorted(maps.Keys(h.Connections)) {
		if n := h.Connections[state]; n > 0 {
			states = append(states, fmt.Sprint(n, " ", state))
		}
	}
	if len(states) == 0 {
		states = []string{"none"}
	}
	fmt.Fprintf(out, "state        %s\nconnections  %s\n", h.State, strings.Join(states, ", "))
	fmt.Fprintf(out, "requests     %d at work, %d of them wait for admission\n", h.AtWork, h.Waiting)
	if len(h.Operations) > 0 {
		fmt.Fprintf(out, "operations   %s (go on after the next start)\n", strings.Join(h.Operations, ", "))
	}
	if h.Followers > 0 {
		fmt.Fprintf(out, "followers    %d members read the plan here, and will read it elsewhere\n", h.Followers)
	}
	all := slices.Concat(h.Requests, h.Tails, h.Tasks)
	if len(all) == 0 {
		_, err := fmt.Fprintln(out, "nothing is at work")
		return err
	}
	tab := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(tab, "AGE\tWHAT\tCOUNT\tWORKER\tVERSION\tNAME")
	for _, w := range all {
		fmt.Fprintf(tab, "%v\t%s\t%d\t%s\t%s\t%s\n", w.Age.Round(time.Millisecond), w.Kind, w.Count, dash(w.Worker), dash(w.Version), dash(w.Name))
	}
	if err := tab.Flush(); err != nil {
		return err
	}
	if more := h.AtWork - len(h.Requests) + h.TasksInAll - len(h.Tasks); more > 0 {
		fmt.Fprintf(out, "and %d more\n", more)
	}
	return nil
}
