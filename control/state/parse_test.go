package state

import (
	"encoding/json"
	"testing"

	"edged/control/form"
	"edged/control/rules"
)

// Parsing a spec of some MiB takes a while: it is done once a command, and never while others wait for the state.
func TestSpecIsParsedOnceAndOutsideTheLock(t *testing.T) {
	parses := 0
	var s *State
	s = New(form.NewTable(&form.Driver{URL: "x:app", Kind: "App", Role: rules.Worker, Outside: func(form.Action) bool { return false },
		Fields: []form.Field{{Name: "a", Required: true, Read: func(_ *form.Spec, _ string, val any) (any, *rules.Verdict) {
			parses++
			if !s.mu.TryLock() {
				t.Error("the state is locked while a spec is parsed")
				return val, nil
			}
			s.mu.Unlock()
			return val, nil
		}}},
		Observe: func(*form.Observation) (any, *rules.Cause) { return struct{}{}, nil }}))
	c := &Command{Kind: CreateResource, At: 1, Actor: Actor{Tenant: "t", Role: Editor}, Key: "k", UID: "r-1", Operation: "op-1", Form: "x:app",
		Space: "s", Name: "n", Spec: json.RawMessage(`{"a":1}`)}
	s.Decide(c)
	s.Decide(c)
	if out := s.Apply(c); out.Operation == nil || parses != 1 {
		t.Errorf("%+v after %d parses", out, parses)
	}
	c = &Command{Kind: UpdateResource, At: 2, Actor: c.Actor, Key: "l", UID: "r-1", Operation: "op-2", Expected: 1, Spec: json.RawMessage(`{"a":2}`)}
	s.Decide(c)
	c.Spec = json.RawMessage(`{"a":3}`) // another spec is another question
	if out := s.Apply(c); out.Operation == nil || parses != 3 || string(s.Resource("r-1").Spec) != `{"a":3}` {
		t.Errorf("%+v after %d parses", out, parses)
	}
}
