package state

import (
	"fmt"
	"testing"
	"time"

	"edged/control/form"
	"edged/control/rules"
)

func cron(worker, expr string) object { return object{"worker": ref(worker), "cron": expr} }

// consumer is a consumer spec; change may be nil or replace members, nil values remove them.
func consumer(worker, queue string, change object) object {
	spec := object{"queue": ref(queue), "worker": ref(worker), "maxBatchSize": 10, "maxBatchTimeoutSeconds": 5, "maxConcurrency": 2,
		"maxRetries": 3, "retryDelaySeconds": 30}
	for k, v := range change {
		if spec[k] = v; v == nil {
			delete(spec, k)
		}
	}
	return spec
}

func (l *lab) queue(uid string) string {
	l.t.Helper()
	l.ok(l.create(form.QueueURL, uid, object{"messageRetentionSeconds": 3600}))
	return uid
}

// serving makes a worker whose only version serves every kind of event.
func (l *lab) serving(worker string) string {
	l.t.Helper()
	l.worker(worker)
	l.deploy(worker, "d-"+worker, l.version(worker, "v-"+worker, "fetch", "scheduled", "queue"), 10000)
	return worker
}

// attachment-requires-active-deployment, handler-gated-attachments (WA-3.3, 3.4, 3.5) and deployment-change-preserves-dependents
// (WA-4.1) for the two attachments that need a handler of their own; assets do not substitute for it.
func TestHandlerGatedAttachments(t *testing.T) {
	for _, a := range []struct {
		rule, form, handler string
		spec                func(w string) object
	}{
		{"WA-3.3", form.CronTriggerURL, "scheduled", func(w string) object { return cron(w, "*/5 * * * *") }},
		{"WA-3.4", form.QueueConsumerURL, "queue", func(w string) object { return consumer(w, "q", nil) }},
	} {
		t.Run(a.rule, func(t *testing.T) {
			l := newLab(t)
			w := l.worker("w")
			l.queue("q")
			out := l.create(a.form, "at", a.spec(w))
			l.refused(out, "WA-3.5", w)
			l.seed(out, rules.UnsupportedCapability)
			web, good, static := l.version(w, "web", "fetch"), l.version(w, "good", a.handler), l.staticVersion(w, "static")
			l.deploy(w, "d", web, 10000)
			l.refused(l.create(a.form, "at", a.spec(w)), a.rule, w, web, a.handler)
			l.ok(l.update("d", weights(w, good, 5000, static, 5000)))
			l.refused(l.create(a.form, "at", a.spec(w)), a.rule, w, static, a.handler) // 50/50 with one that lacks it
			l.ok(l.update("d", weights(w, good, 10000)))
			l.ok(l.create(a.form, "at", a.spec(w)))
			l.ok(l.update("at", a.spec(w)))
			out = l.update("d", weights(w, good, 9999, web, 1))
			l.refused(out, "WA-4.1", "at", web, a.handler)
			l.seed(out, rules.UnsupportedCapability)
			if got := l.s.Resource("d").Active; len(got) != 1 || got[0].Version != good {
				t.Errorf("a refused change left %v in force", got)
			}
			if doc := l.served("d"); doc["observed"].(object)["ready"] != true {
				t.Errorf("the deployment is not ready: %v", doc)
			}
			if doc := l.served(w); doc["observed"].(object)["ready"] != false { // D-06
				t.Errorf("a worker without HTTP is ready: %v", doc)
			}
		})
	}
}

