package state

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"testing"

	"edged/control/form"
	"edged/control/rules"
)

// vanish takes a record out of band, as corruption or an operator's hand would: its own pins go, those on it stay. It comes with
// the pass of rule 9 over what relied on it. back brings it back without one.
func (l *lab) vanish(uid string) (back func()) {
	l.t.Helper()
	r := l.s.Resource(uid)
	if r == nil {
		l.t.Fatalf("%s does not exist", uid)
	}
	l.s.resources.Delete(uid)
	l.s.note(uid, r)
	l.s.unlist(r)
	l.s.unpin(r)
	l.s.unclaim(r)
	l.passOver(r)
	return func() { l.s.loadResource(r) }
}

// replace makes the record under a UID one of another Form.
func (l *lab) replace(uid, formURL string) {
	r := *l.s.Resource(uid)
	r.Form = formURL
	l.s.store(&r)
	l.passOver(&r)
}

// passOver renders again whatever pins the Resource, and what that can be seen in.
func (l *lab) passOver(r *Resource) {
	set := map[string]bool{r.UID: true}
	l.s.affected(r, set)
	l.s.pinsUnder(key(r.UID), func(p Pin) bool {
		set[p.Source] = true
		l.s.affected(l.s.get(p.Source), set)
		return true
	})
	l.now++
	l.s.renderAll(l.now, set)
}

// full makes two workers with everything that one can have, and returns the UIDs in the order in which they can be torn down.
func (l *lab) full() []string {
	l.t.Helper()
	l.serving("callee")
	w := l.worker("w")
	l.queue("q")
	l.queue("dead")
	for uid, url := range map[string]string{"kv": form.KVNamespaceURL, "db": form.SQLiteDatabaseURL, "bucket": form.ObjectBucket3URL} {
		l.ok(l.create(url, uid, object{}))
	}
	l.ok(l.create(form.StaticAssetBundleURL, "assets", artifactSpec()))
	l.ok(l.create(form.SQLiteMigrationsURL, "set", artifactSpec()))
	l.ok(l.create(form.MigrationURL, "mig", migration("db", "set")))
	s := l.versionSpec(w, "fetch", "scheduled", "queue")
	s["assets"] = object{"bundle": ref("assets"), "runWorkerFirst": true, "notFoundHandling": "single_page_application"}
	for list, target := range map[string]string{"kvBindings": "kv", "sqliteBindings": "db", "bucketBindings": "bucket",
		"queueProducerBindings": "q", "serviceBindings": "callee"} {
		s[list] = []object{{"name": "B_" + target, "resource": ref(target)}}
	}
	l.ok(l.create(form.WorkerVersionURL, "v", s))
	l.deploy(w, "d", "v", 10000)
	l.ok(l.create(form.WorkerEndpointURL, "e", endpoint(w)))
	l.ok(l.create(form.CustomDomainURL, "dom", domain(w, "a.test")))
	l.ok(l.create(form.CronTriggerURL, "t", cron(w, "*/5 * * * *")))
	l.ok(l.create(form.QueueConsumerURL, "c", consumer(w, "q", object{"deadLetterQueue": ref("dead")})))
	return []string{"mig", "set", "e", "dom", "t", "c", "d", "v", "w", "b-w", "assets", "kv", "db", "bucket", "q", "dead", "d-callee", "v-callee", "b-callee", "callee"}
}

func (l *lab) reason(uid string) string {
	if c := l.s.Resource(uid).Cause; c != nil {
		return string(c.Reason)
	}
	return ""
}

