package selftest

import (
	"fmt"
	"io"
	"time"
)

// Outcomes of a check.
const (
	Passed  = "pass"
	Failed  = "fail"
	Skipped = "skip"
)

// Result is one check.
type Result struct {
	Name    string `json:"name"`
	Section string `json:"section"` // of the contract
	Outcome string `json:"outcome"` // pass, fail or skip
	Why     string `json:"why,omitempty"`
	Millis  int64  `json:"millis"`
}

// Left is a Resource that could not be removed.
type Left struct {
	Kind string `json:"kind"`
	Name string `json:"name"`
	UID  string `json:"uid"`
	Why  string `json:"why"`
}

// Report is what a selftest found and left.
type Report struct {
	Space    string   `json:"space"`
	Passed   int      `json:"passed"`
	Failed   int      `json:"failed"`
	Skipped  int      `json:"skipped"`
	Checks   []Result `json:"checks"`
	Removed  int      `json:"removed"` // Resources
	Left     []Left   `json:"left"`
	Unlisted string   `json:"unlisted,omitempty"` // why it is not known what is left
}

// Good reports whether every check that was not left out on purpose passed, and nothing was left.
func (r *Report) Good() bool {
	return r.Failed == 0 && r.Passed > 0 && len(r.Left) == 0 && r.Unlisted == ""
}

func (r *Report) add(c Result) {
	switch c.Outcome {
	case Passed:
		r.Passed++
	case Failed:
		r.Failed++
	default:
		r.Skipped++
	}
	r.Checks = append(r.Checks, c)
}

// WriteLine writes one result for people.
func (c Result) WriteLine(w io.Writer) error {
	_, err := fmt.Fprintf(w, "%s  %-20s %-24s %6v", c.Outcome, c.Name, c.Section, (time.Duration(c.Millis) * time.Millisecond).Round(time.Millisecond))
	if err == nil && c.Why != "" {
		_, err = fmt.Fprintf(w, "\n      %s", c.Why)
	}
	if err == nil {
		_, err = fmt.Fprintln(w)
	}
	return err
}

// WriteSummary writes what comes behind the results.
func (r *Report) WriteSummary(w io.Writer) error {
	_, err := fmt.Fprintf(w, "\n%d passed, %d failed, %d left out; removed %d Resources of Space %s\n", r.Passed, r.Failed, r.Skipped, r.Removed, r.Space)
	for _, l := range r.Left {
		if err == nil {
			_, err = fmt.Fprintf(w, "not removed: %s %s (%s): %s\n", l.Kind, l.Name, l.UID, l.Why)
		}
	}
	if err == nil && r.Unlisted != "" {
		_, err = fmt.Fprintf(w, "it is not known what is left: %s\n", r.Unlisted)
	}
	if err == nil && (len(r.Left) > 0 || r.Unlisted != "") {
		_, err = fmt.Fprintf(w, "remove it with: edged selftest --remove %s\n", r.Space)
	}
	return err
}