// deployment-delete-blocked-by-dependent (WA-5.3, WA-5.4) and -by-inbound-binding (WA-5.5, tested on its own), in the order of
// kinds.
func TestDeploymentDeleteBlockedByEveryKind(t *testing.T) {
	l := newLab(t)
	w, caller := l.serving("w"), l.worker("caller")
	l.queue("q")
	s := l.versionSpec(caller, "fetch")
	s["serviceBindings"] = []object{{"name": "API", "resource": ref(w)}}
	l.ok(l.create(form.WorkerVersionURL, "in", s))
	own := l.versionSpec(w, "fetch")
	own["serviceBindings"] = []object{{"name": "ME", "resource": ref(w)}}
	l.ok(l.create(form.WorkerVersionURL, "own", own)) // a binding to its own worker is no dependent (D-09)
	l.ok(l.create(form.QueueConsumerURL, "a-consumer", consumer(w, "q", nil)))
	l.ok(l.create(form.CronTriggerURL, "b-cron", cron(w, "0 3 * * *")))
	for _, row := range []struct{ rule, holder string }{{"WA-5.3", "b-cron"}, {"WA-5.4", "a-consumer"}, {"WA-5.5", "in"}} {
		out := l.delete("d-" + w)
		l.refused(out, row.rule, row.holder, w)
		l.seed(out, rules.DependencyInUse)
		l.ok(l.delete(row.holder))
	}
	l.ok(l.delete("d-" + w))
}

// WA-8.1, WA-8.2 and the tear-down of two workers that call each other.
func TestServiceBindings(t *testing.T) {
	l := newLab(t)
	a, b := l.worker("a"), l.worker("b")
	binds := func(worker, target string) object {
		s := l.versionSpec(worker, "fetch")
		s["serviceBindings"] = []object{{"name": "PEER", "resource": ref(target)}}
		return s
	}
	l.refused(l.create(form.WorkerVersionURL, "a1", binds(a, a)), "WA-8.1", "PEER", a) // the first version cannot bind its own worker
	l.version(a, "a1", "fetch")
	l.refused(l.create(form.WorkerVersionURL, "b1", binds(b, a)), "WA-8.1", "PEER", a)
	l.deploy(a, "da", "a1", 10000)
	l.ok(l.create(form.WorkerVersionURL, "b1", binds(b, a)))
	l.deploy(b, "db", "b1", 10000)
	l.ok(l.create(form.WorkerVersionURL, "a2", binds(a, b)))
	l.ok(l.update("da", weights(a, "a2", 10000)))
	l.refused(l.delete("db"), "WA-5.5", "a2")
	l.version(a, "cron", "scheduled")
	l.refused(l.update("da", weights(a, "cron", 10000)), "WA-4.1", "b1", "cron") // the inbound binding needs HTTP
	l.ok(l.update("da", weights(a, "a1", 10000)))
	l.refused(l.delete("db"), "WA-5.5", "a2") // weighted or not
	l.refused(l.delete(b), "REL-8", b)
	l.ok(l.delete("a2"))
	l.ok(l.delete("db"))
	l.ok(l.update("b1", binds(b, a))) // A is still serving
	l.spoil("b-" + a)
	before := l.revisions()
	out := l.update("b1", binds(b, a)) // WA-8.2: judged like a create, and nothing moves
	l.refused(out, "WA-8.1", "PEER", a, "a1")
	l.seed(out, rules.UnsupportedCapability)
	if got := l.moved(before); got != "" {
		t.Errorf("a refused PUT moved %s", got)
	}
	l.ok(l.update("b-"+a, artifactSpec()))
	l.ok(l.update("b1", binds(b, a)))
	l.refused(l.delete("da"), "WA-5.5", "b1")
	l.ok(l.delete("b1"))
	l.ok(l.delete("da"))
	l.refused(l.create(form.WorkerVersionURL, "b2", binds(b, a)), "WA-8.1", "no active deployment")
}

// queue-single-consumer-enforced (CL-8) and the fixed fields of a consumer.
func TestQueueSingleConsumerEnforced(t *testing.T) {
	l := newLab(t)
	w, x := l.serving("w"), l.serving("x")
	l.queue("q")
	l.queue("r")
	l.ok(l.create(form.QueueConsumerURL, "c1", consumer(w, "q", nil)))
	out := l.create(form.QueueConsumerURL, "c2", consumer(x, "q", nil))
	l.refused(out, "CL-8", "q", "c1")
	l.seed(out, rules.InvalidArgument)
	l.refused(l.update("c1", consumer(w, "r", nil)), "immutable", "/queue")
	l.refused(l.update("c1", consumer(x, "q", nil)), "immutable", "/worker")
	l.ok(l.update("c1", consumer(w, "q", object{"maxBatchSize": 100, "maxRetries": 0, "retryDelaySeconds": 43200, "deadLetterQueue": ref("r")})))
	l.ok(l.update("c1", consumer(w, "q", nil))) // a dead-letter queue can be taken away
	l.ok(l.delete("c1"))
	l.ok(l.create(form.QueueConsumerURL, "c2", consumer(x, "q", nil)))
}

