package form

import (
	"encoding/json"
	"sort"
	"strconv"
	"unicode/utf8"

	"edged/control/rules"
)

const (
	maxVarLevels = 8    // nested containers inside one value; a scalar has level 0
	maxVarItems  = 64   // elements of an array, members of an object
	maxVarRunes  = 8192 // Unicode scalar values of a string
)

// readVars reads the vars member: names, then values, in ascending order of name so that refusals do not depend on
// map order.
func readVars(s *Spec, pointer string, val any) (any, *rules.Verdict) {
	obj, ok := val.(map[string]any)
	if !ok {
		return nil, invalid(pointer, "%s must be an object", pointer)
	}
	if len(obj) > maxVarItems {
		return nil, invalid(pointer, "%s has %d keys, allowed are 64", pointer, len(obj))
	}
	for _, name := range sortedKeys(obj) {
		at := pointer + "/" + escape(name)
		if !isVarName(name) {
			return nil, invalid(at, "%s: a var name must match [A-Za-z][A-Za-z0-9._-]{0,63}", at)
		}
		if v := checkVar(at, obj[name], 0); v != nil {
			return nil, v
		}
		s.Names = append(s.Names, rules.EnvName{Name: name, Pointer: at})
	}
	return obj, nil
}

// checkVar bounds one value; level is the number of containers around it.
func checkVar(at string, val any, level int) *rules.Verdict {
	switch val := val.(type) {
	case string:
		if len(val) > maxVarRunes && utf8.RuneCountInString(val) > maxVarRunes {
			return invalid(at, "%s is longer than 8192 characters", at)
		}
	case []any:
		if level >= maxVarLevels {
			return invalid(at, "%s is nested deeper than 8 levels", at)
		}
		if len(val) > maxVarItems {
			return invalid(at, "%s has %d elements, allowed are 64", at, len(val))
		}
		for i, e := range val {
			if v := checkVar(at+"/"+strconv.Itoa(i), e, level+1); v != nil {
				return v
			}
		}
	case map[string]any:
		if level >= maxVarLevels {
			return invalid(at, "%s is nested deeper than 8 levels", at)
		}
		if len(val) > maxVarItems {
			return invalid(at, "%s has %d members, allowed are 64", at, len(val))
		}
		for _, name := range sortedKeys(val) {
			p := at + "/" + escape(name)
			if !isVarName(name) {
				return invalid(p, "%s: a key must match [A-Za-z][A-Za-z0-9._-]{0,63}", p)
			}
			if v := checkVar(p, val[name], level+1); v != nil {
				return v
			}
		}
	case json.Number, bool, nil:
	}
	return nil
}

func sortedKeys(obj map[string]any) []string {
	keys := make([]string, 0, len(obj))
	for k := range obj {
		keys = append(keys, k)
	}
	sort.Strings(keys)
	return keys
}
