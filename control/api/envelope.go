package api

import (
	"encoding/json"

	"edged/control/form"
	"edged/control/jsonraw"
	"edged/control/state"
)

// envelope fills a command from the common members of a request document. create says whether the members of a create
// belong to it. The values of private inputs are returned apart: nothing that is kept may hold them.
func envelope(body []byte, create bool, c *state.Command) (Private, *problem) {
	if jsonraw.KindOf(body) != jsonraw.Object {
		return nil, malformed("the body must be an object")
	}
	var values Private
	seen := map[string]bool{}
	for name, raw := range jsonraw.Members(body) {
		seen[name] = true
		p := (*problem)(nil)
		switch {
		case name == "spec":
			c.Spec = json.RawMessage(raw)
		case name == "privateInputs":
			c.Private = true
			values, p = privateInputs(raw)
		case create && name == "offering":
			c.Offering, p = true, offering(raw)
		case create && name == "form":
			c.Form, p = member(name, raw, form.IsFormURL)
		case create && name == "space":
			c.Space, p = member(name, raw, form.IsName)
		case create && name == "name":
			c.Name, p = member(name, raw, form.IsName)
		default:
			p = malformed("unknown member in the request")
		}
		if p != nil {
			return nil, p
		}
	}
	needed := []string{"spec"}
	if create {
		needed = []string{"form", "space", "name", "spec"}
	}
	for _, name := range needed {
		if !seen[name] {
			return nil, malformed("member " + name + " is missing")
		}
	}
	return values, nil
}

func member(name string, raw []byte, grammar func(string) bool) (string, *problem) {
	text, ok := jsonraw.Text(raw)
	if !ok || !grammar(text) {
		return "", malformed("member " + name + " is malformed")
	}
	return text, nil
}

func offering(raw []byte) *problem {
	if jsonraw.KindOf(raw) != jsonraw.Object {
		return malformed("member offering must be an object")
	}
	n := 0
	for name, value := range jsonraw.Members(raw) {
		if name != "id" && name != "revision" || jsonraw.KindOf(value) != jsonraw.String {
			return malformed("member offering must have a string id and a string revision")
		}
		n++
	}
	if n != 2 {
		return malformed("member offering must have id and revision")
	}
	return nil
}
