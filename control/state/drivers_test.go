package state

import (
	"encoding/json"
	"slices"
	"testing"

	"edged/control/form"
	"edged/control/rules"
)

// otherDrivers is a second set of Forms with identities, member names and an attachment of their own: nothing in rules or
// state may depend on which Forms there are.
func otherDrivers() form.Table {
	inside := func(form.Action) bool { return false }
	text := func(note func(*form.Spec, string)) func(*form.Spec, string, any) (any, *rules.Verdict) {
		return func(s *form.Spec, pointer string, val any) (any, *rules.Verdict) {
			uid, ok := val.(string)
			if !ok {
				return nil, rules.Refuse(rules.InvalidArgument, "spec", pointer, nil, "%s must be a string", pointer)
			}
			note(s, uid)
			return uid, nil
		}
	}
	point := func(name string, use form.Use, target string, note func(*form.Spec, string)) form.Field {
		return form.Field{Name: name, Required: true, Read: text(func(s *form.Spec, uid string) {
			s.Refs = append(s.Refs, form.Ref{Pointer: "/" + name, UID: uid, Accept: []string{target}, Use: use})
			note(s, uid)
		})}
	}
	owner := point("of", form.UseOwner, "x:app", func(s *form.Spec, uid string) { s.Worker = uid })
	ready := func(o *form.Observation) (any, *rules.Cause) {
		ok, cause := rules.RouteReady(o.Aggregate, rules.NeedScheduled)
		return map[string]bool{"ready": ok}, cause
	}
	return form.NewTable(
		&form.Driver{URL: "x:app", Kind: "App", Role: rules.Worker, Outside: inside, Observe: func(o *form.Observation) (any, *rules.Cause) {
			ok, cause := rules.WorkerReady(o.Aggregate)
			return map[string]bool{"up": ok}, cause
		}},
		&form.Driver{URL: "x:release", Kind: "Release", Role: rules.Version, Outside: inside,
			Fields: []form.Field{owner, {Name: "serves", Required: true, Read: text(func(s *form.Spec, h string) { s.Handlers = []string{h} })}},
			Observe: func(o *form.Observation) (any, *rules.Cause) {
				return map[string]bool{"ready": o.Self.Ready}, o.Self.Unready
			}},
		&form.Driver{URL: "x:rollout", Kind: "Rollout", Role: rules.Deployment, Outside: inside,
			Fields: []form.Field{owner, point("all", form.UseWeight, "x:release", func(s *form.Spec, uid string) {
				s.Weights = []rules.Weight{{Version: uid, Weight: rules.FullWeight}}
			})},
			Pure: func(s *form.Spec) *rules.Verdict { return rules.Distribution(s.Weights) },
			Observe: func(o *form.Observation) (any, *rules.Cause) {
				ok, cause := rules.DeploymentReady(o.Aggregate, o.Self)
				return map[string]bool{"ready": ok}, cause
			}},
		&form.Driver{URL: "x:timer", Kind: "Timer", Role: rules.Attachment, Need: rules.NeedScheduled, Gate: "WA-3.3", Outside: inside,
			Fields: []form.Field{owner}, Observe: ready},
		&form.Driver{URL: "x:feed", Kind: "Feed", Role: rules.Attachment, Need: rules.NeedQueue, Gate: "WA-3.4", Outside: inside,
			Fields: []form.Field{owner}, Observe: ready},
	)
}

// The aggregate rules hold for any driver set; WA-3.3, 3.4, 5.3 and 5.4 are shown on it before this node has Forms of theirs.
func TestRulesHoldForOtherForms(t *testing.T) {
	l := newLab(t)
	l.s = New(otherDrivers())
	l.ok(l.create("x:app", "a", object{}))
	release := func(uid, serves string) { l.ok(l.create("x:release", uid, object{"of": "a", "serves": serves})) }
	release("web", "fetch")
	release("cron", "scheduled")
	release("pull", "queue")
	l.refused(l.create("x:timer", "t", object{"of": "a"}), "WA-3.5", "a")
	l.refused(l.create("x:rollout", "r", object{"of": "a", "all": "a"}), "REL-3", "x:release")
	l.ok(l.create("x:rollout", "r", object{"of": "a", "all": "cron"}))
	l.refused(l.create("x:rollout", "r2", object{"of": "a", "all": "cron"}), "WA-1.1", "r")
	l.ok(l.create("x:timer", "t", object{"of": "a"}))
	l.refused(l.create("x:feed", "f", object{"of": "a"}), "WA-3.4", "cron", "queue")
	l.refused(l.update("r", object{"of": "a", "all": "web"}), "WA-4.1", "Timer t", "scheduled")
	l.refused(l.delete("r"), "WA-5.3", "Timer t")
	before := l.revisions()
	l.ok(l.delete("t"))
	if got := l.moved(before); got != "-t" {
		t.Errorf("moved %s", got)
	}
	l.ok(l.update("r", object{"of": "a", "all": "pull"}))
	l.ok(l.create("x:feed", "f", object{"of": "a"}))
	l.refused(l.delete("r"), "WA-5.4", "Feed f")
	l.refused(l.delete("pull"), "REL-8", "r")
	l.ok(l.delete("f"))
	l.ok(l.update("r", object{"of": "a", "all": "web"}))
	if got := string(l.s.Resource("a").Observed); got != `{"up":true}` {
		t.Errorf("observed is %s", got)
	}
	l.ok(l.delete("r"))
	var doc json.RawMessage = l.s.Resource("a").Observed
	if string(doc) != `{"up":false}` {
		t.Errorf("observed is %s", doc)
	}
}

func otherIdentity(url string) string { return "other:" + url }

// renamed is a second set of drivers: the same members, but other identities, targets by those, and names that are unique among
// Resources of one kind only. Nothing in rules or state may depend on the first set.
func renamed(first form.Table) form.Table {
	out := form.Table{}
	for url, d := range first {
		other := *d
		other.URL, other.Scope, other.Fields = otherIdentity(url), d.Kind, slices.Clone(d.Fields)
		for i := range other.Fields {
			read := other.Fields[i].Read
			other.Fields[i].Read = func(s *form.Spec, pointer string, val any) (any, *rules.Verdict) {
				had := len(s.Refs)
				norm, v := read(s, pointer, val)
				for k := range s.Refs[had:] {
					ref := &s.Refs[had+k]
					ref.Accept = slices.Clone(ref.Accept)
					for n := range ref.Accept {
						ref.Accept[n] = otherIdentity(ref.Accept[n])
					}
				}
				return norm, v
			}
		}
		out[other.URL] = &other
	}
	return out
}
