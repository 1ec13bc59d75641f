package plan

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"reflect"
	"strings"
	"testing"

	"edged/control/form"
	"edged/control/state"
	"edged/internal/fault"
	"edged/internal/testkit"
)

func TestMain(m *testing.M) { testkit.Main(m) }

// world is a state that commands alone drive.
type world struct {
	t testing.TB
	s *state.State
	n int64
}

func newWorld(t testing.TB) *world {
	w := &world{t: t, s: state.New(form.Builtin())}
	w.s.Track()
	return w
}

func (w *world) apply(kind state.Kind, formURL, uid, spec string) {
	w.t.Helper()
	w.n++
	c := &state.Command{
		Kind: kind, At: w.n, Actor: state.Actor{Tenant: "t", Principal: "p", Role: state.Editor}, Lane: "v2", Key: fmt.Sprint(uid, w.n),
		Fingerprint: []byte(uid), UID: uid, Operation: fmt.Sprint("op-", w.n), Form: formURL, Space: "s", Name: uid, Window: 1,
		Inspected: &state.Inspected{Bundle: "b", Exports: []string{"fetch", "scheduled", "queue"}}, Address: uid + ".edge.test", Proven: true, Sealed: "set-1",
	}
	if kind != state.DeleteResource {
		c.Spec = json.RawMessage(spec)
	}
	if r := w.s.Resource(uid); r != nil {
		c.Expected = r.Generation
	}
	out := w.s.Apply(c)
	if out.Refusal != nil {
		w.t.Fatal(out.Refusal)
	}
	if out.Operation.Status.Terminal() {
		return
	}
	end := &state.Command{Kind: state.EndOperation, At: w.n, Operation: out.Operation.ID, OK: true}
	if r := w.s.Resource(uid); r.Driver().ArtifactKind != "" {
		end.Index = &form.Index{SHA256: "m", Entrypoint: "main.js", Files: []form.File{{Path: "index.html", MediaType: "text/html", SHA256: "f", Size: 3}}}
	}
	w.s.Apply(end)
}

func (w *world) create(formURL, uid, spec string) {
	w.t.Helper()
	w.apply(state.CreateResource, formURL, uid, spec)
}

func (w *world) update(uid, spec string) { w.t.Helper(); w.apply(state.UpdateResource, "", uid, spec) }

func (w *world) delete(uid string) { w.t.Helper(); w.apply(state.DeleteResource, "", uid, "") }

const artifactSpec = `{"artifact":{"url":"https://a.test/","sha256":"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"}}`

// shared makes what all workers use.
func (w *world) shared() {
	w.t.Helper()
	w.create(form.WorkerBundleURL, "b", artifactSpec)
	w.create(form.StaticAssetBundleURL, "a", artifactSpec)
	w.create(form.KVNamespaceURL, "kv", `{}`)
	w.create(form.ObjectBucket3URL, "bucket", `{}`)
	w.create(form.QueueURL, "q", `{"messageRetentionSeconds":60,"deliveryDelaySeconds":5}`)
}

// worker makes one whole worker with an endpoint, a domain and a trigger.
func (w *world) worker(id string) {
	w.t.Helper()
	uid := "w" + id
	w.create(form.ModuleWorkerURL, uid, `{}`)
	w.create(form.WorkerVersionURL, "v"+id, `{"worker":{"resourceUid":"`+uid+`"},"bundle":{"resourceUid":"b"},"handlers":["queue","fetch","scheduled"],"vars":{"N":1.0,"L":"<"},
		"kvBindings":[{"name":"KV","resource":{"resourceUid":"kv"}}],"bucketBindings":[{"name":"B","resource":{"resourceUid":"bucket"}}],
		"assets":{"bundle":{"resourceUid":"a"},"runWorkerFirst":true,"notFoundHandling":"single_page_application"}}`)
	w.create(form.WorkerDeploymentURL, "d"+id, weights(uid, "v"+id))
	w.create(form.WorkerEndpointURL, "e"+id, `{"worker":{"resourceUid":"`+uid+`"}}`)
	w.create(form.CustomDomainURL, "c"+id, `{"worker":{"resourceUid":"`+uid+`"},"hostname":"Z`+id+`.test."}`)
	w.create(form.CronTriggerURL, "t"+id, `{"worker":{"resourceUid":"`+uid+`"},"cron":"*/5 * * * *"}`)
}

