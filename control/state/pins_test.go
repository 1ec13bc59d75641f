package state

import (
	"bytes"
	"fmt"
	"slices"
	"testing"

	"edged/control/form"
	"edged/control/rules"
)

// pinned returns the pins on a target as the reverse index has them: source, pointer, Form.
func (l *lab) pinned(target string) []string {
	var out []string
	l.s.pinsUnder(key(target), func(p Pin) bool {
		out = append(out, p.Source+p.Pointer+" "+p.Form)
		return true
	})
	return out
}

func (l *lab) expectPins(target string, want ...string) {
	l.t.Helper()
	if got := l.pinned(target); !slices.Equal(got, want) {
		l.t.Errorf("%s is pinned by %q, want %q", target, got, want)
	}
}

// REL-2: the right to use a target is the editor's role in its Space, and it is judged before any reference is looked at: the answer
// to who lacks it says nothing about what is there. A stranger's target does not exist for the owner either (REL-1).
func TestUseOfATargetNeedsItsSpace(t *testing.T) {
	onBothSets(t, func(t *testing.T, l *lab) {
		w := l.serving("w")
		l.ok(l.create(form.WorkerEndpointURL, "e", endpoint(w)))
		for name, actor := range map[string]Actor{
			"reader of the Space":     {Tenant: "t1", Principal: "p2", Role: Reader},
			"editor of another Space": {Tenant: "t1", Principal: "p3", Role: Editor, Spaces: []string{"other"}},
		} {
			l.actor = actor
			var first string
			for _, target := range []string{w, "nothing"} {
				for _, out := range []Outcome{l.create(form.CronTriggerURL, "c", cron(target, "* * * * *")), l.update("e", endpoint(target))} {
					l.seed(out, rules.PermissionDenied)
					if first == "" {
						first = out.Refusal.Detail()
					}
					if got := out.Refusal.Detail(); got != first {
						t.Errorf("%s: %s reads %q, before it was %q", name, target, got, first)
					}
				}
			}
		}
		// In the Space that it may use, an editor cannot reach a target of one that it may not.
		l.actor = Actor{Tenant: "t1", Principal: "p3", Role: Editor, Spaces: []string{"other"}}
		c := l.createCommand(form.CronTriggerURL, "c", cron(w, "* * * * *"))
		c.Space = "other"
		l.refused(l.apply(c), "REL-1", "/worker")
	})
}

// REL-6: the pins of a mutation are there from its acceptance, with the Form that the target has then, in both directions; a refused
// mutation pins nothing, and the end of the holder takes them away.
func TestPinsFromAcceptance(t *testing.T) {
	onBothSets(t, func(t *testing.T, l *lab) {
		identity := func(url string) string {
			if l.other {
				return otherIdentity(url)
			}
			return url
		}
		l.ok(l.create(form.SQLiteDatabaseURL, "db", object{}))
		l.set("set", "1")
		l.refused(l.create(form.MigrationURL, "m", migration("db", "nothing")), "REL-1")
		l.expectPins("db")
		out := l.create(form.MigrationURL, "m", migration("db", "set"))
		if out.Operation.Status != Queued {
			t.Fatalf("the create is %s", out.Operation.Status)
		}
		want := []Pin{{Pointer: "/database", Target: "db", Form: identity(form.SQLiteDatabaseURL), Use: form.UseDatabase},
			{Pointer: "/migrationSet", Target: "set", Form: identity(form.SQLiteMigrationsURL), Use: form.UseMigrations}}
		check := func(when string) {
			t.Helper()
			if got := l.s.Resource("m").Pins; !slices.Equal(got, want) {
				t.Errorf("%s the pins are %v, want %v", when, got, want)
			}
			l.expectPins("db", "m/database "+want[0].Form)
			l.expectPins("set", "m/migrationSet "+want[1].Form)
			l.refused(l.delete("db"), "REL-8", "m", "/database")
		}
		check("from acceptance")
		s := New(l.s.drivers)
		if err := s.Restore(bytes.NewReader(l.bytesOf())); err != nil {
			t.Fatal(err)
		}
		l.s = s
		check("after a restart")
		l.applied(out, rules.MigrationSQL, EffectNone, nil)
		check("after it failed")
		l.ok(l.delete("m"))
		l.expectPins("db")
		l.expectPins("set")
	})
}

