package state

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"edged/control/form"
	"edged/control/rules"
)

// deployment-single-active-per-worker (WA-1.1, WA-1.2).
func TestDeploymentSingleActivePerWorker(t *testing.T) {
	onBothSets(t, func(t *testing.T, l *lab) {
		w := l.worker("w")
		v := l.version(w, "v", "fetch")
		d := l.deploy(w, "d", v, 10000)
		out := l.create(form.WorkerDeploymentURL, "d2", weights(w, v, 10000))
		l.refused(out, "WA-1.1", d)
		l.seed(out, rules.InvalidArgument)
		l.ok(l.update(d, weights(w, v, 10000)))
		// One that is being deleted is still the one.
		del := l.delete(d)
		l.refused(l.create(form.WorkerDeploymentURL, "d2", weights(w, v, 10000)), "WA-1.1", d)
		l.ok(del)
		l.deploy(w, "d2", v, 10000)
	})
}

// deployment-version-duplicate-rejected, deployment-weight-sum-enforced, deployment-version-ownership (WA-2.x), on create
// and on update, in the order of worker-aggregate §3.
func TestDeploymentIntegrity(t *testing.T) {
	onBothSets(t, func(t *testing.T, l *lab) {
		w, other := l.worker("w"), l.worker("x")
		v1, v2, foreign := l.version(w, "v1", "fetch"), l.version(w, "v2", "fetch"), l.version(other, "f", "fetch")
		l.deploy(other, "dx", foreign, 10000)
		rows := []struct {
			rule   string
			shares []any
			names  string
		}{
			{"WA-2.1", []any{v1, 4000, v1, 6000}, v1},
			{"WA-2.1", []any{v1, 4000, v1, 4000}, v1}, // before the sum
			{"WA-2.2", []any{v1, 4000, v2, 5999}, "9999"},
			{"WA-2.2", []any{v1, 4000, v2, 6001}, "10001"},
			{"WA-2.2", []any{"nowhere", 1}, "1"}, // before references
			{"REL-1", []any{"nowhere", 10000}, "/versions/0/workerVersion"},
			{"REL-3", []any{w, 10000}, w},
			{"WA-2.3", []any{foreign, 10000}, foreign},
		}
		for _, row := range rows {
			l.refused(l.create(form.WorkerDeploymentURL, "d", weights(w, row.shares...)), row.rule, row.names)
		}
		l.deploy(w, "d", v1, 5000, v2, 5000)
		for _, row := range rows {
			l.refused(l.update("d", weights(w, row.shares...)), row.rule, row.names)
		}
		// The worker cannot change, and that comes before the weights.
		l.refused(l.update("d", weights(other, foreign, 1)), "immutable", "/worker")
		// WA-2.5: the bytes of one version's bundle are lost.
		l.spoil("b-" + w)
		l.refused(l.update("d", weights(w, v1, 10000)), "WA-2.5", v1)
	})
}

// spoil makes an artifact forget that it was verified, as an operator's repair tool or a lost disk would.
func (l *lab) spoil(uid string) {
	r := *l.s.Resource(uid)
	r.Index = nil
	l.s.resources.Set(uid, &r)
	l.s.render(l.now, &r)
}

// WA-2.4 needs a version whose delete is accepted and unfinished.
func TestDeploymentRefusesVersionBeingDeleted(t *testing.T) {
	onBothSets(t, func(t *testing.T, l *lab) {
		w := l.worker("w")
		v := l.version(w, "v", "fetch")
		r := *l.s.Resource(v)
		r.Phase = Deleting
		l.s.resources.Set(v, &r)
		l.refused(l.create(form.WorkerDeploymentURL, "d", weights(w, v, 10000)), "WA-2.4", v)
	})
}

