package state

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"edged/control/form"
	"edged/control/rules"
	"edged/internal/cronexpr"
)

// reference is a naive reading of the contract: plain maps, every question answered by a scan, nothing shared with the state.
type reference struct {
	live  map[string]*refResource
	names map[string]string // tenant and name to UID
	gone  map[string]string // UID to tenant
	fleet *refFleet
}

// refSpec is a spec as the generator makes it; kind is the Form's last words.
type refSpec struct {
	kind     string
	refs     []refPointer // in the order of the Form's field table
	worker   string
	handlers []string // fetch, scheduled, queue
	services []string
	weights  []rules.Weight
	host     string // canonical
	cron     string
	queue    string
	dead     string
	json     string
}

type refPointer struct {
	pointer, target string
	accept          string // kinds, separated by spaces
	lenient         bool
}

type refResource struct {
	uid, tenant, name string
	spec              refSpec
	generation        uint64
	phase             string
	settled, open     bool // open: an Operation is unfinished
	deleting          bool // the unfinished one is a delete
	at                int64
	active            []rules.Weight
	home              string
}

func newReference() *reference {
	return &reference{live: map[string]*refResource{}, names: map[string]string{}, gone: map[string]string{}, fleet: newRefFleet()}
}

// verdict is a refusal as far as it has to agree: kind and rule.
type verdict struct {
	seed rules.Seed
	rule string
}

var accepted = verdict{}

func invalidSpec(rule string) verdict { return verdict{rules.InvalidArgument, rule} }

func (m *reference) sorted() []*refResource {
	var out []*refResource
	for _, r := range m.live {
		out = append(out, r)
	}
	slices.SortFunc(out, func(a, b *refResource) int { return strings.Compare(a.uid, b.uid) })
	return out
}

// of returns the live Resources of a kind that belong to a worker, ascending.
func (m *reference) of(worker, kind string) (out []*refResource) {
	for _, r := range m.sorted() {
		if r.spec.kind == kind && r.spec.worker == worker {
			out = append(out, r)
		}
	}
	return out
}

var attachmentKinds = []struct{ kind, gate, blocks, need string }{
	{"WorkerCustomDomain", "WA-3.1", "WA-5.1", "http"}, {"WorkerEndpoint", "WA-3.2", "WA-5.2", "http"},
	{"WorkerCronTrigger", "WA-3.3", "WA-5.3", "scheduled"}, {"QueueConsumer", "WA-3.4", "WA-5.4", "queue"},
}

func (m *reference) meets(version, need string) bool {
	v := m.live[version]
	if need == "http" {
		need = "fetch"
	}
	return v != nil && slices.Contains(v.spec.handlers, need)
}

// deployment returns the active deployment of a worker.
func (m *reference) deployment(worker string) *refResource {
	for _, d := range m.of(worker, "WorkerDeployment") {
		if len(d.active) > 0 && !d.deleting {
			return d
		}
	}
	return nil
}

// inbound returns the versions of other workers that bind a worker.
func (m *reference) inbound(worker string) (out []*refResource) {
	for _, r := range m.sorted() {
		if r.spec.worker != worker && slices.Contains(r.spec.services, worker) {
			out = append(out, r)
		}
	}
	return out
}

func (m *reference) workerReady(worker string) bool {
	d := m.deployment(worker)
	if d == nil {
		return false
	}
	for _, w := range d.active {
		if !m.meets(w.Version, "http") {
			return false
		}
	}
	return true
}

// shape is what a spec shows alone, before name and references.
func shape(s *refSpec) verdict {
	if s.kind == "WorkerCronTrigger" {
		if _, err := cronexpr.Parse(s.cron); err != nil {
			return invalidSpec("attachments §4")
		}
	}
	return accepted
}

func distribution(s *refSpec) verdict {
	if s.kind != "WorkerDeployment" {
		return accepted
	}
	sum, seen := 0, map[string]bool{}
	for _, w := range s.weights {
		if seen[w.Version] {
			return invalidSpec("WA-2.1")
		}
		seen[w.Version] = true
		sum += w.Weight
	}
	if sum != 10000 {
		return invalidSpec("WA-2.2")
	}
	return accepted
}