// CL-9 and CL-10: itself, two and three queues in a circle, on create and on update; a diamond is legal; a circle that is there
// already ends the walk.
func TestDeadLetterCycles(t *testing.T) {
	l := newLab(t)
	w := l.serving("w")
	for _, q := range []string{"q1", "q2", "q3", "q4"} {
		l.queue(q)
	}
	dead := func(queue, to string) object { return consumer(w, queue, object{"deadLetterQueue": ref(to)}) }
	out := l.create(form.QueueConsumerURL, "c1", dead("q1", "q1"))
	l.refused(out, "CL-9", "q1 to q1")
	l.seed(out, rules.InvalidArgument)
	l.ok(l.create(form.QueueConsumerURL, "c1", dead("q1", "q2")))
	l.refused(l.create(form.QueueConsumerURL, "c2", dead("q2", "q1")), "CL-9", "q2 to q1 to q2")
	l.ok(l.create(form.QueueConsumerURL, "c2", dead("q2", "q3")))
	l.refused(l.create(form.QueueConsumerURL, "c3", dead("q3", "q1")), "CL-9", "q3 to q1 to q2 to q3")
	l.ok(l.create(form.QueueConsumerURL, "c3", consumer(w, "q3", nil)))
	l.refused(l.update("c3", dead("q3", "q1")), "CL-9", "q3 to q1 to q2 to q3")
	l.ok(l.update("c2", dead("q2", "q4")))
	l.ok(l.update("c3", dead("q3", "q4"))) // shared
	l.ok(l.update("c1", dead("q1", "q3"))) // a diamond without its side
	l.ok(l.update("c1", dead("q1", "q2")))

	// A circle from outside the rules: the walk from elsewhere ends, and the circle can be left.
	r := *l.s.Resource("c2")
	spec, v := r.driver.Parse([]byte(`{"queue":{"resourceUid":"q2"},"worker":{"resourceUid":"w"},"maxBatchSize":1,"maxBatchTimeoutSeconds":0,"maxConcurrency":1,"maxRetries":0,"retryDelaySeconds":0,"deadLetterQueue":{"resourceUid":"q1"}}`))
	if v != nil {
		t.Fatal(v)
	}
	r.spec = spec
	l.s.resources.Set("c2", &r)
	l.ok(l.update("c3", dead("q3", "q1")))
	l.refused(l.update("c1", dead("q1", "q2")), "CL-9", "q1 to q2 to q1")
	l.ok(l.update("c1", consumer(w, "q1", nil)))
}