func weights(worker, version string) string {
	return `{"worker":{"resourceUid":"` + worker + `"},"versions":[{"workerVersion":{"resourceUid":"` + version + `"},"weight":10000}]}`
}

const consumerSpec = `{"queue":{"resourceUid":"q"},"worker":{"resourceUid":"w0"},"maxBatchSize":10,"maxBatchTimeoutSeconds":5,"maxConcurrency":2,"maxRetries":3,"retryDelaySeconds":30}`

// The plan holds all that a node needs, canonical.
func TestPlanOfAState(t *testing.T) {
	w := newWorld(t)
	w.shared()
	w.worker("0")
	w.create(form.QueueConsumerURL, "qc", consumerSpec)
	d := NewDeriver(w.s, New()).Next(7)
	got, err := json.MarshalIndent(d, "", " ")
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	for line := range strings.Lines(string(got)) {
		b.WriteString(strings.TrimSpace(line))
	}
	const file = `{"path": "index.html","mediaType": "text/html","sha256": "f","size": 3}`
	const want = `{"Index": 7,"Hosts": {"Put": [{"name": "e0.edge.test","worker": "w0","resource": "e0","tenant": "t","endpoint": true},` +
		`{"name": "z0.test","worker": "w0","resource": "c0","tenant": "t"}],"Gone": null},` +
		`"Workers": {"Put": [{"uid": "w0","tenant": "t","space": "s","name": "w0","deployment": "d0","weights": [{"version": "v0","weight": 10000}]}],"Gone": null},` +
		`"Versions": {"Put": [{"uid": "v0","worker": "w0","tenant": "t","ready": true,"handlers": ["fetch","scheduled","queue"],"vars": {"L": "\u003c","N": 1.0},` +
		`"bindings": [{"name": "KV","kind": "kv","target": "kv","form": "` + form.KVNamespaceURL + `"},{"name": "B","kind": "objects","target": "bucket","form": "` + form.ObjectBucket3URL + `"}],` +
		`"bundle": "b","assets": {"bundle": "a","runWorkerFirst": true,"spa": true},"sealed": "set-1"}],"Gone": null},` +
		`"Bundles": {"Put": [{"resource": "a","sha256": "m","entrypoint": "main.js","files": [` + file + `]},{"resource": "b","sha256": "m","entrypoint": "main.js","files": [` + file + `]}],"Gone": null},` +
		`"Crons": {"Put": [{"uid": "t0","tenant": "t","space": "s","name": "t0","worker": "w0","cron": "*/5 * * * *","generation": 1,"since": 11}],"Gone": null},` +
		`"Consumers": {"Put": [{"uid": "qc","tenant": "t","space": "s","name": "qc","worker": "w0","queue": "q","maxBatchSize": 10,"maxBatchTimeoutSeconds": 5,` +
		`"maxConcurrency": 2,"maxRetries": 3,"retryDelaySeconds": 30,"generation": 1}],"Gone": null},` +
		`"Data": {"Put": [{"uid": "bucket","kind": "objects","form": "` + form.ObjectBucket3URL + `","tenant": "t","space": "s","name": "bucket"},` +
		`{"uid": "kv","kind": "kv","form": "` + form.KVNamespaceURL + `","tenant": "t","space": "s","name": "kv"},` +
		`{"uid": "q","kind": "queue","form": "` + form.QueueURL + `","tenant": "t","space": "s","name": "q","queue": {"retentionSeconds": 60,"delaySeconds": 5}}],"Gone": null},` +
		`"Members": {"Put": null,"Gone": null}}`
	if b.String() != want {
		t.Errorf("got\n%s\nwant\n%s", b.String(), want)
	}
}

