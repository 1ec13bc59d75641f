package main

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"edged/cmd/edged/deploy"
	"edged/control/client"
	"edged/control/form"
)

// nodeStatus is a node at a glance.
type nodeStatus struct {
	Control string            `json:"control"` // the API's root
	HTTP    string            `json:"http,omitempty"`
	HTTPS   string            `json:"https,omitempty"`
	Ready   *bool             `json:"ready"` // null if the admin listener is not known or off
	Reasons map[string]string `json:"reasons,omitempty"`
	Fleet   *fleetStatus      `json:"fleet,omitempty"`  // missing on a node alone, and for who is no operator of the whole node
	Vitals  *vitals           `json:"vitals,omitempty"` // not there if the metrics cannot be had
	Workers []workerStatus    `json:"workers"`
	Trouble []trouble         `json:"trouble"` // Resources that are not as they should be
}

// fleetStatus is the fleet of a node at a glance.
type fleetStatus struct {
	Node    string `json:"node,omitempty"` // the name of the node on this machine; "" if another was asked
	Roles   string `json:"roles,omitempty"`
	State   string `json:"state,omitempty"`
	Plan    string `json:"plan,omitempty"` // how far it is with the plan
	Members int    `json:"members"`
	Voters  int    `json:"voters"`
	Leader  string `json:"leader"` // the name
	Index   uint64 `json:"index"`  // of the plan
}

// statusOf sums a list up. self is the ID of the node on this machine, "" if it is not known.
func statusOf(list fleetList, self string) *fleetStatus {
	if len(list.Items) == 0 {
		return nil
	}
	s := &fleetStatus{Members: len(list.Items), Index: list.Index}
	for _, n := range list.Items {
		if n.Votes {
			s.Voters++
		}
		if n.Leads {
			s.Leader = n.Name
		}
		if n.ID == self {
			s.Node, s.Roles, s.State, s.Plan = n.Name, rolesOf(n.Control, n.Edge), stateOf(n), planOf(n, list.Index)
		}
	}
	return s
}

type workerStatus struct {
	Space     string   `json:"space"`
	Name      string   `json:"name"`
	UID       string   `json:"uid"`
	Ready     string   `json:"ready"` // yes, no, or - while unknown
	Versions  []weight `json:"versions"`
	Addresses []string `json:"addresses"`
}

type weight struct {
	UID    string `json:"uid"`
	Name   string `json:"name"`
	Weight int    `json:"weight"` // basis points
}

func newStatusCommand() *cobra.Command {
	var t target
	cmd := &cobra.Command{
		Use: "status", Short: "the node at a glance: readiness, load, what is broken and why, workers and their addresses", Args: cobra.NoArgs,
		Long: "Show the node at a glance: whether it is ready, else why not; since when it runs, what it is doing and what it refused (where the admin\n" +
			"listener is known); the workers with their weights and addresses; and every Resource that is not as it should be, with the reason.",
	}
	t.flags(cmd.Flags())
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		if err := applyConfig(cmd.Flags(), "", os.LookupEnv); err != nil {
			return usageError{err}
		}
		if l := t.listeners(); l.Role != "" || outHere(cmd.Context(), l) {
			s, err := readEdge(cmd.Context(), l)
			if err != nil {
				return explain(err)
			}
			if t.json {
				return printJSON(cmd, s)
			}
			return s.write(cmd.OutOrStdout())
		}
		c, err := t.connect(cmd)
		if err != nil {
			return err
		}
		defer c.Close()
		l := t.listeners()
		s := nodeStatus{HTTP: l.HTTP, HTTPS: l.HTTPS}
		if err := s.read(cmd.Context(), c); err != nil {
			return explain(err)
		}
		if list, err := askFleet(cmd.Context(), c); err == nil {
			s.Fleet = statusOf(list, t.nodeID())
		}
		if l.Admin != "" {
			s.askReady(cmd.Context(), "http://"+l.Admin+"/readyz")
			s.Vitals = askVitals(cmd.Context(), "http://"+l.Admin+"/metrics", time.Now())
		}
		if t.json {
			return printJSON(cmd, s)
		}
		return s.write(cmd.OutOrStdout())
	}
	return cmd
}

// read gathers what the Host API tells. It reads page by page while others may change things, so what belongs together
// may be of different moments.
func (s *nodeStatus) read(ctx context.Context, c *client.Client) error {
	d, err := c.Discover(ctx)
	if err != nil {
		return err
	}
	s.Control = d.BaseURL
	s.Workers, s.Trouble = []workerStatus{}, []trouble{}
	at, names := map[string]int{}, map[string]string{}
	var parts []*client.Resource // of workers
	for r, err := range c.List(ctx, client.Filter{}) {
		if err != nil {
			return err
		}
		switch r.Form {
		case form.ModuleWorkerURL:
			at[r.UID] = len(s.Workers)
			s.Workers = append(s.Workers, workerStatus{
				Space: r.Space, Name: r.Name, UID: r.UID, Ready: readiness(r.Observed), Versions: []weight{}, Addresses: []string{},
			})
		case form.WorkerVersionURL:
			names[r.UID] = r.Name
		case form.WorkerDeploymentURL, form.WorkerEndpointURL, form.CustomDomainURL:
			parts = append(parts, r)
		}
		if t, ok := troubleOf(ctx, c, r, len(s.Trouble) < maxTrouble); ok {
			s.Trouble = append(s.Trouble, t)
		}
	}
	for _, r := range parts {
		if i, ok := at[ownerOf(r)]; ok {
			s.Workers[i].add(r, names)
		}
	}
	slices.SortFunc(s.Workers, func(a, b workerStatus) int { return strings.Compare(a.Space+"\x00"+a.Name, b.Space+"\x00"+b.Name) })
	return nil
}

