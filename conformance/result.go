package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"path"
)

// Statuses of a case and of its parts.
const (
	pass    = "pass"
	fail    = "fail"
	timeout = "timeout"
	broken  = "error"   // the case as a whole did not come to its results
	skipped = "skipped" // left out; why is in the reason
)

// testCase is one thing to run: a file in one variant or mode.
type testCase struct {
	name string // path below the suite's folder, and the variant
	file string // path below the suite's folder, with slashes
	mode string // variant or mode, "" for none
	skip string // why it is left out, "" if it is not; known from the file itself
}

// result is what became of a case. Its JSON does not depend on time or machine: two runs can be compared line by line.
type result struct {
	Name    string `json:"name"`
	Status  string `json:"status"` // broken or timeout if not every part was reached
	Message string `json:"message,omitempty"`
	Reason  string `json:"reason,omitempty"` // why it was left out
	Parts   []part `json:"parts,omitempty"`
}

// part is a subtest. A case of test262 is one part without a name.
type part struct {
	Name    string `json:"name,omitempty"`
	Status  string `json:"status"`
	Message string `json:"message,omitempty"`
	Known   string `json:"known,omitempty"` // the list's reason for its failure
}

func (r *result) folder(depth int) string {
	dir := path.Dir(r.Name)
	for n, c := range dir {
		if c == '/' {
			if depth--; depth == 0 {
				return dir[:n]
			}
		}
	}
	return dir
}

func writeResults(name string, results []result) (err error) {
	if name == "" {
		return nil
	}
	f, err := os.Create(name)
	if err != nil {
		return err
	}
	defer func() {
		if e := f.Close(); err == nil {
			err = e
		}
	}()
	w := bufio.NewWriter(f)
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	for i := range results {
		if err := enc.Encode(&results[i]); err != nil {
			return err
		}
	}
	return w.Flush()
}

func readResults(name string) ([]result, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	var all []result
	for dec := json.NewDecoder(bufio.NewReader(f)); dec.More(); {
		var r result
		if err := dec.Decode(&r); err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		all = append(all, r)
	}
	return all, nil
}
