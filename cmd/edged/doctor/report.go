package doctor

import (
	"fmt"
	"io"
	"strings"
)

// Level is what a finding means for the node.
type Level string

// The levels, best first.
const (
	Fine   Level = "fine"
	Note   Level = "note"   // costs speed or comfort, or could not be looked at
	Danger Level = "danger" // endangers data, traffic or a deadline that comes
	Stops  Level = "stops"  // the node does not start, or does not serve
)

// Finding is one thing that was looked at. Consequence and Fix are there unless it is fine.
type Finding struct {
	Check       string `json:"check"` // subject.what; stable, one finding each
	Level       Level  `json:"level"`
	Found       string `json:"found"`
	Consequence string `json:"consequence,omitempty"`
	Fix         string `json:"fix,omitempty"`
}

// Report is everything that was found, in the order of the subjects.
type Report struct {
	Healthy  bool      `json:"healthy"` // nothing stops or endangers the node
	Running  bool      `json:"running"` // a node serves on the data directory
	Findings []Finding `json:"findings"`
}

// WriteText writes a report for people.
func (r *Report) WriteText(w io.Writer) error {
	count := map[Level]int{}
	for _, f := range r.Findings {
		count[f.Level]++
		var b strings.Builder
		fmt.Fprintf(&b, "%-7s %-18s %s\n", f.Level, f.Check, f.Found)
		if f.Level != Fine {
			fmt.Fprintf(&b, "%26s so:  %s\n%26s fix: %s\n", "", f.Consequence, "", f.Fix)
		}
		if _, err := io.WriteString(w, b.String()); err != nil {
			return err
		}
	}
	node := "the node does not run"
	if r.Running {
		node = "the node runs"
	}
	_, err := fmt.Fprintf(w, "\n%s: %d fine, %d to note, %d dangerous, %d that stop it\n", node, count[Fine], count[Note], count[Danger], count[Stops])
	return err
}
