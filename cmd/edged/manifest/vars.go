package manifest

import (
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"slices"

	"edged/control/form"
)

// version judges specs as the node does.
var version = form.Builtin()[form.WorkerVersionURL]

// vars reads [vars]; every var is judged by itself, so that one fault does not hide the next.
func (r *reader) vars() {
	const at = "/vars"
	table, _ := read[map[string]any](r, r.tree, "", "vars")
	r.collisions(table)
	if len(table) == 0 {
		return
	}
	if _, hasMain := r.tree["main"]; !hasMain {
		r.fault(at, "vars need main: a static site has no environment")
	}
	sound := true
	for _, name := range slices.Sorted(maps.Keys(table)) {
		pointer := at + "/" + escape(name)
		if where, why := unfit(pointer, table[name], 0); why != "" {
			r.fault(where, "var %.80q %s", name, why)
			sound = false
		} else if where, why := judge(map[string]any{name: table[name]}); why != "" {
			r.fault(where, "%s", why)
		}
	}
	if !sound {
		return
	}
	// Of all of them together only the count is new.
	if len(table) > 64 {
		if where, why := judge(table); why != "" {
			r.fault(where, "%s", why)
		}
	}
	r.m.Vars, _ = json.Marshal(table) // holds nothing that cannot be encoded: unfit looked
}

// maxLevels is only there to end recursion: the node's own limit is far below.
const maxLevels = 64

// unfit returns the first place at which a TOML value is none of JSON, and why.
func unfit(pointer string, val any, level int) (where, why string) {
	if level > maxLevels {
		return pointer, "is nested too deep"
	}
	switch val := val.(type) {
	case string, bool, int64:
	case float64:
		if math.IsNaN(val) || math.IsInf(val, 0) {
			return pointer, "is not a finite number"
		}
	case []any:
		for i, e := range val {
			if where, why := unfit(fmt.Sprintf("%s/%d", pointer, i), e, level+1); why != "" {
				return where, why
			}
		}
	case map[string]any:
		for _, k := range slices.Sorted(maps.Keys(val)) {
			if where, why := unfit(pointer+"/"+escape(k), val[k], level+1); why != "" {
				return where, why
			}
		}
	default:
		return pointer, "holds a date or time, which is no JSON value: write it as a string"
	}
	return "", ""
}

// judge asks the Form what it thinks of vars.
func judge(vars map[string]any) (where, why string) { return judgeMember("vars", vars) }

// judgeMember asks the Form what it thinks of one member of a version's spec.
func judgeMember(member string, val any) (where, why string) {
	ref := map[string]string{"resourceUid": "u"}
	spec, err := json.Marshal(map[string]any{"worker": ref, "bundle": ref, "handlers": []string{}, member: val})
	if err != nil {
		return "/" + member, err.Error()
	}
	if _, verdict := version.Parse(spec); verdict != nil {
		return verdict.Pointer, verdict.Sentence
	}
	return "", ""
}

// collisions holds the names of vars, secrets and bindings to their one namespace (worker-aggregate rule 6). Names that
// repeat within one table are refused by TOML itself.
func (r *reader) collisions(vars map[string]any) {
	first := map[string]string{}
	declare := func(name, what, pointer string) {
		if before, taken := first[name]; taken {
			r.fault(pointer, "%s %q collides with the %s of that name in line %d: all share one environment",
				what, name, before, r.lines.of(placeOf(before, name)))
			return
		}
		first[name] = what
	}
	for _, name := range slices.Sorted(maps.Keys(vars)) {
		declare(name, "var", placeOf("var", name))
	}
	bindings, _ := r.tree["bindings"].(map[string]any)
	for _, name := range slices.Sorted(maps.Keys(bindings)) {
		declare(name, "binding", placeOf("binding", name))
	}
	secrets, _ := r.tree["secrets"].(map[string]any)
	required, _ := secrets["required"].([]any)
	for i, item := range required {
		if name, ok := item.(string); ok {
			declare(name, "secret", fmt.Sprintf("/secrets/required/%d", i))
		}
	}
}

func placeOf(what, name string) string {
	switch what {
	case "var":
		return "/vars/" + escape(name)
	case "binding":
		return "/bindings/" + escape(name)
	}
	return "/secrets/required"
}
