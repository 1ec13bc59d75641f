package deploy

import (
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"

	"edged/cmd/edged/manifest"
	"edged/control/client"
)

// Report is what a deploy did and found.
type Report struct {
	Name      string          `json:"name"`
	Space     string          `json:"space"`
	DryRun    bool            `json:"dryRun"`  // nothing was changed: the steps are what would be done
	Changed   bool            `json:"changed"` // something was, or would be, created, updated, repaired, replaced or deleted
	Version   string          `json:"version"` // UID
	Weights   []Share         `json:"weights"` // the worker's traffic after the deploy
	Steps     []Step          `json:"steps"`
	Addresses []Address       `json:"addresses"`
	Kept      []Kept          `json:"kept"`     // attachments that the manifest does not ask for
	Refusals  []Refusal       `json:"refusals"` // what would be refused, in the order in which to mend it
	Warnings  manifest.Faults `json:"warnings"`
}

func newReport(name string, opt *Options) *Report {
	return &Report{Name: name, Space: opt.Space, DryRun: opt.DryRun, Weights: []Share{}, Steps: []Step{}, Addresses: []Address{}, Kept: []Kept{},
		Refusals: []Refusal{}, Warnings: manifest.Faults{}}
}

// Step is one Resource that is as it should be.
type Step struct {
	Action string `json:"action"` // created, updated, repaired, replaced, deleted, unchanged; create and so on in a dry run
	Kind   string `json:"kind"`   // short name of its Form
	Name   string `json:"name"`
	UID    string `json:"uid"`
	Note   string `json:"note,omitempty"`
}

// Address is where the worker can be reached.
type Address struct {
	Hostname string `json:"hostname"`
	URL      string `json:"url"`
	// Now is an address without DNS and port mapping that answers now, when asked for Hostname; set by whoever knows the
	// node's listeners.
	Now string `json:"now,omitempty"`
}

// Kept is an attachment that stays although the manifest does not ask for it any more.
type Kept struct {
	Kind     string `json:"kind"`
	Name     string `json:"name"`
	UID      string `json:"uid"`
	Hostname string `json:"hostname"` // of an address, else empty

	form string
}

// what is how people call it.
func (k Kept) what() string {
	if k.Hostname != "" {
		return k.Hostname
	}
	return k.Name
}

func keptOf(r *client.Resource) Kept {
	var a Address
	_ = json.Unmarshal(r.Output, &a) // an address that cannot be read is told by its name alone
	return Kept{Kind(r.Form), r.Name, r.UID, a.Hostname, r.Form}
}

// done reports a step that was done, or in a dry run would be.
func (d *deployer) done(w *want, action string, r *client.Resource) {
	s := Step{Action: action, Kind: Kind(w.form), Name: w.name, Note: w.note}
	if r != nil {
		s.UID = r.UID
		var a Address
		if s.Note == "" && json.Unmarshal(r.Output, &a) == nil {
			s.Note = a.Hostname
		}
	}
	d.report.Steps = append(d.report.Steps, s)
	d.report.Changed = d.report.Changed || action != "unchanged"
}

// WriteText renders the report for people.
func (r *Report) WriteText(w io.Writer) error {
	var table strings.Builder
	tab := tabwriter.NewWriter(&table, 0, 0, 2, ' ', 0)
	for _, s := range r.Steps {
		fmt.Fprintf(tab, "%s\t%s\t%s\t%s\n", s.Action, s.Kind, s.Name, s.Note)
	}
	if err := tab.Flush(); err != nil {
		return err
	}
	for line := range strings.Lines(table.String()) {
		if _, err := fmt.Fprintln(w, strings.TrimRight(line, " \n")); err != nil {
			return err
		}
	}
	for _, k := range r.Kept {
		fmt.Fprintf(w, "kept: %s is no longer in the manifest; to take it off the net: edged resources delete %s --space %s\n", k.what(), k.Name, r.Space)
	}
	r.writeRefusals(w)
	for _, a := range r.Addresses {
		fmt.Fprintf(w, "\n%s\n", a.URL)
		if a.Now != "" {
			fmt.Fprintf(w, "  now: curl -H 'Host: %s' %s\n", a.Hostname, a.Now)
		}
	}
	return nil
}

// writeRefusals ends the report of a dry run.
func (r *Report) writeRefusals(w io.Writer) {
	if !r.DryRun {
		return
	}
	if len(r.Refusals) > 0 {
		fmt.Fprintln(w, "\nwould be refused; in the order in which to mend it:")
	}
	for i, f := range r.Refusals {
		fmt.Fprintf(w, "%d. %s\n", i+1, f.Error())
	}
	fmt.Fprintln(w, "\nnothing was changed (dry run)")
}

// sortByName orders what is told.
func sortByName[T any](list []T, name func(T) string) {
	slices.SortFunc(list, func(a, b T) int { return strings.Compare(name(a), name(b)) })
}

// describe says how much a bundle is.
func (s *FileSet) describe() string {
	files := "files"
	if len(s.Files) == 1 {
		files = "file"
	}
	return fmt.Sprintf("%d %s, %s", len(s.Files), files, size(s.Bytes()))
}

func size(n int64) string {
	switch {
	case n >= 1<<20:
		return fmt.Sprintf("%.1f MiB", float64(n)/(1<<20))
	case n >= 1<<10:
		return fmt.Sprintf("%.1f KiB", float64(n)/(1<<10))
	}
	return fmt.Sprintf("%d B", n)
}

// describeShares says who gets how much, by the names of the versions.
func describeShares(shares []Share, names map[string]string) string {
	parts := make([]string, len(shares))
	for i, s := range shares {
		parts[i] = Percent(s.Weight) + " " + names[s.Version]
	}
	return strings.Join(parts, ", ")
}

// Reachable notes at every address that the plain listener at host:port answers for it; "" is a listener that is off or
// not known.
func (r *Report) Reachable(listener string) {
	if listener == "" {
		return
	}
	for i := range r.Addresses {
		r.Addresses[i].Now = "http://" + listener + "/"
	}
}