func ownerOf(r *client.Resource) string {
	var spec struct {
		Worker struct {
			UID string `json:"resourceUid"`
		} `json:"worker"`
	}
	_ = json.Unmarshal(r.Spec, &spec) // what has no worker belongs to none
	return spec.Worker.UID
}

// add takes in a deployment or an attachment of the worker.
func (w *workerStatus) add(r *client.Resource, versions map[string]string) {
	if r.Form != form.WorkerDeploymentURL {
		var out struct{ URL string }
		if json.Unmarshal(r.Output, &out) == nil && out.URL != "" {
			w.Addresses = append(w.Addresses, out.URL)
		}
		return
	}
	var o struct {
		Active           bool
		SelectedVersions []struct {
			ResourceUID string
			Weight      int
		}
	}
	if json.Unmarshal(r.Observed, &o) != nil || !o.Active {
		return
	}
	for _, v := range o.SelectedVersions {
		w.Versions = append(w.Versions, weight{v.ResourceUID, versions[v.ResourceUID], v.Weight})
	}
}

// askReady asks the admin listener; a node that does not answer there is not ready.
func (s *nodeStatus) askReady(ctx context.Context, url string) {
	ready := false
	s.Ready = &ready
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		s.Reasons = map[string]string{"admin": err.Error()}
		return
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		s.Reasons = map[string]string{"admin": err.Error()}
		return
	}
	defer res.Body.Close()
	var answer struct{ Reasons map[string]string }
	// The status alone decides; reasons are told where they can be read.
	_ = json.NewDecoder(io.LimitReader(res.Body, 1<<20)).Decode(&answer)
	ready, s.Reasons = res.StatusCode == http.StatusOK, answer.Reasons
}

func (s *nodeStatus) write(w io.Writer) error {
	fmt.Fprintf(w, "control  %s\n", s.Control)
	s.writeHead(w)
	if f := s.Fleet; f != nil {
		fmt.Fprintf(w, "fleet    %d members, %d vote, %s leads, plan %d\n", f.Members, f.Voters, cmp.Or(f.Leader, "nobody"), f.Index)
		if f.Node != "" {
			fmt.Fprintf(w, "         %s: %s, %s, plan %s\n", f.Node, f.Roles, f.State, f.Plan)
		}
	}
	if s.Vitals != nil {
		s.Vitals.write(w)
	}
	return s.writeWorkers(w)
}

// writeHead shows what any node tells: where it listens and whether it is ready.
func (s *nodeStatus) writeHead(w io.Writer) {
	if s.HTTP != "" {
		fmt.Fprintf(w, "http     %s\n", s.HTTP)
	}
	if s.HTTPS != "" {
		fmt.Fprintf(w, "https    %s\n", s.HTTPS)
	}
	switch {
	case s.Ready == nil:
		fmt.Fprintln(w, "ready    unknown: the admin listener is off or not known here")
	case *s.Ready:
		fmt.Fprintln(w, "ready    yes")
	default:
		fmt.Fprintln(w, "ready    no")
	}
	subjects := make([]string, 0, len(s.Reasons))
	for subject := range s.Reasons {
		subjects = append(subjects, subject)
	}
	slices.Sort(subjects)
	for _, subject := range subjects {
		fmt.Fprintf(w, "         %s: %s\n", subject, s.Reasons[subject])
	}
}

func (s *nodeStatus) writeWorkers(w io.Writer) error {
	if len(s.Workers) == 0 {
		_, err := fmt.Fprintln(w, "no workers")
		writeTrouble(w, s.Trouble)
		return err
	}
	fmt.Fprintln(w)
	tab := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(tab, "SPACE\tWORKER\tREADY\tVERSIONS\tADDRESSES")
	for _, k := range s.Workers {
		versions := make([]string, len(k.Versions))
		for i, v := range k.Versions {
			if v.Name == "" {
				v.Name = v.UID
			}
			versions[i] = deploy.Percent(v.Weight) + " " + v.Name
		}
		fmt.Fprintf(tab, "%s\t%s\t%s\t%s\t%s\n", k.Space, k.Name, k.Ready, orDash(versions), orDash(k.Addresses))
	}
	err := tab.Flush()
	writeTrouble(w, s.Trouble)
	return err
}

func orDash(list []string) string {
	if len(list) == 0 {
		return "-"
	}
	return strings.Join(list, ", ")
}
