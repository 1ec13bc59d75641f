package sandbox

import (
	"bytes"
	"encoding/json"

	"edged/internal/fault"
	"edged/sandbox/engine"
)

// envOf makes what every invocation builds its env from (worker-version §8): the JSON object of variables and secrets,
// and the list of bindings. Both are nil if there is nothing.
func envOf(spec *Spec) (vars, bound []byte, err error) {
	if vars, err = withSecrets(spec.Vars, spec.Secrets); err != nil {
		return nil, nil, err
	}
	if len(spec.Bindings) == 0 {
		return vars, nil, nil
	}
	list := make([][2]string, len(spec.Bindings))
	for i := range spec.Bindings {
		b := &spec.Bindings[i]
		list[i] = [2]string{b.Kind(), b.Name}
		if list[i][0] == "" {
			return nil, nil, fault.Newf(fault.Invalid, "sandbox.Open", "binding %s has no door", b.Name)
		}
	}
	if bound, err = json.Marshal(list); err != nil {
		return nil, nil, fault.Wrap(fault.Internal, "sandbox.Open", err)
	}
	return vars, bound, nil
}

// withSecrets adds the secrets to the object behind its variables. An error never quotes a value.
func withSecrets(vars []byte, secrets map[string]string) ([]byte, error) {
	if len(secrets) == 0 {
		return vars, nil
	}
	var text bytes.Buffer
	if len(vars) == 0 {
		vars = []byte("{}")
	}
	if err := json.Compact(&text, vars); err != nil {
		return nil, fault.New(fault.Internal, "sandbox.Open", "the variables are no JSON")
	}
	text.Truncate(text.Len() - 1) // the closing brace
	if text.Len() > 1 {
		text.WriteByte(',')
	}
	added, _ := json.Marshal(secrets) // strings always have a JSON form
	text.Write(added[1:])
	return text.Bytes(), nil
}

// env gives the guest what its env is made from.
func (g *guest) env() (vars, bound engine.Value) {
	vars, bound = engine.Undefined, engine.Undefined
	if len(g.version.env) > 0 {
		vars = g.in.NewString(g.version.env)
	}
	if len(g.version.bound) > 0 {
		bound = g.in.NewString(g.version.bound)
	}
	return vars, bound
}