func (m *reference) references(tenant string, s *refSpec) verdict {
	for _, p := range s.refs {
		t := m.live[p.target]
		switch {
		case t == nil || t.tenant != tenant:
			return verdict{rules.ResourceNotFound, "REL-1"}
		case !slices.Contains(strings.Fields(p.accept), t.spec.kind):
			return invalidSpec("REL-3")
		case p.lenient:
		case t.phase == "deleting":
			return invalidSpec("REL-4")
		case !t.settled && t.open:
			return verdict{rules.ResourceBusy, "REL-5"}
		case !t.settled:
			return invalidSpec("REL-5")
		}
	}
	return accepted
}

// aggregate is rules 1 to 4 and 8 and the claims, in the order of worker-aggregate §3. self is "" for a create.
func (m *reference) aggregate(tenant, self string, s *refSpec) verdict {
	switch s.kind {
	case "WorkerDeployment":
		return m.judgeDeployment(self, s)
	case "WorkerVersion":
		for _, callee := range s.services {
			if !m.workerReady(callee) {
				return verdict{rules.UnsupportedCapability, "WA-8.1"}
			}
		}
	}
	for _, a := range attachmentKinds {
		if a.kind == s.kind {
			if v := m.exclusive(tenant, self, s); v != accepted {
				return v
			}
			d := m.deployment(s.worker)
			if d == nil {
				return verdict{rules.UnsupportedCapability, "WA-3.5"}
			}
			for _, w := range d.active {
				if !m.meets(w.Version, a.need) {
					return verdict{rules.UnsupportedCapability, a.gate}
				}
			}
		}
	}
	return accepted
}

func (m *reference) judgeDeployment(self string, s *refSpec) verdict {
	for _, d := range m.of(s.worker, "WorkerDeployment") {
		if self == "" && d.uid != self {
			return invalidSpec("WA-1.1")
		}
	}
	for _, w := range s.weights {
		if m.live[w.Version].spec.worker != s.worker {
			return invalidSpec("WA-2.3")
		}
	}
	for _, a := range attachmentKinds {
		if len(m.of(s.worker, a.kind)) == 0 {
			continue
		}
		for _, w := range s.weights {
			if !m.meets(w.Version, a.need) {
				return verdict{rules.UnsupportedCapability, "WA-4.1"}
			}
		}
	}
	if len(m.inbound(s.worker)) > 0 {
		for _, w := range s.weights {
			if !m.meets(w.Version, "http") {
				return verdict{rules.UnsupportedCapability, "WA-4.1"}
			}
		}
	}
	return accepted
}

func (m *reference) exclusive(tenant, self string, s *refSpec) verdict {
	edges := map[string]string{}
	for _, r := range m.sorted() {
		if r.tenant != tenant || r.uid == self {
			continue
		}
		switch {
		case s.kind == "WorkerCustomDomain" && r.spec.kind == s.kind && r.spec.host == s.host:
			return invalidSpec("CL-3")
		case s.kind == "WorkerEndpoint" && r.spec.kind == s.kind && r.spec.worker == s.worker:
			return invalidSpec("CL-6")
		case s.kind == "QueueConsumer" && r.spec.kind == s.kind && r.spec.queue == s.queue:
			return invalidSpec("CL-8")
		}
		if r.spec.kind == "QueueConsumer" {
			edges[r.spec.queue] = r.spec.dead
		}
	}
	if s.kind == "QueueConsumer" {
		for q, steps := s.dead, 0; q != "" && steps < 100; q, steps = edges[q], steps+1 {
			if q == s.queue {
				return invalidSpec("CL-9")
			}
		}
	}
	return accepted
}

