package control

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"

	"edged/control/form"
)

// dataForms is every Form with a store, its kind and a spec.
var dataForms = []struct {
	form, kind string
	spec       spec
}{
	{form.KVNamespaceURL, form.StoreKV, spec{}},
	{form.SQLiteDatabaseURL, form.StoreSQL, spec{}},
	{form.ObjectBucket2URL, form.StoreObjects, spec{}},
	{form.ObjectBucket3URL, form.StoreObjects, spec{}},
	{form.QueueURL, form.StoreQueue, spec{"messageRetentionSeconds": 60, "deliveryDelaySeconds": 5}},
}

// Each data Resource makes one store under its UID, keeps it over updates, and removes it with its delete.
func TestDataResourcesHaveStores(t *testing.T) {
	f := newFakes()
	n := startWithStores(t, t.TempDir(), f, nil)
	for i, row := range dataForms {
		store := f[row.kind]
		uid := n.made(row.form, fmt.Sprint("data", i), row.spec)
		req := store.get(uid)
		if req == nil || req.Tenant != "default" || req.Epoch != 1 || store.made[uid] != 1 {
			t.Errorf("%s: made %v, %d times", row.form, req, store.made[uid])
		}
		if row.kind == form.StoreQueue {
			if req.Queue != (form.Queue{RetentionSeconds: 60, DelaySeconds: 5}) {
				t.Errorf("the queue was made with %v", req.Queue)
			}
			n.succeeded(n.put(uid, spec{"messageRetentionSeconds": 90}))
			if got := store.get(uid).Queue; got != (form.Queue{RetentionSeconds: 90}) {
				t.Errorf("after the update the queue has %v", got)
			}
		} else {
			n.succeeded(n.put(uid, row.spec))
			n.put(uid, spec{"x": 1}).is(t, 422, "invalid_spec")
		}
		n.succeeded(n.del(uid))
		if store.get(uid) != nil || store.made[uid] != 1 || store.removed[uid] != 1 {
			t.Errorf("%s: %d made, %d removed, there is %v", row.form, store.made[uid], store.removed[uid], store.get(uid))
		}
	}
}

// Without a store its Forms are not supported, and nothing pretends: Support says false, a create is 422 unsupported_form.
func TestFormsWithoutStore(t *testing.T) {
	f := newFakes()
	delete(f, form.StoreObjects)
	n := startWithStores(t, t.TempDir(), f, nil)
	for i, row := range dataForms {
		a := n.create(row.form, fmt.Sprint("data", i), row.spec)
		supported := n.do("GET", root+"/support?form="+row.form, nil).member(t, "supported") == true
		if want := row.kind != form.StoreObjects; supported != want {
			t.Errorf("support of %s is %t", row.form, supported)
		} else if want {
			n.succeeded(a)
		} else {
			a.is(t, 422, "unsupported_form")
		}
	}
	for _, name := range []string{"SQLiteMigrationApplication/0.2.0/", "ActorNamespace/0.3.0/", "DurableWorkflow/0.3.0/", "Container/0.1.0/"} {
		url := "https://edge.forms.takoform.com/forms/" + name
		if n.do("GET", root+"/support?form="+url, nil).member(t, "supported") != false {
			t.Errorf("%s is supported", url)
		}
		n.create(url, "x", spec{}).is(t, 422, "unsupported_form")
	}
	// A node that lost a store of Resources that it has still starts; the Resources can be read, and their deletion waits.
	uid := n.made(form.KVNamespaceURL, "kv", spec{})
	n.stop()
	m := startNode(t, n.dir, nil)
	m.get(uid).is(t, 200, "")
	del := m.del(uid)
	if del.status != 202 {
		t.Fatalf("delete answers %d %s", del.status, del.body)
	}
	m.stop()
	f[form.StoreObjects] = newFakeStore()
	o := startWithStores(t, m.dir, f, nil)
	o.succeeded(del)
	if f[form.StoreKV].get(uid) != nil {
		t.Error("the store is still there")
	}
}