// The deletion matrix rows of the data Forms and of queues (REL-8).
func TestDeletionMatrixOfData(t *testing.T) {
	l := newLab(t)
	w := l.serving("w")
	spec := l.versionSpec(w, "fetch")
	for uid, row := range map[string]struct{ form, list string }{
		"kv": {form.KVNamespaceURL, "kvBindings"}, "db": {form.SQLiteDatabaseURL, "sqliteBindings"},
		"bucket2": {form.ObjectBucket2URL, "bucketBindings"}, "bucket3": {form.ObjectBucket3URL, "bucketBindings"},
	} {
		l.ok(l.create(row.form, uid, object{}))
		bound, _ := spec[row.list].([]object)
		spec[row.list] = append(bound, object{"name": "B_" + uid, "resource": ref(uid)})
	}
	l.queue("q")
	l.queue("dead")
	spec["queueProducerBindings"] = []object{{"name": "Q", "resource": ref("q")}}
	l.ok(l.create(form.WorkerVersionURL, "v", spec)) // never weighted
	l.ok(l.create(form.QueueConsumerURL, "c", consumer(w, "q", object{"deadLetterQueue": ref("dead")})))
	for target, holder := range map[string]string{"kv": "v", "db": "v", "bucket2": "v", "bucket3": "v", "q": "v", "dead": "c"} {
		out := l.delete(target)
		l.refused(out, "REL-8", target, holder)
		l.seed(out, rules.DependencyInUse)
	}
	l.ok(l.delete("v"))
	l.refused(l.delete("q"), "REL-8", "c", "/queue")
	l.refused(l.delete(w), "REL-8")
	l.ok(l.delete("c"))
	for _, uid := range []string{"kv", "db", "bucket2", "bucket3", "q", "dead"} {
		l.ok(l.delete(uid))
	}
	l.ok(l.create(form.SQLiteMigrationsURL, "m", artifactSpec())) // nothing of this table references it
	l.ok(l.delete("m"))
	bad := l.versionSpec(w, "fetch")
	l.queue("q9")
	bad["bucketBindings"] = []object{{"name": "B", "resource": ref("q9")}}
	l.refused(l.create(form.WorkerVersionURL, "bad", bad), "REL-3", "/bucketBindings/0/resource")
}

// observed of the data Forms: absent until the store is there, then exactly the members of their pages.
func TestObservedOfData(t *testing.T) {
	l := newLab(t)
	for i, row := range []struct {
		form     string
		spec     object
		observed string
	}{
		{form.KVNamespaceURL, object{}, `{"namespaceExists":true,"maxKeyBytes":467,"maxValueBytes":26214400,"maxMetadataBytes":1024,"consistency":"eventual"}`},
		{form.SQLiteDatabaseURL, object{}, `{"databaseExists":true}`},
		{form.ObjectBucket2URL, object{}, `{"bucketExists":true,"maxKeyBytes":979,"maxObjectBytes":5368709120,"maxSinglePutBytes":314572800,"maxMultipartParts":10000,"consistency":"strong-read-after-write"}`},
		{form.ObjectBucket3URL, object{}, `{"bucketExists":true,"maxKeyBytes":979,"maxObjectBytes":5368709120,"maxSinglePutBytes":314572800,"maxMultipartParts":10000,"consistency":"strong-read-after-write"}`},
		{form.QueueURL, object{"messageRetentionSeconds": 60}, `{"queueExists":true}`},
	} {
		uid := fmt.Sprint("r", i)
		out := l.create(row.form, uid, row.spec)
		if out.Operation.Status.Terminal() {
			t.Fatalf("%s settles without its store", row.form)
		}
		if got := string(l.s.Resource(uid).Observed); got != "{}" {
			t.Errorf("%s observes %s before there is a store", row.form, got)
		}
		l.ok(out)
		if got := string(l.s.Resource(uid).Observed); got != row.observed {
			t.Errorf("%s observes %s, want %s", row.form, got, row.observed)
		}
		l.ok(l.update(uid, row.spec))
	}
	l.ok(l.update("r4", object{"messageRetentionSeconds": 1209600, "deliveryDelaySeconds": 43200}))
}