// deletable is rule 5 and the deletion matrix.
func (m *reference) deletable(r *refResource) verdict {
	if r.spec.kind == "WorkerDeployment" {
		for _, a := range attachmentKinds {
			if len(m.of(r.spec.worker, a.kind)) > 0 {
				return verdict{rules.DependencyInUse, a.blocks}
			}
		}
		if len(m.inbound(r.spec.worker)) > 0 {
			return verdict{rules.DependencyInUse, "WA-5.5"}
		}
		return accepted
	}
	for _, other := range m.live {
		for _, p := range other.spec.refs {
			if p.target == r.uid && other.uid != r.uid {
				return verdict{rules.DependencyInUse, "REL-8"}
			}
		}
	}
	return accepted
}

// observed renders what the contract says of a Resource, "{}" before it ever settled.
func (m *reference) observed(r *refResource) string {
	if !r.settled {
		return "{}"
	}
	routed := func(need string) bool {
		d := m.deployment(r.spec.worker)
		if d == nil {
			return false
		}
		for _, w := range d.active {
			if !m.meets(w.Version, need) {
				return false
			}
		}
		return true
	}
	switch r.spec.kind {
	case "ModuleWorker":
		d := m.deployment(r.uid)
		if d == nil {
			return `{"activeDeploymentUid":null,"ready":false}`
		}
		return fmt.Sprintf(`{"activeDeploymentUid":"%s","ready":%t}`, d.uid, m.workerReady(r.uid))
	case "WorkerVersion":
		return `{"ready":true,"resolvedBindings":true,"bundleVerified":true}`
	case "WorkerDeployment":
		var selected []string
		for _, w := range r.active {
			selected = append(selected, fmt.Sprintf(`{"resourceUid":"%s","weight":%d}`, w.Version, w.Weight))
		}
		return fmt.Sprintf(`{"ready":%t,"active":%t,"selectedVersions":[%s]}`, !r.deleting, !r.deleting, strings.Join(selected, ","))
	case "WorkerEndpoint":
		return fmt.Sprintf(`{"tlsReady":true,"activeDeploymentRouteReady":%t}`, routed("http"))
	case "WorkerCustomDomain":
		return fmt.Sprintf(`{"dnsControlVerified":true,"tlsReady":true,"activeDeploymentRouteReady":%t}`, routed("http") && m.oldest(r))
	case "WorkerCronTrigger":
		next, _ := mustCron(r.spec.cron).Next(time.UnixMilli(r.at))
		return fmt.Sprintf(`{"cron":"%s","timezone":"UTC","scheduleReady":%t,"nextMatchAt":"%s"}`, r.spec.cron, routed("scheduled"), next.Format(time.RFC3339))
	case "QueueConsumer":
		return fmt.Sprintf(`{"queueExists":true,"workerExists":true,"consumerAttached":%t}`, routed("queue"))
	case "EdgeKVNamespace":
		return `{"namespaceExists":true,"maxKeyBytes":467,"maxValueBytes":26214400,"maxMetadataBytes":1024,"consistency":"eventual"}`
	case "AtLeastOnceQueue":
		return `{"queueExists":true}`
	}
	return ""
}

func mustCron(text string) cronexpr.Expr {
	e, err := cronexpr.Parse(text)
	if err != nil {
		panic(err)
	}
	return e
}

// oldest is D-54: between tenants the older live claim has the route. UIDs of the generator grow with age.
func (m *reference) oldest(r *refResource) bool {
	for _, other := range m.live {
		if other.spec.host == r.spec.host && other.uid < r.uid {
			return false
		}
	}
	return true
}

var refForms = map[string]string{
	"ModuleWorker": form.ModuleWorkerURL, "WorkerBundle": form.WorkerBundleURL, "WorkerVersion": form.WorkerVersionURL,
	"WorkerDeployment": form.WorkerDeploymentURL, "WorkerEndpoint": form.WorkerEndpointURL, "WorkerCustomDomain": form.CustomDomainURL,
	"WorkerCronTrigger": form.CronTriggerURL, "QueueConsumer": form.QueueConsumerURL, "EdgeKVNamespace": form.KVNamespaceURL,
	"AtLeastOnceQueue": form.QueueURL,
}