// host-api §§7.2, 7.5: whatever the point at which the process dies, the same Operation goes on under the same UID and one store
// results, or none after a delete. A fake dies before its effect, after it, or after the record of another attempt.
func TestStoreEffectsSurviveACrash(t *testing.T) {
	for _, action := range []string{"create", "update", "delete"} {
		for _, point := range []string{"before", "after"} {
			t.Run(action+" dies "+point+" the effect", func(t *testing.T) {
				f := newFakes()
				kv := f[form.StoreKV]
				n := startWithStores(t, t.TempDir(), f, nil)
				uid := ""
				if action != "create" {
					uid = n.made(form.KVNamespaceURL, "kv", spec{})
				}
				reached := make(chan struct{}, 1)
				die := func(ctx context.Context, what string) error {
					select {
					case reached <- struct{}{}:
					default:
					}
					<-ctx.Done()
					return ctx.Err()
				}
				if point == "before" {
					kv.before = die
				} else {
					kv.after = die
				}
				var a answer
				switch action {
				case "create":
					a = n.create(form.KVNamespaceURL, "kv", spec{})
				case "update":
					a = n.put(uid, spec{})
				case "delete":
					a = n.del(uid)
				}
				<-reached
				if a.status != 202 {
					t.Fatalf("answers %d %s", a.status, a.body)
				}
				uid = a.text(t, "resourceUid")
				id := a.text(t, "id")
				dead := n.crashCopy()
				n.stop()
				kv.before, kv.after = nil, nil
				m := startWithStores(t, dead, f, nil)
				op := m.ended(a)
				if op.text(t, "id") != id || op.text(t, "status") != "succeeded" || op.text(t, "effect") != "complete" {
					t.Errorf("operation ended %s", op.body)
				}
				want := 1
				if action == "delete" {
					want = 0
					m.get(uid).is(t, 410, "gone")
				}
				if kv.made[uid] != 1 || kv.removed[uid] != 1-want || len(kv.stores) != want {
					t.Errorf("%d made, %d removed, %d there", kv.made[uid], kv.removed[uid], len(kv.stores))
				}
			})
		}
	}
}

// A store that is out of order leaves the Operation reconciling with an unknown effect; nothing else is accepted for the UID, the
// store of another kind goes on, and the Operation ends by itself once the store is back.
func TestStoreOutOfOrder(t *testing.T) {
	f := newFakes()
	var broken atomic.Bool
	broken.Store(true)
	f[form.StoreKV].before = func(context.Context, string) error {
		if broken.Load() {
			return errOutOfOrder
		}
		return nil
	}
	n := startWithStores(t, t.TempDir(), f, nil)
	a := n.create(form.KVNamespaceURL, "kv", spec{})
	uid := a.text(t, "resourceUid")
	n.poll(func() bool {
		op := n.do("GET", root+"/operations/"+a.text(t, "id"), nil)
		return op.text(t, "status") == "reconciling" && op.text(t, "effect") == "unknown"
	})
	if e, _ := n.operation(a.text(t, "id")).member(t, "error").(map[string]any); e["code"] != "backend_unavailable" || e["message"] != "the store is out of order" {
		t.Errorf("while it is tried again the Operation shows %v", e)
	}
	n.del(uid).is(t, 409, "resource_busy")
	n.create(form.KVNamespaceURL, "kv", spec{}).is(t, 409, "name_conflict")
	n.made(form.SQLiteDatabaseURL, "db", spec{})
	w := n.made(form.ModuleWorkerURL, "web", spec{})
	n.create(form.WorkerVersionURL, "v", spec{"worker": ref(w), "bundle": ref(n.code("c", "fetch")), "handlers": []string{"fetch"},
		"kvBindings": []spec{{"name": "KV", "resource": ref(uid)}}}).is(t, 409, "resource_busy")
	broken.Store(false)
	n.succeeded(a)
	if e := n.operation(a.text(t, "id")).member(t, "error"); e != nil {
		t.Errorf("after its success the Operation shows %v", e)
	}
	if f[form.StoreKV].made[uid] != 1 {
		t.Errorf("made %d times", f[form.StoreKV].made[uid])
	}
}

