package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"path"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"edged/cmd/edged/deploy"
	"edged/control/client"
	"edged/control/form"
)

func newResourcesCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "resources",
		Short: "list, show, create, update and delete Resources",
		Long: "A thin client of the Host API. SPEC is a JSON object, a file that holds one, or - for standard input. A Form is named by its\n" +
			"URL or, where this program knows it, by its short name:\n\n  " + strings.Join(slices.Sorted(maps.Keys(knownForms())), "\n  "),
		Args: cobra.NoArgs,
		RunE: needSubcommand,
	}
	cmd.AddCommand(newResourcesList(), newResourcesShow(), newResourcesCreate(), newResourcesUpdate(), newResourcesDelete())
	return cmd
}

func needSubcommand(cmd *cobra.Command, _ []string) error {
	_ = cmd.Help()
	return usagef("name what to do: %s --help lists it", cmd.CommandPath())
}

// knownForms returns the URLs of the Forms by short name: the kind, with its version where there are several of one kind.
func knownForms() map[string]string {
	builtin, several := form.Builtin(), map[string]int{}
	for _, d := range builtin {
		several[d.Kind]++
	}
	known := map[string]string{}
	for url, d := range builtin {
		name := d.Kind
		if several[name] > 1 {
			name += "/" + path.Base(url)
		}
		known[name] = url
	}
	return known
}

// formURL turns a short name into the Form it stands for; a URL stays as it is.
func formURL(name string) (string, error) {
	if name == "" || strings.Contains(name, "://") {
		return name, nil
	}
	known := knownForms()
	if url, ok := known[name]; ok {
		return url, nil
	}
	return "", usagef("--form: %q is neither a Form URL nor one of %s", name, strings.Join(slices.Sorted(maps.Keys(known)), ", "))
}

// resourceTarget is one Resource as the command line names it.
type resourceTarget struct {
	target
	space      string
	byUID      bool
	generation int64
	timeout    time.Duration
}

func (t *resourceTarget) flagsFor(cmd *cobra.Command, mutates, exists bool) {
	t.flags(cmd.Flags())
	cmd.Flags().StringVar(&t.space, "space", "default", "Space of the Resource")
	if exists {
		cmd.Flags().BoolVar(&t.byUID, "uid", false, "NAME is a UID")
	}
	if mutates {
		cmd.Flags().DurationVar(&t.timeout, "timeout", 5*time.Minute, "how long to wait for the Operation")
	}
	if mutates && exists {
		cmd.Flags().Int64Var(&t.generation, "generation", 0, "refuse if the Resource is not at this generation (default: whatever it is at now)")
	}
}

// with finds the Resource that the command names and hands it to use.
func (t *resourceTarget) with(cmd *cobra.Command, name string, use func(*client.Client, *client.Resource) error) error {
	c, err := t.connect(cmd)
	if err != nil {
		return err
	}
	defer c.Close()
	r, err := t.find(cmd.Context(), c, name)
	if err != nil {
		return err
	}
	return use(c, r)
}

// find reads the Resource that the command line names.
func (t *resourceTarget) find(ctx context.Context, c *client.Client, name string) (*client.Resource, error) {
	if t.byUID {
		r, err := c.Read(ctx, name)
		return r, explain(err)
	}
	r, ok, err := c.Lookup(ctx, t.space, name)
	if err != nil {
		return nil, explain(err)
	}
	if !ok {
		return nil, fmt.Errorf("there is no Resource %q in Space %q", name, t.space)
	}
	return r, nil
}

// settle waits for an Operation and prints what came of it.
func (t *resourceTarget) settle(cmd *cobra.Command, c *client.Client, op *client.Operation, err error, name, done string) error {
	if err != nil {
		return explain(err)
	}
	ctx, cancel := context.WithTimeout(cmd.Context(), t.timeout)
	defer cancel()
	op, err = c.Wait(ctx, op)
	if err != nil {
		return explain(err)
	}
	return t.say(cmd, op, "%s %s (uid %s, generation %d)", done, name, op.ResourceUID, op.Generation)
}