// A store that is known to be gone shows in its Resource and in everything that relies on it, with the reasons of REL-10;
// verifying it again heals.
func TestLostStore(t *testing.T) {
	l := newLab(t)
	w := l.worker("w")
	l.ok(l.create(form.KVNamespaceURL, "kv", object{}))
	l.queue("q")
	l.queue("dead")
	s := l.versionSpec(w, "fetch", "queue")
	s["kvBindings"] = []object{{"name": "KV", "resource": ref("kv")}}
	l.ok(l.create(form.WorkerVersionURL, "v", s))
	l.deploy(w, "d", "v", 10000)
	l.ok(l.create(form.QueueConsumerURL, "c", consumer(w, "q", object{"deadLetterQueue": ref("dead")})))
	ready := func(uid, member string) string {
		doc := l.served(uid)
		reason := ""
		if c, ok := doc["hostConditions"].([]any); ok {
			reason = c[0].(object)["reason"].(string)
		}
		return fmt.Sprint(doc["observed"].(object)[member], " ", reason)
	}
	lose := func(uid string, spec any) *Operation {
		out := l.update(uid, spec)
		out = l.s.Apply(&Command{Kind: EndOperation, At: l.now, Operation: out.Operation.ID, Lost: true, Effect: EffectNone,
			Seed: rules.UnsupportedCapability, Message: "gone"})
		return out.Operation
	}
	before := l.revisions()
	if op := lose("kv", object{}); op.Status != Failed || op.Effect != EffectNone {
		t.Errorf("operation %v", op)
	}
	if got := l.moved(before); got != "c d kv v w" {
		t.Errorf("moved %s", got)
	}
	for _, row := range [][3]string{{"kv", "namespaceExists", "false ExternalChange"}, {"v", "ready", "false DependencyMissing"},
		{"v", "resolvedBindings", "false DependencyMissing"}, {"d", "ready", "false UnsupportedCapability"},
		{"w", "ready", "false UnsupportedCapability"}, {"c", "consumerAttached", "false UnsupportedCapability"}} {
		if got := ready(row[0], row[1]); got != row[2] {
			t.Errorf("%s shows %s %s, want %s", row[0], row[1], got, row[2])
		}
	}
	l.refused(l.update("d", weights(w, "v", 10000)), "WA-2.5", "v")
	l.ok(l.update("kv", object{}))
	if got := ready("v", "ready") + ready("w", "ready"); got != "true true " {
		t.Errorf("after it was verified again: %s", got)
	}
	lose("dead", object{"messageRetentionSeconds": 3600})
	if got := ready("c", "consumerAttached") + ready("c", "queueExists"); got != "false DependencyMissingtrue DependencyMissing" {
		t.Errorf("a lost dead-letter queue shows %s", got)
	}
	lose("q", object{"messageRetentionSeconds": 3600})
	if got := ready("c", "queueExists"); got != "false DependencyMissing" {
		t.Errorf("a lost queue shows %s", got)
	}
}

// attachments §4.4: what a trigger shows. nextMatchAt belongs to the instant at which the trigger last settled; it moves with
// the trigger's own mutations and never by itself or with another Resource.
func TestCronObserved(t *testing.T) {
	l := newLab(t)
	w := l.serving("w")
	l.now = time.Date(2026, 3, 1, 10, 0, 30, 0, time.UTC).UnixMilli()
	l.refused(l.create(form.CronTriggerURL, "c", cron(w, "0 24 * * *")), "attachments §4", "/cron", "hour: 24 is outside 0-23")
	l.ok(l.create(form.CronTriggerURL, "c", cron(w, "*/15 * * * *")))
	check := func(want string) {
		t.Helper()
		if got := string(l.s.Resource("c").Observed); got != want {
			t.Errorf("observes %s, want %s", got, want)
		}
	}
	check(`{"cron":"*/15 * * * *","timezone":"UTC","scheduleReady":true,"nextMatchAt":"2026-03-01T10:15:00Z"}`)
	l.now += 3_600_000
	before := l.revisions()
	l.ok(l.update("d-w", weights(w, "v-w", 10000)))
	if got := l.moved(before); got != "d-w" {
		t.Errorf("a deployment moved %s", got)
	}
	l.ok(l.update("c", cron(w, "45,0,15,30 * * * *"))) // as written, though it is the same schedule
	check(`{"cron":"45,0,15,30 * * * *","timezone":"UTC","scheduleReady":true,"nextMatchAt":"2026-03-01T11:15:00Z"}`)
	l.ok(l.update("c", cron(w, "0 0 31 2 *")))
	check(`{"cron":"0 0 31 2 *","timezone":"UTC","scheduleReady":true}`)
	l.refused(l.update("c", cron("other", "* * * * *")), "immutable", "/worker")
}