// attachment-requires-active-deployment, handler-gated-attachments (WA-3.1, 3.2, 3.5).
func TestAttachmentGate(t *testing.T) {
	attachments := []struct {
		rule, form string
		spec       func(w string) object
	}{
		{"WA-3.1", form.CustomDomainURL, func(w string) object { return domain(w, w+".example.test") }},
		{"WA-3.2", form.WorkerEndpointURL, endpoint},
	}
	for _, a := range attachments {
		t.Run(a.rule, func(t *testing.T) {
			onBothSets(t, func(t *testing.T, l *lab) {
				w := l.worker("w")
				out := l.create(a.form, "at", a.spec(w))
				l.refused(out, "WA-3.5", w)
				l.seed(out, rules.UnsupportedCapability)
				web, cron := l.version(w, "web", "fetch"), l.version(w, "cron", "scheduled")
				l.deploy(w, "d", web, 5000, cron, 5000)
				l.refused(l.create(a.form, "at", a.spec(w)), a.rule, w, cron, "fetch")
				l.ok(l.update("d", weights(w, web, 5000, l.staticVersion(w, "static"), 5000)))
				l.ok(l.create(a.form, "at", a.spec(w)))
				l.ok(l.update("at", a.spec(w))) // the gate holds on update too
				l.refused(l.update("d", weights(w, cron, 10000)), "WA-4.1", "at", cron)
			})
		})
	}
}

// An unsettled deployment leaves the verdict open; one that failed or is being deleted counts as absent.
func TestGateOfUnsettledDeployment(t *testing.T) {
	onBothSets(t, func(t *testing.T, l *lab) {
		w := l.worker("w")
		v := l.version(w, "v", "fetch")
		l.deploy(w, "d", v, 10000)
		settled := *l.s.Resource("d")
		set := func(change func(*Resource)) {
			r := settled
			change(&r)
			l.s.resources.Set("d", &r)
		}
		set(func(r *Resource) { r.Settled, r.Active, r.Phase = false, nil, Pending })
		out := l.create(form.WorkerEndpointURL, "e", endpoint(w))
		l.refused(out, "WA-3.5", "d")
		l.seed(out, rules.ResourceBusy)
		set(func(r *Resource) { r.Settled, r.Active, r.Phase = false, nil, Errored })
		l.seed(l.create(form.WorkerEndpointURL, "e", endpoint(w)), rules.UnsupportedCapability)
		set(func(r *Resource) { r.Phase = Deleting })
		l.seed(l.create(form.WorkerEndpointURL, "e", endpoint(w)), rules.UnsupportedCapability)
		set(func(*Resource) {})
		l.ok(l.create(form.WorkerEndpointURL, "e", endpoint(w)))
	})
}

// deployment-change-preserves-dependents (WA-4.1): what is refused changes nothing.
func TestDeploymentChangePreservesDependents(t *testing.T) {
	onBothSets(t, func(t *testing.T, l *lab) {
		w := l.worker("w")
		web, bare := l.version(w, "web", "fetch"), l.version(w, "bare")
		l.deploy(w, "d", web, 10000)
		l.ok(l.create(form.WorkerEndpointURL, "e", endpoint(w)))
		before := l.bytesOf()
		l.refused(l.update("d", weights(w, web, 9999, bare, 1)), "WA-4.1", "e", bare, "fetch or assets")
		_, before, _ = bytes.Cut(before, []byte("\n")) // the head has the time of the last command
		if _, after, _ := bytes.Cut(l.bytesOf(), []byte("\n")); !bytes.Equal(after, before) {
			t.Error("a refused change left traces")
		}
	})
}

// deployment-delete-blocked-by-dependent (WA-5.1, 5.2), with the order of kinds.
func TestDeploymentDeleteBlockedByDependent(t *testing.T) {
	onBothSets(t, func(t *testing.T, l *lab) {
		w := l.worker("w")
		v := l.version(w, "v", "fetch")
		d := l.deploy(w, "d", v, 10000)
		l.ok(l.create(form.WorkerEndpointURL, "a-end", endpoint(w)))
		l.ok(l.create(form.CustomDomainURL, "z-dom", domain(w, "a.test")))
		l.ok(l.create(form.CustomDomainURL, "b-dom", domain(w, "b.test")))
		out := l.delete(d)
		l.refused(out, "WA-5.1", "b-dom", "WorkerCustomDomain") // lowest UID of the first failing kind
		l.seed(out, rules.DependencyInUse)
		l.ok(l.delete("b-dom"))
		l.ok(l.delete("z-dom"))
		l.refused(l.delete(d), "WA-5.2", "a-end")
		l.ok(l.delete("a-end"))
		l.ok(l.delete(d))
	})
}

