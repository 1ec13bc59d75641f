package state

import (
	"fmt"
	"slices"
	"strings"

	"edged/control/rules"
)

func (x *sequence) pick(kinds ...string) string {
	var fit, all []string
	for _, r := range x.m.sorted() {
		all = append(all, r.uid)
		if slices.Contains(kinds, r.spec.kind) {
			fit = append(fit, r.uid)
		}
	}
	switch {
	case len(fit) > 0 && x.rng.IntN(12) > 0:
		return fit[x.rng.IntN(len(fit))]
	case len(all) > 0 && x.rng.IntN(3) > 0:
		return all[x.rng.IntN(len(all))]
	}
	return "nothing"
}

func jsonRef(uid string) string { return `{"resourceUid":"` + uid + `"}` }

// spec makes a random spec of a kind; old is the one it may vary, nil for a create.
func (x *sequence) spec(kind string, old *refSpec) refSpec {
	s := refSpec{kind: kind}
	owner := func() {
		if s.worker = x.pick("ModuleWorker"); old != nil && x.rng.IntN(8) > 0 {
			s.worker = old.worker
		}
		s.refs = append(s.refs, refPointer{pointer: "/worker", target: s.worker, accept: "ModuleWorker"})
	}
	switch kind {
	case "ModuleWorker", "EdgeKVNamespace":
		s.json = `{}`
	case "AtLeastOnceQueue":
		s.json = fmt.Sprintf(`{"messageRetentionSeconds":%d}`, 60+x.rng.IntN(3))
	case "WorkerBundle":
		s.json = `{"artifact":{"url":"https://a.test/m","sha256":"` + strings.Repeat("a", 64) + `"}}`
	case "WorkerVersion":
		owner()
		return x.versionSpec(s)
	case "WorkerDeployment":
		owner()
		return x.deploymentSpec(s)
	case "WorkerEndpoint":
		owner()
		s.json = `{"worker":` + jsonRef(s.worker) + `}`
	case "WorkerCustomDomain":
		written := []string{"a.test", "A.Test.", "b.test"}[x.rng.IntN(3)]
		s.host = strings.ToLower(strings.TrimSuffix(written, "."))
		owner()
		s.json = `{"hostname":"` + written + `","worker":` + jsonRef(s.worker) + `}`
	case "WorkerCronTrigger":
		owner()
		s.cron = []string{"*/5 * * * *", "0 3 * * 1", "*/60 * * * *"}[min(2, x.rng.IntN(9)/4)]
		s.json = `{"worker":` + jsonRef(s.worker) + `,"cron":"` + s.cron + `"}`
	case "QueueConsumer":
		if s.queue = x.pick("AtLeastOnceQueue"); old != nil && x.rng.IntN(8) > 0 {
			s.queue = old.queue
		}
		s.refs = append(s.refs, refPointer{pointer: "/queue", target: s.queue, accept: "AtLeastOnceQueue"})
		owner()
		dead := ""
		if x.rng.IntN(2) == 0 {
			s.dead = x.pick("AtLeastOnceQueue")
			s.refs = append(s.refs, refPointer{pointer: "/deadLetterQueue", target: s.dead, accept: "AtLeastOnceQueue"})
			dead = `,"deadLetterQueue":` + jsonRef(s.dead)
		}
		s.json = `{"queue":` + jsonRef(s.queue) + `,"worker":` + jsonRef(s.worker) +
			`,"maxBatchSize":1,"maxBatchTimeoutSeconds":0,"maxConcurrency":1,"maxRetries":0,"retryDelaySeconds":0` + dead + `}`
	}
	return s
}

func (x *sequence) versionSpec(s refSpec) refSpec {
	bundle := x.pick("WorkerBundle")
	s.refs = append(s.refs, refPointer{pointer: "/bundle", target: bundle, accept: "WorkerBundle"})
	s.handlers = [][]string{{"fetch", "scheduled", "queue"}, {"fetch"}, {"scheduled"}, {"queue"}, {}}[max(0, x.rng.IntN(8)-3)]
	bindings := ""
	if x.rng.IntN(4) == 0 {
		kv := x.pick("EdgeKVNamespace")
		s.refs = append(s.refs, refPointer{pointer: "/kvBindings/0/resource", target: kv, accept: "EdgeKVNamespace"})
		bindings += `,"kvBindings":[{"name":"KV","resource":` + jsonRef(kv) + `}]`
	}
	if x.rng.IntN(4) == 0 {
		callee := x.pick("ModuleWorker")
		s.services = []string{callee}
		s.refs = append(s.refs, refPointer{pointer: "/serviceBindings/0/resource", target: callee, accept: "ModuleWorker"})
		bindings += `,"serviceBindings":[{"name":"API","resource":` + jsonRef(callee) + `}]`
	}
	s.json = `{"worker":` + jsonRef(s.worker) + `,"bundle":` + jsonRef(bundle) + `,"handlers":[` + quoted(s.handlers) + `]` + bindings + `}`
	return s
}

func quoted(list []string) string {
	if len(list) == 0 {
		return ""
	}
	return `"` + strings.Join(list, `","`) + `"`
}

func (x *sequence) deploymentSpec(s refSpec) refSpec {
	var own []string
	for _, v := range x.m.of(s.worker, "WorkerVersion") {
		own = append(own, v.uid)
	}
	n := 1 + x.rng.IntN(2)
	shares := [][]int{{10000}, {4000, 6000}}[n-1]
	var versions []string
	for i := range n {
		uid := x.pick("WorkerVersion")
		if len(own) > 0 && x.rng.IntN(6) > 0 {
			uid = own[x.rng.IntN(len(own))]
		}
		share := shares[i]
		if x.rng.IntN(20) == 0 {
			share--
		}
		s.weights = append(s.weights, rules.Weight{Version: uid, Weight: share})
		s.refs = append(s.refs, refPointer{pointer: fmt.Sprintf("/versions/%d/workerVersion", i), target: uid, accept: "WorkerVersion", lenient: true})
		versions = append(versions, fmt.Sprintf(`{"workerVersion":%s,"weight":%d}`, jsonRef(uid), share))
	}
	s.json = `{"worker":` + jsonRef(s.worker) + `,"versions":[` + strings.Join(versions, ",") + `]}`
	return s
}