// REL-10: whatever vanishes, its sources render DependencyMissing, reads go on and do not heal, a same-spec PUT is judged anew
// (and names the missing target while it is missing), and one after the target is back heals. Nothing panics, deletes clean up,
// and the state still goes through a snapshot.
func TestVanishedTarget(t *testing.T) {
	order := newLab(t).full()
	for _, gone := range order {
		t.Run(gone, func(t *testing.T) {
			l := newLab(t)
			l.full()
			var sources []string
			l.s.pinsUnder(key(gone), func(p Pin) bool {
				if !slices.Contains(sources, p.Source) {
					sources = append(sources, p.Source)
				}
				return true
			})
			back := l.vanish(gone)
			for _, uid := range sources {
				if got := l.reason(uid); got != "DependencyMissing" {
					t.Errorf("%s renders %q after %s vanished", uid, got, gone)
				}
				before := l.served(uid)
				l.s.Find(&l.actor, uid) // a read
				if after := l.served(uid); fmt.Sprint(after) != fmt.Sprint(before) {
					t.Errorf("a read of %s changed it", uid)
				}
				out := l.update(uid, l.s.Resource(uid).Spec)
				l.seed(out, rules.ResourceNotFound)
			}
			frozen := l.bytesOf()
			other := New(form.Builtin())
			if err := other.Restore(bytes.NewReader(frozen)); err != nil {
				t.Fatal(err)
			}
			back()
			for _, uid := range sources {
				if got := l.reason(uid); got != "DependencyMissing" {
					t.Errorf("%s healed by itself: %q", uid, got)
				}
			}
			for _, uid := range slices.Backward(order) { // a version before what is rendered from it
				if slices.Contains(sources, uid) {
					l.ok(l.update(uid, l.s.Resource(uid).Spec))
					if got := l.reason(uid); got != "" {
						t.Errorf("%s renders %q after it was verified again", uid, got)
					}
				}
			}
			// The copy without the target: everything can be taken down, in the legal order.
			l.s = other
			for _, uid := range order {
				if uid != gone {
					l.ok(l.delete(uid))
				}
			}
		})
	}
}

// REL-10: a target that is there but is not what was pinned renders ExternalChange.
func TestReplacedTarget(t *testing.T) {
	l := newLab(t)
	l.full()
	l.replace("kv", form.ObjectBucket2URL)
	if got := l.reason("v"); got != "ExternalChange" {
		t.Errorf("the version renders %q", got)
	}
	l.refused(l.update("v", l.s.Resource("v").Spec), "REL-3", "/kvBindings/0/resource")
	l.refused(l.update("d", l.s.Resource("d").Spec), "WA-2.5", "v")
	l.replace("kv", form.KVNamespaceURL)
	l.ok(l.update("v", l.s.Resource("v").Spec))
	if got := l.reason("v") + l.reason("d") + l.reason("w"); got != "" {
		t.Errorf("after it was verified again: %s", got)
	}
}

// A facade set that comes and goes moves exactly what it is rendered in, and survives a snapshot.
func TestCarriedFacadeSets(t *testing.T) {
	l := newLab(t)
	w := l.worker("w")
	c := l.createCommand(form.WorkerVersionURL, "v", l.versionSpec(w, "fetch"))
	c.Sealed = "one"
	l.ok(l.apply(c))
	l.deploy(w, "d", "v", 10000)
	l.ok(l.create(form.WorkerEndpointURL, "e", endpoint(w)))
	l.ok(l.create(form.ModuleWorkerURL, "other", object{}))
	carry := func(want string, sets ...string) {
		t.Helper()
		before := l.revisions()
		l.now++
		l.s.Apply(&Command{Kind: Carry, At: l.now, Facades: sets})
		if got := l.moved(before); got != want {
			t.Errorf("carrying %v moved %q, want %q", sets, got, want)
		}
	}
	carry("", "one")
	carry("d e v w", "two")
	if got := l.s.Resource("v").Cause; got == nil || got.Reason != rules.LacksCapability || !strings.Contains(got.Text, "one") {
		t.Errorf("the version renders %v", got)
	}
	carry("", "two")
	l.refused(l.update("d", weights(w, "v", 10000)), "WA-2.5", "v")
	frozen := l.bytesOf()
	s := New(form.Builtin())
	if err := s.Restore(bytes.NewReader(frozen)); err != nil {
		t.Fatal(err)
	}
	l.s = s
	carry("", "two")
	carry("d e v w", "one", "two")
	if got := l.reason("v") + l.reason("w"); got != "" {
		t.Errorf("after the set came back: %s", got)
	}
}