// Rule 7, all three rows, and what it is named by.
func TestWorkerReadiness(t *testing.T) {
	onBothSets(t, func(t *testing.T, l *lab) {
		w := l.worker("w")
		check := func(observed, reason, names string) {
			t.Helper()
			doc := l.served(w)
			if got := fmt.Sprint(doc["observed"]); got != observed {
				t.Errorf("observed is %s, want %s", got, observed)
			}
			got, text := "", ""
			if c, ok := doc["hostConditions"].([]any); ok {
				got, text = c[0].(object)["reason"].(string), c[0].(object)["hostReason"].(string)
			}
			if got != reason || !strings.Contains(text, names) || doc["phase"] != "idle" {
				t.Errorf("reason %s %q phase %s, want %s naming %s", got, text, doc["phase"], reason, names)
			}
		}
		check("map[activeDeploymentUid:<nil> ready:false]", "Provisioning", w)
		cron, web := l.version(w, "cron", "scheduled"), l.version(w, "web", "fetch")
		l.deploy(w, "d", cron, 1, web, 9999)
		check("map[activeDeploymentUid:d ready:false]", "UnsupportedCapability", cron)
		if doc := l.served("d"); doc["observed"].(object)["ready"] != true {
			t.Errorf("a deployment of a cron-only version is not ready: %v", doc)
		}
		l.ok(l.update("d", weights(w, web, 10000)))
		check("map[activeDeploymentUid:d ready:true]", "", "")
		op := l.delete("d")
		check("map[activeDeploymentUid:<nil> ready:false]", "Provisioning", w) // from acceptance of the delete on
		l.ok(op)
		check("map[activeDeploymentUid:<nil> ready:false]", "Provisioning", w)
	})
}

// dependent-revision-advances-with-rendering (rule 9): exactly the changed renderings move, generation never does.
func TestDependentRevisionAdvancesWithRendering(t *testing.T) {
	onBothSets(t, func(t *testing.T, l *lab) {
		w, x := l.worker("w"), l.worker("x")
		v1, v2 := l.version(w, "v1", "fetch"), l.version(w, "v2", "fetch")
		l.version(x, "vx", "fetch")
		step := func(what, want string, do func()) {
			t.Helper()
			before := l.revisions()
			do()
			if got := l.moved(before); got != want {
				t.Errorf("%s moved %q, want %q", what, got, want)
			}
		}
		step("deploy", "d w", func() { l.deploy(w, "d", v1, 10000) })
		step("endpoint", "e", func() { l.ok(l.create(form.WorkerEndpointURL, "e", endpoint(w))) })
		step("same deployment", "d", func() { l.ok(l.update("d", weights(w, v1, 10000.0))) })
		step("other weights", "d", func() { l.ok(l.update("d", weights(w, v1, 1, v2, 9999))) })
		step("same version", "v1", func() { l.ok(l.update(v1, l.versionSpec(w, "fetch"))) })
		step("same worker", "w", func() { l.ok(l.update(w, object{})) })
		step("same bundle", "b-w", func() { l.ok(l.update("b-w", artifactSpec())) })
		step("a further version", "v3", func() { l.version(w, "v3", "fetch") })
		step("lost bytes", "b-w d e v1 v2 v3 w", func() { l.spoil("b-w") })
		step("repaired bytes", "b-w d e v1 v2 v3 w", func() { l.ok(l.update("b-w", artifactSpec())) })
		step("endpoint gone", "-e", func() { l.ok(l.delete("e")) })
		step("undeploy", "-d w", func() { l.ok(l.delete("d")) })
		if g := l.s.Resource(w).Generation; g != 2 { // its own create and PUT
			t.Errorf("the worker's generation moved to %d", g)
		}
		if r := l.s.Resource(w); r.ObservedGeneration != 2 {
			t.Errorf("observedGeneration is %d", r.ObservedGeneration)
		}
	})
}

// binding-name-collision-rejected is in package form; here: a version with service bindings is refused clearly as long as
// they are not built, and WA-8.1 comes first.
func TestNotBuiltYetIsRefused(t *testing.T) {
	onBothSets(t, func(t *testing.T, l *lab) {
		w, x := l.worker("w"), l.worker("x")
		s := l.versionSpec(w, "fetch")
		s["serviceBindings"] = []object{{"name": "X", "resource": ref(x)}}
		l.refused(l.create(form.WorkerVersionURL, "v", s), "WA-8.1", "X", x, "no active deployment")
		l.deploy(x, "dx", l.version(x, "vx", "fetch"), 10000)
		c := l.createCommand(form.WorkerVersionURL, "v", s)
		c.Withheld = true
		out := l.apply(c)
		l.refused(out, "WA-8.1", "not built yet")
		l.seed(out, rules.UnsupportedCapability)
		c = l.createCommand(form.KVNamespaceURL, "kv", object{})
		c.Withheld = true
		out = l.apply(c)
		l.seed(out, rules.FormUnknown)
		l.ok(l.create(form.WorkerVersionURL, "v", s))
	})
}

