package main

import (
	"bufio"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync/atomic"
)

// rule is a line of a list:
//
//	run PREFIX                   a part of the suite that is run; without such lines it is the whole
//	skip KIND PREFIX : words         leaves out every case whose name starts with PREFIX
//	fail KIND PREFIX : words         says why parts of such cases may fail
//	fail KIND PREFIX | PART : words  only of parts whose name contains PART
//
// A PREFIX that starts with "feature:" is a feature of test262 and matches cases that name it.
type rule struct {
	skip         bool
	kind         string
	prefix, part string
	words        string
	used         atomic.Int64 // cases or parts that it explained
	met          atomic.Int64 // cases it was asked about
}

func (r *rule) reason() string { return r.kind + ": " + r.words }

func (r *rule) String() string {
	verb := "fail"
	if r.skip {
		verb = "skip"
	}
	s := verb + " " + r.kind + " " + r.prefix
	if r.part != "" {
		s += " | " + r.part
	}
	return s
}

type list struct {
	scope []string // prefixes of what is run, none for everything
	rules []*rule
}

// kinds are the words that a list may give as reasons.
type kinds struct{ skip, fail []string }

// parseList reads a list and refuses a line that it does not understand or whose kind is not one of those allowed.
func parseList(in io.Reader, allowed kinds) (*list, error) {
	var l list
	scan := bufio.NewScanner(in)
	for n := 1; scan.Scan(); n++ {
		line := strings.TrimSpace(scan.Text())
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		if prefix, ok := strings.CutPrefix(line, "run "); ok {
			l.scope = append(l.scope, strings.TrimSpace(prefix))
			continue
		}
		where, words, ok := strings.Cut(line, " : ")
		verb, where, _ := strings.Cut(where, " ")
		kind, where, _ := strings.Cut(where, " ")
		prefix, part, _ := strings.Cut(where, " | ")
		if !ok || verb != "skip" && verb != "fail" || prefix == "" || words == "" || verb == "skip" && part != "" {
			return nil, fmt.Errorf("line %d is not a rule: %s", n, line)
		}
		may := allowed.fail
		if verb == "skip" {
			may = allowed.skip
		}
		if !slices.Contains(may, kind) {
			return nil, fmt.Errorf("line %d: %s is none of the reasons to %s: %s", n, kind, verb, strings.Join(may, ", "))
		}
		l.rules = append(l.rules, &rule{skip: verb == "skip", kind: kind, prefix: strings.TrimSpace(prefix), part: part, words: words})
	}
	return &l, scan.Err()
}

// feature is the prefix by which a list names a feature of test262.
const feature = "feature:"

// skip returns why a case is left out, "" if it is not. features are what the case says it needs.
func (l *list) skip(name string, features []string) string {
	for _, r := range l.rules {
		if !r.skip {
			continue
		}
		f, isFeature := strings.CutPrefix(r.prefix, feature)
		if isFeature && slices.Contains(features, f) || !isFeature && strings.HasPrefix(name, r.prefix) {
			r.met.Add(1)
			r.used.Add(1)
			return r.reason()
		}
	}
	return ""
}

// explain sets Known of every part that failed and is listed.
func (l *list) explain(r *result, features []string) {
	for _, x := range l.rules {
		f, isFeature := strings.CutPrefix(x.prefix, feature)
		if x.skip || isFeature && !slices.Contains(features, f) || !isFeature && !strings.HasPrefix(r.Name, x.prefix) {
			continue
		}
		x.met.Add(1)
		for i := range r.Parts {
			p := &r.Parts[i]
			if p.Status != pass && p.Known == "" && strings.Contains(p.Name, x.part) {
				p.Known = x.reason()
				x.used.Add(1)
			}
		}
	}
}

// stale returns the rules about failures that met cases and explained nothing: what they say is no longer so.
func (l *list) stale() (out []string) {
	for _, r := range l.rules {
		if !r.skip && r.met.Load() > 0 && r.used.Load() == 0 {
			out = append(out, r.String())
		}
	}
	return out
}