func newResourcesList() *cobra.Command {
	var t target
	var filter client.Filter
	cmd := &cobra.Command{Use: "list", Short: "list Resources", Args: cobra.NoArgs}
	t.flags(cmd.Flags())
	cmd.Flags().StringVar(&filter.Space, "space", "", "only of this Space")
	cmd.Flags().StringVar(&filter.Name, "name", "", "only of this name")
	cmd.Flags().StringVar(&filter.Form, "form", "", "only of this Form")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		c, err := t.connect(cmd)
		if err != nil {
			return err
		}
		defer c.Close()
		if filter.Form, err = formURL(filter.Form); err != nil {
			return err
		}
		list := []*client.Resource{}
		for r, err := range c.List(cmd.Context(), filter) {
			if err != nil {
				return explain(err)
			}
			list = append(list, r)
		}
		if t.json {
			return printJSON(cmd, list)
		}
		return writeResources(cmd.OutOrStdout(), list)
	}
	return cmd
}

func writeResources(w io.Writer, list []*client.Resource) error {
	tab := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(tab, "SPACE\tNAME\tFORM\tPHASE\tREADY\tGENERATION\tUID")
	for _, r := range list {
		fmt.Fprintf(tab, "%s\t%s\t%s\t%s\t%s\t%d\t%s\n", r.Space, r.Name, deploy.Kind(r.Form), r.Phase, readiness(r.Observed), r.Generation, r.UID)
	}
	return tab.Flush()
}

// readiness is what an observation says of itself, "-" where its Form has no such member.
func readiness(observed json.RawMessage) string {
	var o struct{ Ready *bool }
	_ = json.Unmarshal(observed, &o) // what cannot be read has none
	return yesNo(o.Ready)
}

func newResourcesShow() *cobra.Command {
	var t resourceTarget
	cmd := &cobra.Command{Use: "show NAME", Short: "show one Resource as the node has it", Args: cobra.ExactArgs(1)}
	t.flagsFor(cmd, false, true)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		return t.with(cmd, args[0], func(_ *client.Client, r *client.Resource) error { return printJSON(cmd, r) })
	}
	return cmd
}

func newResourcesCreate() *cobra.Command {
	var t resourceTarget
	var formName, privateFile string
	cmd := &cobra.Command{Use: "create NAME SPEC --form FORM", Short: "create a Resource and wait for it", Args: cobra.ExactArgs(2)}
	t.flagsFor(cmd, true, false)
	cmd.Flags().StringVar(&formName, "form", "", "Form of the Resource (required)")
	privateFlag(cmd, &privateFile)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		c, err := t.connect(cmd)
		if err != nil {
			return err
		}
		defer c.Close()
		url, err := formURL(formName)
		if err != nil {
			return err
		}
		if url == "" {
			return usagef("--form is needed")
		}
		spec, err := readSpec(cmd, args[1])
		if err != nil {
			return err
		}
		private, err := readPrivate(cmd, privateFile, args[1])
		if err != nil {
			return err
		}
		op, err := c.Create(cmd.Context(), client.Create{Form: url, Space: t.space, Name: args[0], Spec: spec, PrivateInputs: private}, client.NewKey())
		return t.settle(cmd, c, op, err, args[0], "created")
	}
	return cmd
}

func newResourcesUpdate() *cobra.Command {
	var t resourceTarget
	var privateFile string
	cmd := &cobra.Command{Use: "update NAME SPEC", Short: "replace the spec of a Resource and wait for it", Args: cobra.ExactArgs(2)}
	t.flagsFor(cmd, true, true)
	privateFlag(cmd, &privateFile)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		spec, err := readSpec(cmd, args[1])
		if err != nil {
			return err
		}
		private, err := readPrivate(cmd, privateFile, args[1])
		if err != nil {
			return err
		}
		return t.with(cmd, args[0], func(c *client.Client, r *client.Resource) error {
			op, err := c.Update(cmd.Context(), r.UID, t.at(r), spec, private, client.NewKey())
			return t.settle(cmd, c, op, err, r.Name, "updated")
		})
	}
	return cmd
}

func newResourcesDelete() *cobra.Command {
	var t resourceTarget
	cmd := &cobra.Command{Use: "delete NAME", Short: "delete a Resource that nothing depends on and wait for its end", Args: cobra.ExactArgs(1)}
	t.flagsFor(cmd, true, true)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		return t.with(cmd, args[0], func(c *client.Client, r *client.Resource) error {
			op, err := c.Delete(cmd.Context(), r.UID, t.at(r), client.NewKey())
			return t.settle(cmd, c, op, err, r.Name, "deleted")
		})
	}
	return cmd
}

// at is the generation that a mutation expects.
func (t *resourceTarget) at(r *client.Resource) int64 {
	if t.generation != 0 {
		return t.generation
	}
	return r.Generation
}