// REL-1: unknown, deleted, foreign and elsewhere look the same.
func TestReferenceThatNamesNothing(t *testing.T) {
	onBothSets(t, func(t *testing.T, l *lab) {
		w := l.worker("w")
		l.worker("deleted")
		l.ok(l.delete("deleted"))
		l.as("t2", "p2").worker("foreign")
		c := l.createCommand(form.ModuleWorkerURL, "elsewhere", object{})
		c.Space = "other"
		l.ok(l.apply(c))
		b := l.versionSpec(w, "fetch")
		var first string
		for _, uid := range []string{"unknown", "deleted", "foreign", "elsewhere"} {
			b["worker"] = ref(uid)
			out := l.create(form.WorkerVersionURL, "v", b)
			l.seed(out, rules.ResourceNotFound)
			l.refused(out, "REL-1", "/worker")
			if first == "" {
				first = out.Refusal.Detail()
			} else if got := out.Refusal.Detail(); got != first {
				t.Errorf("%s reads %q, unknown %q", uid, got, first)
			}
		}
	})
}

// REL-3, REL-4, REL-5 and references to Forms that are not implemented.
func TestReferenceStates(t *testing.T) {
	onBothSets(t, func(t *testing.T, l *lab) {
		w := l.worker("w")
		spec := object{"worker": ref(w), "bundle": ref("b"), "handlers": []string{}}
		l.refused(l.create(form.WorkerVersionURL, "v", object{"worker": ref(w), "bundle": ref(w), "handlers": []string{}}), "REL-3", w, "/bundle", form.WorkerBundleURL)
		create := l.create(form.WorkerBundleURL, "b", artifactSpec())
		out := l.create(form.WorkerVersionURL, "v", spec)
		l.refused(out, "REL-5", "b")
		l.seed(out, rules.ResourceBusy)
		l.end(create.Operation, false, nil)
		out = l.create(form.WorkerVersionURL, "v", spec)
		l.refused(out, "REL-5", "b")
		l.seed(out, rules.InvalidArgument)
		repair := l.update("b", artifactSpec())
		l.seed(l.create(form.WorkerVersionURL, "v", spec), rules.ResourceBusy)
		l.ok(repair)
		l.ok(l.create(form.WorkerVersionURL, "v", spec))
		l.ok(l.delete("v"))
		del := l.delete("b")
		out = l.create(form.WorkerVersionURL, "v", spec)
		l.refused(out, "REL-4", "b")
		l.ok(del)
		for _, list := range []string{"kvBindings", "sqliteBindings", "bucketBindings", "queueProducerBindings", "actorBindings", "workflowBindings", "containerBindings"} {
			s := l.versionSpec(w, "fetch")
			s[list] = []object{{"name": "A", "resource": ref("nothing")}}
			l.refused(l.create(form.WorkerVersionURL, "v", s), "REL-1", "/"+list+"/0/resource")
			s[list] = []object{{"name": "A", "resource": ref(w)}}
			l.refused(l.create(form.WorkerVersionURL, "v", s), "REL-3", "/"+list+"/0/resource")
		}
	})
}

// The deletion matrix for the Forms of this table (REL-8).
func TestDeletionMatrix(t *testing.T) {
	onBothSets(t, func(t *testing.T, l *lab) {
		w := l.worker("w")
		v := l.version(w, "v", "fetch")
		l.staticVersion(w, "s")
		for _, row := range []struct{ target, holder string }{{w, "s"}, {"b-w", v}, {"a-w", "s"}} {
			out := l.delete(row.target)
			l.refused(out, "REL-8", row.target, row.holder)
			l.seed(out, rules.DependencyInUse)
		}
		d := l.deploy(w, "d", v, 10000)
		l.refused(l.delete(v), "REL-8", d)
		l.ok(l.update(d, weights(w, "s", 10000)))
		c := l.command(DeleteResource, v, nil)
		c.InUse = true
		l.refused(l.apply(c), "worker-version §7", v)
		l.ok(l.delete(v)) // un-weighted and retired
		l.ok(l.delete(d))
		l.ok(l.delete("s"))
		l.ok(l.create(form.WorkerDeploymentURL, "d9", weights(w, l.version(w, "v9", "fetch"), 10000)))
		l.refused(l.delete(w), "REL-8", w)
	})
}

