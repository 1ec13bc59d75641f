package main

import (
	"fmt"
	"io"
)

// compare prints every case and part whose status differs between two result files. It is how an edit of the engine is
// shown to change nothing: run the suite with either engine embedded, compare. Messages may differ, statuses may not.
func compare(before, after string, out io.Writer) error {
	a, err := readResults(before)
	if err != nil {
		return err
	}
	b, err := readResults(after)
	if err != nil {
		return err
	}
	was, differ := statuses(a), 0
	is := statuses(b)
	for _, r := range b {
		for _, key := range keys(&r) {
			if w, ok := was[key]; !ok || w != is[key] {
				differ++
				fmt.Fprintf(out, "%s: was %s, is %s\n", key, orNone(w), is[key])
			}
			delete(was, key)
		}
	}
	for _, r := range a {
		for _, key := range keys(&r) {
			if w, left := was[key]; left {
				differ++
				fmt.Fprintf(out, "%s: was %s, is none\n", key, w)
			}
		}
	}
	fmt.Fprintf(out, "%d lines compared, %d differ\n", len(is), differ)
	if differ > 0 {
		return fmt.Errorf("%d results differ", differ)
	}
	return nil
}

func orNone(s string) string {
	if s == "" {
		return "none"
	}
	return s
}

// keys are the names of a case and of its parts, in their order; a name that occurs again gets a number.
func keys(r *result) []string {
	out := []string{r.Name}
	seen := map[string]int{}
	for _, p := range r.Parts {
		seen[p.Name]++
		out = append(out, fmt.Sprintf("%s | %s #%d", r.Name, p.Name, seen[p.Name]))
	}
	return out
}

func statuses(results []result) map[string]string {
	m := make(map[string]string)
	for i := range results {
		r := &results[i]
		for n, key := range keys(r) {
			if n == 0 {
				m[key] = r.Status
			} else {
				m[key] = r.Parts[n-1].Status
			}
		}
	}
	return m
}