// summary says what a delta touches.
func summary(d *Delta) string {
	var out []string
	say := func(kind string, put []string, gone []string) {
		for _, id := range put {
			out = append(out, kind+"+"+id)
		}
		for _, id := range gone {
			out = append(out, kind+"-"+id)
		}
	}
	say("host", idsOf(d.Hosts.Put), d.Hosts.Gone)
	say("worker", idsOf(d.Workers.Put), d.Workers.Gone)
	say("version", idsOf(d.Versions.Put), d.Versions.Gone)
	say("bundle", idsOf(d.Bundles.Put), d.Bundles.Gone)
	say("cron", idsOf(d.Crons.Put), d.Crons.Gone)
	say("consumer", idsOf(d.Consumers.Put), d.Consumers.Gone)
	say("data", idsOf(d.Data.Put), d.Data.Gone)
	say("member", idsOf(d.Members.Put), d.Members.Gone)
	return strings.Join(out, " ")
}

func idsOf[T any, P part[T]](parts []*T) (out []string) {
	for _, x := range parts {
		out = append(out, P(x).id())
	}
	return out
}

// Each change alters exactly its parts; what changes nothing for a node gives an empty delta; and the deltas lead to the plan
// that a fresh look at the whole state gives.
func TestDeltas(t *testing.T) {
	w := newWorld(t)
	w.shared()
	w.worker("0")
	w.worker("1")
	d := NewDeriver(w.s, New())
	follower := New()
	follower.Apply(d.Next(1))
	index := uint64(1)
	step := func(what, want string, do func()) {
		t.Helper()
		do()
		index++
		delta := d.Next(index)
		if got := summary(delta); got != want {
			t.Errorf("%s changes %q, want %q", what, got, want)
		}
		follower.Apply(delta)
		fresh := New()
		fresh.Apply(NewDeriver(w.s, New()).Next(index))
		for name, p := range map[string]*Plan{"deriver": d.Plan(), "follower": follower} {
			if !reflect.DeepEqual(p, fresh) {
				t.Errorf("%s: the plan of the %s is not that of the state", what, name)
			}
		}
		w.s.Track() // the fresh look took nothing that the deriver needs
	}
	step("nothing", "", func() {})
	step("the same deployment", "", func() { w.update("d0", weights("w0", "v0")) })
	step("a version", "version+v0b", func() {
		w.create(form.WorkerVersionURL, "v0b", `{"worker":{"resourceUid":"w0"},"bundle":{"resourceUid":"b"},"handlers":["fetch","scheduled","queue"]}`)
	})
	step("other weights", "worker+w0", func() { w.update("d0", weights("w0", "v0b")) })
	step("another schedule", "cron+t0", func() { w.update("t0", `{"worker":{"resourceUid":"w0"},"cron":"0 0 * * *"}`) })
	step("a consumer", "consumer+qc", func() { w.create(form.QueueConsumerURL, "qc", consumerSpec) })
	step("queue settings", "data+q", func() { w.update("q", `{"messageRetentionSeconds":90}`) })
	step("gone and come between two looks", "", func() { w.create(form.ModuleWorkerURL, "x", `{}`); w.delete("x") })
	step("a store", "data+db", func() { w.create(form.SQLiteDatabaseURL, "db", `{}`) })
	step("a store gone", "data-db", func() { w.delete("db") })
	step("a whole worker gone", "host-e1.edge.test host-z1.test worker-w1 version-v1 cron-t1", func() {
		for _, uid := range []string{"e1", "c1", "t1", "d1", "v1", "w1"} {
			w.delete(uid)
		}
	})
	step("triggers gone", "cron-t0 consumer-qc", func() { w.delete("t0"); w.delete("qc") })
}