// A store that vanished is not made anew in silence: the update fails without effect and says so, the Resource and the version
// that binds it show it, and a delete cleans up.
func TestVanishedStore(t *testing.T) {
	f := newFakes()
	n := startWithStores(t, t.TempDir(), f, nil)
	uid := n.made(form.KVNamespaceURL, "kv", spec{})
	kv := f[form.StoreKV]
	kv.mu.Lock()
	delete(kv.stores, uid)
	kv.mu.Unlock()
	op := n.ended(n.put(uid, spec{}))
	e, _ := op.member(t, "error").(map[string]any)
	if op.text(t, "status") != "failed" || op.text(t, "effect") != "none" || e["code"] != "capability_required" || !strings.Contains(fmt.Sprint(e["message"]), uid) {
		t.Errorf("operation ended %s", op.body)
	}
	read := n.get(uid)
	if o := read.member(t, "observed").(map[string]any); o["namespaceExists"] != false || read.text(t, "phase") != "error" {
		t.Errorf("reads %s", read.body)
	}
	if kv.made[uid] != 1 {
		t.Error("the store was made anew")
	}
	n.succeeded(n.del(uid))
}

// SQLiteMigrationSet: files in order, application/sql, strict UTF-8 without a byte-order mark; bytes are kept, not run.
func TestMigrationSet(t *testing.T) {
	n := startNode(t, t.TempDir(), nil)
	uid := n.made(form.SQLiteMigrationsURL, "m", n.bundle("", "0001.sql", "application/sql", "CREATE TABLE no such grammar"))
	o := n.get(uid).member(t, "observed").(map[string]any)
	if _, has := o["entrypoint"]; has || o["fileCount"] != 1.0 || o["totalBytes"] != 28.0 {
		t.Errorf("observes %v", o)
	}
	for name, s := range map[string]spec{
		"entry": n.bundle("0001.sql", "0001.sql", "application/sql", "x"), "type": n.bundle("", "0001.sql", "text/plain", "x"),
		"mark": n.bundle("", "0001.sql", "application/sql", "\ufeffSELECT 1"), "utf8": n.bundle("", "0001.sql", "application/sql", "\xff"),
	} {
		op := n.ended(n.create(form.SQLiteMigrationsURL, name, s))
		if e, _ := op.member(t, "error").(map[string]any); op.text(t, "status") != "failed" || e["code"] != "artifact_invalid" {
			t.Errorf("%s: operation ended %s", name, op.body)
		}
	}
	n.succeeded(n.put(uid, n.bundle("", "0001.sql", "application/sql", "CREATE TABLE no such grammar")))
	n.succeeded(n.del(uid))
}

// The gates over the API, with the codes of README §4: attachments of a worker without handlers, the second consumer, a cycle.
func TestTriggersOverTheAPI(t *testing.T) {
	f := newFakes()
	n := startWithStores(t, t.TempDir(), f, nil)
	w := n.made(form.ModuleWorkerURL, "web", spec{})
	q := n.made(form.QueueURL, "q", spec{"messageRetentionSeconds": 60})
	cron := spec{"worker": ref(w), "cron": "*/5 * * * *"}
	consumer := spec{"worker": ref(w), "queue": ref(q), "maxBatchSize": 1, "maxBatchTimeoutSeconds": 0, "maxConcurrency": 1, "maxRetries": 0, "retryDelaySeconds": 0}
	n.create(form.CronTriggerURL, "c", cron).is(t, 422, "capability_required")
	d := n.made(form.WorkerDeploymentURL, "d", weighted(w, n.version(w, "v", "fetch"), 10000))
	refused := n.create(form.CronTriggerURL, "c", cron)
	refused.is(t, 422, "capability_required")
	if detail := refused.text(t, "detail"); !strings.HasPrefix(detail, "unsupported_capability: WA-3.3: ") || !strings.Contains(detail, "scheduled") {
		t.Errorf("detail is %q", detail)
	}
	n.create(form.QueueConsumerURL, "k", consumer).is(t, 422, "capability_required")
	n.succeeded(n.put(d, weighted(w, n.version(w, "all", "fetch", "scheduled", "queue"), 10000)))
	c := n.made(form.CronTriggerURL, "c", cron)
	n.made(form.QueueConsumerURL, "k", consumer)
	n.create(form.QueueConsumerURL, "k2", consumer).is(t, 422, "invalid_spec")
	bad := spec{"worker": ref(w), "cron": "60 * * * *"}
	a := n.put(c, bad)
	a.is(t, 422, "invalid_spec")
	if !strings.HasPrefix(a.text(t, "detail"), "invalid_argument: attachments §4: /cron: minute: 60 is outside 0-59") {
		t.Errorf("detail is %s", a.body)
	}
	n.del(q).is(t, 409, "dependency_conflict")
	before := n.get(c)
	n.succeeded(n.put(d, weighted(w, n.version(w, "more", "scheduled", "queue"), 10000)))
	if after := n.get(c); !bytes.Equal(after.body, before.body) || after.header.Get("ETag") != before.header.Get("ETag") {
		t.Errorf("a switch that changes nothing for the trigger moved it from %s to %s", before.body, after.body)
	}
	n.del(d).is(t, 409, "dependency_conflict")
}