// worker-version §7: only an equal spec; it is a new Operation and generation all the same.
func TestVersionUpdate(t *testing.T) {
	onBothSets(t, func(t *testing.T, l *lab) {
		w := l.worker("w")
		v := l.version(w, "v", "fetch", "queue")
		s := l.versionSpec(w, "queue", "fetch")
		s["vars"] = object{}
		op := l.ok(l.update(v, s))
		if op.Generation != 2 || l.s.Resource(v).Generation != 2 {
			t.Errorf("generation is %d", op.Generation)
		}
		s["vars"] = object{"A": 1}
		l.refused(l.update(v, s), "immutable", "/vars")
		if r := l.s.Resource(v); r.Generation != 2 {
			t.Errorf("a refused update moved the generation to %d", r.Generation)
		}
		l.refused(l.update("b-w", object{"artifact": object{"url": "https://a.test/other", "sha256": strings.Repeat("a", 64)}}), "immutable", "/artifact")
	})
}

// worker-version §3: the fallback document must be in the root of the asset bundle.
func TestSinglePageNeedsIndex(t *testing.T) {
	onBothSets(t, func(t *testing.T, l *lab) {
		w := l.worker("w")
		create := l.create(form.StaticAssetBundleURL, "a", artifactSpec())
		l.end(create.Operation, true, &form.Index{Files: []form.File{{Path: "sub/index.html"}}})
		spec := object{"worker": ref(w), "handlers": []string{}, "assets": object{"bundle": ref("a"), "runWorkerFirst": false, "notFoundHandling": "single_page_application"}}
		l.refused(l.create(form.WorkerVersionURL, "v", spec), "worker-version §3", "index.html")
	})
}

// The load codes of module-worker §2.2 and D-20 reach the caller.
func TestInspectionDecides(t *testing.T) {
	onBothSets(t, func(t *testing.T, l *lab) {
		w := l.worker("w")
		spec := l.versionSpec(w, "fetch")
		for _, row := range []struct {
			in   Inspected
			rule string
			word string
		}{
			{Inspected{Code: "module_syntax_error", Text: "line 1"}, "module-worker §2", "module_syntax_error: line 1"},
			{Inspected{Exports: []string{}}, "D-20", "handler_not_exported"},
			{Inspected{Exports: []string{"fetch", "queue"}}, "D-20", "queue"},
		} {
			c := l.createCommand(form.WorkerVersionURL, "v", spec)
			row.in.Bundle = "b-w"
			c.Inspected = &row.in
			l.refused(l.s.Apply(c), row.rule, row.word)
		}
		c := l.createCommand(form.WorkerVersionURL, "v", spec)
		c.Inspected = &Inspected{Bundle: "another", Exports: []string{"fetch"}} // evidence about something else is none
		l.seed(l.s.Apply(c), rules.ResourceBusy)
	})
}

// worker-version §3: the handlers that a version exports are kept apart from those it declares, as they were found when it was made;
// they survive a restart, and a PUT, which evaluates nothing, changes nothing about them.
func TestExportsAreKept(t *testing.T) {
	onBothSets(t, func(t *testing.T, l *lab) {
		create := l.createCommand(form.WorkerVersionURL, "v", l.versionSpec(l.worker("w"), "fetch", "queue"))
		create.Inspected = &Inspected{Bundle: "b-w", Exports: []string{"queue", "fetch"}}
		l.ok(l.s.Apply(create))
		l.staticVersion("w", "static")
		check := func(when string) {
			t.Helper()
			if got, none := l.s.Resource("v").Exports, l.s.Resource("static").Exports; fmt.Sprint(got) != "[queue fetch]" || none != nil {
				t.Errorf("%s the exports are %v, of a version without code %v", when, got, none)
			}
		}
		check("made")
		s := New(l.s.drivers)
		if err := s.Restore(bytes.NewReader(l.bytesOf())); err != nil {
			t.Fatal(err)
		}
		l.s = s
		check("after a restart")
		c := l.command(UpdateResource, "v", l.versionSpec("w", "fetch", "queue"))
		c.Inspected = &Inspected{Bundle: "b-w", Exports: []string{"fetch"}}
		l.ok(l.s.Apply(c))
		check("after a PUT")
	})
}
