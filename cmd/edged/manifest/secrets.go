package manifest

import (
	"fmt"
	"slices"
	"strings"
)

// Secret is a name in env whose value does not stand in the manifest.
type Secret struct {
	Name string
	Line int
}

// maxList bounds every list of a version (worker-version §2.3).
const maxList = 64

// secrets reads [secrets].
func (r *reader) secrets() {
	table, ok := read[map[string]any](r, r.tree, "", "secrets")
	if !ok {
		return
	}
	const at = "/secrets"
	r.keys(at, table, "required")
	items, ok := read[[]any](r, table, at, "required")
	if _, present := table["required"]; !present {
		r.fault(at, "required is missing in [secrets]: the list of names")
	}
	if !ok {
		return
	}
	for i, item := range items {
		pointer := fmt.Sprintf("%s/required/%d", at, i)
		name, ok := item.(string)
		if !ok {
			r.fault(pointer, "required must hold strings")
		} else if where, why := judgeMember("requiredSensitiveVars", []string{name}); why != "" {
			r.fault(pointer, "secret %.80q %s", name, sentence(where, why))
		} else {
			r.m.Secrets = append(r.m.Secrets, Secret{name, r.lines.of(pointer)})
		}
	}
	if len(items) > maxList {
		r.fault(at+"/required", "there are %d secrets, allowed are %d", len(items), maxList)
	}
	if _, hasMain := r.tree["main"]; len(items) > 0 && !hasMain {
		r.fault(at, "secrets need main: a static site has no environment")
	}
	slices.SortFunc(r.m.Secrets, func(a, b Secret) int { return strings.Compare(a.Name, b.Name) })
}

// sentence takes the place in the spec, which the author never wrote, out of the node's words.
func sentence(where, why string) string { return strings.TrimPrefix(why, where+" ") }