// The fake keeps to what Store promises, or the tests above would show nothing.
func TestFakeStoreKeepsItsPromise(t *testing.T) {
	s := newFakeStore()
	req := StoreRequest{UID: "u", Tenant: "t", Epoch: 1}
	ctx := t.Context()
	for range 2 {
		if err := errors.Join(s.Create(ctx, req), s.Create(ctx, req)); err != nil || s.made["u"] != 1 {
			t.Fatal(err, s.made)
		}
	}
	if there, err := s.Exists(ctx, "u"); !there || err != nil {
		t.Error(there, err)
	}
	if err := errors.Join(s.Delete(ctx, req), s.Delete(ctx, req)); err != nil || s.removed["u"] != 1 {
		t.Error(err, s.removed)
	}
}

// attachments §5: the deletion of a consumer ends when its deliveries have, also over a restart, and closes the door before. Until
// then it holds its queue, its claim and its deployment.
func TestConsumerDeleteWaitsForDeliveries(t *testing.T) {
	f := newFakes()
	entered := make(chan string, 1)
	var early atomic.Bool
	var n *node
	n = startWithStores(t, t.TempDir(), f, func(o *Options) {
		o.Detach = func(ctx context.Context, uid, _ string) error {
			early.Store(n.lastPlan().Consumers[uid] != nil)
			select {
			case entered <- uid:
			default:
			}
			<-ctx.Done()
			return ctx.Err()
		}
	})
	w := n.made(form.ModuleWorkerURL, "web", spec{})
	d := n.made(form.WorkerDeploymentURL, "d", weighted(w, n.version(w, "v", "queue"), 10000))
	q := n.made(form.QueueURL, "q", spec{"messageRetentionSeconds": 60})
	consumer := spec{"worker": ref(w), "queue": ref(q), "maxBatchSize": 1, "maxBatchTimeoutSeconds": 0, "maxConcurrency": 1, "maxRetries": 0, "retryDelaySeconds": 0}
	c := n.made(form.QueueConsumerURL, "c", consumer)
	if n.lastPlan().Consumers[c] == nil {
		t.Fatal("the consumer is not in the plan")
	}
	del := n.del(c)
	if got := <-entered; got != c || early.Load() {
		t.Errorf("deliveries of %s are waited for, want %s; before the plan closed the door: %t", got, c, early.Load())
	}
	n.create(form.QueueConsumerURL, "c2", consumer).is(t, 422, "invalid_spec")
	n.del(q).is(t, 409, "dependency_conflict")
	n.del(d).is(t, 409, "dependency_conflict")
	m := startWithStores(t, n.crashCopy(), f, nil)
	if op := m.ended(del); op.text(t, "status") != "succeeded" || op.text(t, "id") != del.text(t, "id") {
		t.Errorf("operation ended %s", op.body)
	}
	m.made(form.QueueConsumerURL, "c2", consumer)
}
