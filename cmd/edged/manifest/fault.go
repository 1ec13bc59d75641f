package manifest

import (
	"fmt"
	"slices"
	"strings"
)

// Fault is one thing that is wrong, and where.
type Fault struct {
	File string `json:"file"`
	Line int    `json:"line,omitempty"` // 1 is the first; 0 speaks of the file as a whole
	Text string `json:"text"`
}

// Error renders the fault as file:line: text.
func (f Fault) Error() string {
	if f.Line == 0 {
		return f.File + ": " + f.Text
	}
	return fmt.Sprintf("%s:%d: %s", f.File, f.Line, f.Text)
}

// Faults is everything that is wrong, in the order of the files' lines. As an error it is not empty.
type Faults []Fault

// Error renders one fault a line.
func (fs Faults) Error() string {
	lines := make([]string, len(fs))
	for i, f := range fs {
		lines[i] = f.Error()
	}
	return strings.Join(lines, "\n")
}

// orNil sorts the faults by line and returns them as an error, nil if there are none.
func (fs Faults) orNil() error {
	if len(fs) == 0 {
		return nil
	}
	slices.SortStableFunc(fs, func(a, b Fault) int { return a.Line - b.Line })
	return fs
}