// A store that is lost is no part of the plan, and a version that binds it is not ready; both come back when it is verified.
func TestLostStoreInThePlan(t *testing.T) {
	w := newWorld(t)
	w.shared()
	w.worker("0")
	d := NewDeriver(w.s, New())
	d.Next(1)
	c := &state.Command{Kind: state.UpdateResource, At: 1000, Actor: state.Actor{Tenant: "t", Principal: "p", Role: state.Editor}, Key: "lose", UID: "kv",
		Operation: "op-lose", Expected: 1, Spec: json.RawMessage(`{}`)}
	if out := w.s.Apply(c); out.Refusal != nil {
		t.Fatal(out.Refusal)
	}
	w.s.Apply(&state.Command{Kind: state.EndOperation, At: 1001, Operation: "op-lose", Lost: true, Effect: state.EffectNone})
	if got := summary(d.Next(2)); got != "version+v0 data-kv" || d.Plan().Versions["v0"].Ready {
		t.Errorf("changes %q, the version is ready: %t", got, d.Plan().Versions["v0"].Ready)
	}
	w.update("kv", `{}`)
	if got := summary(d.Next(3)); got != "version+v0 data+kv" || !d.Plan().Versions["v0"].Ready {
		t.Errorf("changes %q", got)
	}
}

// The store gives back what was saved, delta by delta, over reopening; the first look after a restart finds nothing new; a damaged
// part is an error, after which the next save makes everything anew; a newer format is refused.
func TestStore(t *testing.T) {
	dir := t.TempDir()
	open := func() *Store {
		t.Helper()
		s, err := OpenStore(dir, slog.New(slog.DiscardHandler))
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	load := func(s *Store) *Plan {
		t.Helper()
		p, err := s.Load()
		if err != nil {
			t.Fatal(err)
		}
		return p
	}
	w := newWorld(t)
	w.shared()
	w.worker("0")
	d := NewDeriver(w.s, New())
	s := open()
	if p := load(s); !reflect.DeepEqual(p, New()) {
		t.Errorf("an empty store gives %v", p)
	}
	for i, do := range []func(){func() {}, func() { w.worker("1") }, func() { w.delete("t0"); w.delete("e1") }} {
		do()
		delta := d.Next(uint64(i + 1))
		if err := s.Save(delta, d.Plan()); err != nil {
			t.Fatal(err)
		}
	}
	closeStore := func(s *Store) {
		t.Helper()
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
	closeStore(s)
	s = open()
	back := load(s)
	if !reflect.DeepEqual(back, d.Plan()) {
		t.Errorf("the store gives\n%+v\nwant\n%+v", back, d.Plan())
	}
	if first := NewDeriver(w.s, back).Next(9); !first.Empty() {
		t.Errorf("after a restart without a change: %s", summary(first))
	}
	if err := s.db.Set([]byte("wbad"), []byte("{"), nil); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Load(); fault.CodeOf(err) != fault.Invalid {
		t.Errorf("a damaged part gives %v", err)
	}
	empty := NewDeriver(w.s, New())
	if err := s.Save(empty.Next(10), empty.Plan()); err != nil {
		t.Fatal(err)
	}
	if again := load(s); !reflect.DeepEqual(again, empty.Plan()) {
		t.Error("the damaged part is still there")
	}
	closeStore(s)
}

// One change among many: what it costs must not depend on how many there are.
func BenchmarkNext(b *testing.B) {
	for _, n := range []int{100, 5000} {
		b.Run(fmt.Sprintf("workers=%d", n), func(b *testing.B) {
			w := newWorld(b)
			w.shared()
			for i := range n {
				w.worker(fmt.Sprint(i))
			}
			d := NewDeriver(w.s, New())
			d.Next(1)
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				b.StopTimer()
				w.update("t0", fmt.Sprintf(`{"worker":{"resourceUid":"w0"},"cron":"%d * * * *"}`, i%60))
				b.StartTimer()
				if delta := d.Next(uint64(i)); len(delta.Crons.Put) != 1 {
					b.Fatal(summary(delta))
				}
			}
		})
	}
}
