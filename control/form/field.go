package form

import (
	"strconv"

	"edged/control/rules"
)

// Field is one top-level member of a spec.
type Field struct {
	Name     string
	Required bool
	Default  any  // value that stands for an omitted member in comparisons; nil means that omission is a value of its own
	Binding  bool // its entries are bindings: each takes a name in env
	// Read checks the value, notes what it says in the spec and returns it in canonical form. nil takes no value.
	Read func(s *Spec, pointer string, val any) (any, *rules.Verdict)
}

// maxList bounds every list of a version.
const maxList = 64

// reference makes a required reference field; note tells where the spec keeps its UID.
func reference(name string, use Use, accept []string, note func(*Spec, string)) Field {
	return Field{Name: name, Required: true, Read: func(s *Spec, pointer string, val any) (any, *rules.Verdict) {
		uid, v := readRef(s, pointer, val, Ref{Accept: accept, Use: use})
		if v == nil && note != nil {
			note(s, uid)
		}
		return uid, v
	}}
}

func optional(f Field) Field {
	f.Required = false
	return f
}

// readRef reads {"resourceUid": uid} (REL-0) and notes the reference.
func readRef(s *Spec, pointer string, val any, ref Ref) (string, *rules.Verdict) {
	obj, v := exactly(pointer, val, "resourceUid")
	if v != nil {
		v.Rule = "REL-0"
		return "", v
	}
	uid, ok := obj["resourceUid"].(string)
	if !ok || !IsName(uid) {
		p := pointer + "/resourceUid"
		return "", rules.Refuse(rules.InvalidArgument, "REL-0", p, nil, "%s must be a UID", p)
	}
	ref.Pointer, ref.UID = pointer, uid
	s.Refs = append(s.Refs, ref)
	return uid, nil
}

// bindings makes a binding list; kind is what its entries are bound to. Marked as such, it takes part in rule 6 and in the deletion rules without further code.
func bindings(name, kind string, use Use, accept ...string) Field {
	return Field{Name: name, Default: []any{}, Binding: true, Read: func(s *Spec, pointer string, val any) (any, *rules.Verdict) {
		items, v := list(pointer, val, 0, maxList)
		if v != nil {
			return nil, v
		}
		set := make(map[string]any, len(items))
		for i, item := range items {
			at := pointer + "/" + strconv.Itoa(i)
			obj, v := exactly(at, item, "name", "resource")
			if v != nil {
				return nil, v
			}
			bound, v := text(at+"/name", obj["name"])
			if v != nil {
				return nil, v
			}
			if !isBindingName(bound) {
				return nil, invalid(at+"/name", "%s/name must match [A-Za-z_$][A-Za-z0-9_$]{0,63}", at)
			}
			uid, v := readRef(s, at+"/resource", obj["resource"], Ref{Accept: accept, Use: use, Binding: bound, Kind: kind})
			if v != nil {
				return nil, v
			}
			s.Names = append(s.Names, rules.EnvName{Name: bound, Pointer: at + "/name"})
			set[bound] = uid // a repeated name is refused by rule 6 before anything is compared
		}
		return set, nil
	}}
}