// REL-7: a pin is never resolved again. A Resource that takes the name of a lost target has another UID and is nobody's target; and a
// target of another Form, though one that the place accepts, does not become what was pinned by a PUT (worker-version §9).
func TestPinsAreNeverBoundAgain(t *testing.T) {
	onBothSets(t, func(t *testing.T, l *lab) {
		w := l.worker("w")
		l.ok(l.create(form.KVNamespaceURL, "kv", object{}))
		l.ok(l.create(form.ObjectBucket3URL, "bucket", object{}))
		s := l.versionSpec(w, "fetch")
		s["kvBindings"] = []object{{"name": "KV", "resource": ref("kv")}}
		s["bucketBindings"] = []object{{"name": "B", "resource": ref("bucket")}}
		l.ok(l.create(form.WorkerVersionURL, "v", s))
		back := l.vanish("kv")
		again := l.createCommand(form.KVNamespaceURL, "kv-2", object{})
		again.Name = "kv"
		l.ok(l.apply(again))
		l.refused(l.update("v", s), "REL-1", "/kvBindings/0/resource")
		if got := l.reason("v"); got != "DependencyMissing" {
			t.Errorf("beside another of the target's name the version renders %q", got)
		}
		l.expectPins("kv-2")
		l.ok(l.delete("kv-2")) // nobody holds it
		back()
		l.ok(l.update("v", s))

		was := l.s.Resource("bucket").Form
		for url, d := range l.s.drivers {
			if d.Kind == l.s.Resource("bucket").driver.Kind && url != was {
				l.replace("bucket", url)
			}
		}
		l.ok(l.update("v", s)) // the place accepts both Forms
		if got := l.reason("v"); got != "ExternalChange" {
			t.Errorf("a PUT bound the version to a bucket of another Form: it renders %q", got)
		}
		l.expectPins("bucket", "v/bucketBindings/0/resource "+was)
		l.replace("bucket", was)
		l.ok(l.update("v", s))
		if got := l.reason("v"); got != "" {
			t.Errorf("with its target back the version renders %q", got)
		}
	})
}

// linkDrivers is a Form whose references an update may change and which takes effect outside: none of this program's Forms is both.
func linkDrivers() form.Table {
	outside := func(form.Action) bool { return true }
	return form.NewTable(
		&form.Driver{URL: "x:place", Kind: "Place", Role: rules.Data, Outside: func(form.Action) bool { return false },
			Observe: func(*form.Observation) (any, *rules.Cause) { return object{}, nil }},
		&form.Driver{URL: "x:link", Kind: "Link", Role: rules.Other, Outside: outside,
			Fields: []form.Field{{Name: "to", Required: true, Read: func(s *form.Spec, pointer string, val any) (any, *rules.Verdict) {
				uid, _ := val.(string)
				s.Refs = append(s.Refs, form.Ref{Pointer: pointer, UID: uid, Accept: []string{"x:place"}, Use: form.UseData})
				return uid, nil
			}}},
			Observe: func(*form.Observation) (any, *rules.Cause) { return object{}, nil }})
}

// REL-9: from the acceptance of an update until one succeeds, old and new pins hold, whatever fails in between and over a restart; then
// the new ones alone. A deletion drops all.
func TestPinsOfAnUnfinishedUpdate(t *testing.T) {
	l := newLab(t)
	l.s = New(linkDrivers())
	for _, uid := range []string{"a", "b", "c"} {
		l.ok(l.create("x:place", uid, object{}))
	}
	to := func(uid string) object { return object{"to": uid} }
	held := func(when string, want ...string) {
		t.Helper()
		s := New(l.s.drivers)
		if err := s.Restore(bytes.NewReader(l.bytesOf())); err != nil {
			t.Fatal(err)
		}
		l.s = s
		var got []string
		for _, uid := range []string{"a", "b", "c"} {
			if out := l.s.Decide(l.command(DeleteResource, uid, nil)); out.Refusal != nil {
				l.refused(out, "REL-8", "l", "/to")
				got = append(got, uid)
			}
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s %v cannot be deleted, want %v", when, got, want)
		}
	}
	l.ok(l.create("x:link", "l", to("a")))
	held("created", "a")
	op := l.update("l", to("b"))
	held("while it changes", "a", "b")
	l.end(op.Operation, false, nil)
	held("after the change failed", "a", "b")
	if got := fmt.Sprint(l.served("l")["spec"]); got != "map[to:b]" {
		t.Errorf("spec is %s", got)
	}
	op = l.update("l", to("c"))
	l.end(op.Operation, false, nil)
	held("after another failed", "a", "b", "c")
	l.ok(l.update("l", to("c")))
	held("after it succeeded", "c")
	op = l.update("l", to("a"))
	l.end(op.Operation, false, nil)
	held("before its delete", "a", "c")
	l.ok(l.delete("l"))
	held("after its delete")
}

// REL-8, rule 5: the scan of a delete is repeated at its commit. A holder that is there by then, whatever brought it, ends the Operation
// failed with nothing done, and a later DELETE goes on.
func TestDeleteScansAgainAtCommit(t *testing.T) {
	onBothSets(t, func(t *testing.T, l *lab) {
		l.serving("w")
		l.version("w", "idle", "fetch")
		l.ok(l.create(form.WorkerEndpointURL, "e", endpoint("w")))
		l.ok(l.create(form.KVNamespaceURL, "kv", object{}))
		s := l.versionSpec("w", "fetch")
		s["kvBindings"] = []object{{"name": "KV", "resource": ref("kv")}}
		l.ok(l.create(form.WorkerVersionURL, "v-kv", s))
		for _, row := range []struct{ target, holder, rule string }{{"kv", "v-kv", "REL-8"}, {"d-w", "e", "WA-5.2"}} {
			back := l.vanish(row.holder)
			out := l.delete(row.target)
			if out.Refusal != nil || out.Operation.Status != Queued {
				t.Fatalf("the delete of %s: %+v", row.target, out)
			}
			back()
			op := l.end(out.Operation, true, nil).Operation
			if op.Status != Failed || op.Effect != EffectNone || op.Seed != rules.DependencyInUse ||
				!bytes.Contains([]byte(op.Message), []byte(row.rule)) || !bytes.Contains([]byte(op.Message), []byte(row.holder)) {
				t.Errorf("the delete of %s ended %+v", row.target, op)
			}
			if r := l.s.Resource(row.target); r == nil || r.Phase != Errored {
				t.Fatalf("%s is %+v", row.target, r)
			}
			l.ok(l.delete(row.holder))
			l.ok(l.delete(row.target))
		}
	})
}

// REL-11: an Operation stays with its UID. A Resource that took the name meanwhile is not what it ends.
func TestOperationStaysWithItsUID(t *testing.T) {
	onBothSets(t, func(t *testing.T, l *lab) {
		named := func(uid string) Outcome {
			c := l.createCommand(form.WorkerBundleURL, uid, artifactSpec())
			c.Name = "b"
			return l.apply(c)
		}
		first := named("b1")
		l.vanish("b1")
		second := named("b2")
		before := l.revisions()
		if out := l.end(first.Operation, true, l.index("b2")); out.Operation.Status == Succeeded {
			t.Errorf("the Operation of a lost Resource ended %+v", out.Operation)
		}
		if r := l.s.Resource("b2"); r.Phase != Pending || r.Index != nil || l.moved(before) != "" {
			t.Errorf("it moved %q, and the other of its name is %s", l.moved(before), r.Phase)
		}
		l.ok(second)
	})
}
