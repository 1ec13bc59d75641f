package rules

import (
	"fmt"
	"strings"
	"testing"
)

// world is a worker with versions that a table can speak of by UID.
func world(deployment *Facts, versions ...Facts) *Aggregate {
	a := &Aggregate{Worker: Facts{UID: "w", Exists: true, Role: Worker}}
	if deployment != nil {
		a.Deployments = []Facts{*deployment}
	}
	a.Version = func(uid string) Facts {
		for _, v := range versions {
			if v.UID == uid {
				return v
			}
		}
		return Facts{UID: uid}
	}
	return a
}

func version(uid string, handlers ...string) Facts {
	return Facts{UID: uid, Exists: true, Owner: "w", Ready: true, Handlers: handlers}
}

func all(uids ...string) []Weight {
	var out []Weight
	for _, uid := range uids {
		out = append(out, Weight{uid, FullWeight / len(uids)})
	}
	return out
}

func expect(t *testing.T, name string, v *Verdict, rule string, seed Seed, names ...string) {
	t.Helper()
	switch {
	case v == nil && rule == "":
	case v == nil || v.Rule != rule || v.Seed != seed:
		t.Errorf("%s: got %v, want %s by %s", name, v, seed, rule)
	default:
		for _, n := range names {
			if !strings.Contains(v.Sentence, n) {
				t.Errorf("%s: %q does not name %s", name, v.Sentence, n)
			}
		}
		if want := string(seed) + ": " + rule + ": "; !strings.HasPrefix(v.Detail(), want) {
			t.Errorf("%s: detail %q does not begin with %q", name, v.Detail(), want)
		}
	}
}

// handler-gated-attachments: rule 3 for each attachment and each kind of distribution.
func TestGate(t *testing.T) {
	web, cron, queue, both := version("web", "fetch"), version("cron", "scheduled"), version("queue", "queue"), version("both", "fetch", "scheduled")
	static := Facts{UID: "static", Exists: true, Owner: "w", Ready: true, HasAssets: true}
	for _, tt := range []struct {
		name            string
		rule            string
		need            Need
		active, pending []Weight
		want            string
		seed            Seed
		names           string
	}{
		{"domain on fetch", "WA-3.1", NeedHTTP, all("web"), nil, "", "", ""},
		{"endpoint on assets (D-07)", "WA-3.2", NeedHTTP, all("static"), nil, "", "", ""},
		{"domain on cron", "WA-3.1", NeedHTTP, all("cron"), nil, "WA-3.1", UnsupportedCapability, "cron"},
		{"cron on fetch only", "WA-3.3", NeedScheduled, all("web"), nil, "WA-3.3", UnsupportedCapability, "scheduled"},
		{"cron on assets: nothing substitutes", "WA-3.3", NeedScheduled, all("static"), nil, "WA-3.3", UnsupportedCapability, "static"},
		{"cron 50/50 with one lacking", "WA-3.3", NeedScheduled, all("cron", "web"), nil, "WA-3.3", UnsupportedCapability, "web"},
		{"cron on all", "WA-3.3", NeedScheduled, all("cron", "both"), nil, "", "", ""},
		{"consumer on queue", "WA-3.4", NeedQueue, all("queue"), nil, "", "", ""},
		{"consumer on fetch", "WA-3.4", NeedQueue, all("web"), nil, "WA-3.4", UnsupportedCapability, "queue"},
		{"pending change takes it away", "WA-3.2", NeedHTTP, all("web"), all("cron"), "WA-3.2", ResourceBusy, "cron"},
		{"pending change brings it", "WA-3.3", NeedScheduled, all("web"), all("both"), "WA-3.3", ResourceBusy, "unfinished"},
		{"unfit either way", "WA-3.4", NeedQueue, all("web"), all("cron"), "WA-3.4", UnsupportedCapability, "web"},
	} {
		a := world(&Facts{UID: "d", Exists: true, Active: tt.active, Pending: tt.pending}, web, cron, queue, both, static)
		expect(t, tt.name, Gate(a, tt.rule, tt.need), tt.want, tt.seed, tt.names)
	}
	expect(t, "none", Gate(world(nil), "WA-3.1", NeedHTTP), "WA-3.5", UnsupportedCapability, "w")
	expect(t, "unsettled", Gate(world(&Facts{UID: "d", Settling: true}), "WA-3.1", NeedHTTP), "WA-3.5", ResourceBusy, "d")
	expect(t, "failed", Gate(world(&Facts{UID: "d", Failed: true}), "WA-3.1", NeedHTTP), "WA-3.5", UnsupportedCapability, "w")
	expect(t, "deleting", Gate(world(&Facts{UID: "d", Deleting: true, Active: all("web")}, web), "WA-3.1", NeedHTTP), "WA-3.5", UnsupportedCapability, "w")
}

// Rule 4 for every kind of dependent; WA-4.2 is judged before WA-4.1.
func TestDependents(t *testing.T) {
	web, cron := version("web", "fetch"), version("cron", "scheduled")
	class := version("class", "fetch")
	class.Classes = []string{"Room"}
	attachment := func(kind string, need Need) Facts { return Facts{UID: "x", Kind: kind, Need: need} }
	for _, tt := range []struct {
		name    string
		change  func(*Aggregate)
		weights []Weight
		want    string
		names   string
	}{
		{"nothing attached", func(*Aggregate) {}, all("cron"), "", ""},
		{"endpoint", func(a *Aggregate) { a.Attachments = []Facts{attachment("WorkerEndpoint", NeedHTTP)} }, all("web", "cron"), "WA-4.1", "fetch"},
		{"cron", func(a *Aggregate) { a.Attachments = []Facts{attachment("WorkerCronTrigger", NeedScheduled)} }, all("web"), "WA-4.1", "scheduled"},
		{"cron served", func(a *Aggregate) { a.Attachments = []Facts{attachment("WorkerCronTrigger", NeedScheduled)} }, all("cron"), "", ""},
		{"consumer", func(a *Aggregate) { a.Attachments = []Facts{attachment("QueueConsumer", NeedQueue)} }, all("web"), "WA-4.1", "queue"},
		{"inbound binding", func(a *Aggregate) { a.Inbound = []Facts{{UID: "caller", Kind: "WorkerVersion"}} }, all("cron"), "WA-4.1", "caller"},
		{"class", func(a *Aggregate) { a.Classes = []Facts{{UID: "ns", Kind: "ActorNamespace", ClassName: "Room"}} }, all("web", "class"), "WA-4.2", "Room"},
		{"class provided", func(a *Aggregate) { a.Classes = []Facts{{UID: "ns", ClassName: "Room"}} }, all("class"), "", ""},
		{"class first", func(a *Aggregate) {
			a.Classes = []Facts{{UID: "ns", ClassName: "Room"}}
			a.Attachments = []Facts{attachment("WorkerEndpoint", NeedHTTP)}
		}, all("cron"), "WA-4.2", "ns"},
	} {
		a := world(nil, web, cron, class)
		tt.change(a)
		expect(t, tt.name, Dependents(a, tt.weights), tt.want, UnsupportedCapability, tt.names)
	}
}

// Rule 5: each kind in turn, with the inbound binding on its own.
func TestDeleteDeployment(t *testing.T) {
	kinds := []struct {
		rule string
		f    Facts
	}{
		{"WA-5.1", Facts{UID: "a-domain", Kind: "WorkerCustomDomain", Gate: "WA-3.1", Need: NeedHTTP}},
		{"WA-5.2", Facts{UID: "b-endpoint", Kind: "WorkerEndpoint", Gate: "WA-3.2", Need: NeedHTTP}},
		{"WA-5.3", Facts{UID: "c-cron", Kind: "WorkerCronTrigger", Gate: "WA-3.3", Need: NeedScheduled}},
		{"WA-5.4", Facts{UID: "d-consumer", Kind: "QueueConsumer", Gate: "WA-3.4", Need: NeedQueue}},
	}
	a := world(nil)
	a.Inbound = []Facts{{UID: "e-caller", Kind: "WorkerVersion"}}
	for i := len(kinds) - 1; i >= 0; i-- {
		expect(t, "inbound", DeleteDeployment(&Aggregate{Worker: a.Worker, Inbound: a.Inbound}), "WA-5.5", DependencyInUse, "e-caller")
		a.Attachments = append([]Facts{kinds[i].f}, a.Attachments...)
		expect(t, kinds[i].rule, DeleteDeployment(a), kinds[i].rule, DependencyInUse, kinds[i].f.UID, kinds[i].f.Kind)
	}
	// Namespaces and workflows do not block (D-30), a dependent that is being deleted does.
	expect(t, "classes", DeleteDeployment(&Aggregate{Classes: []Facts{{UID: "ns"}}}), "", "")
	expect(t, "deleting", DeleteDeployment(&Aggregate{Attachments: []Facts{{UID: "x", Kind: "WorkerEndpoint", Gate: "WA-3.2", Deleting: true}}}), "WA-5.2", DependencyInUse, "x")
}

// Rule 8 follows rule 7 of the target.
func TestServiceTarget(t *testing.T) {
	web, cron := version("web", "fetch"), version("cron", "scheduled")
	stale := version("stale", "fetch")
	stale.Ready = false
	for _, tt := range []struct {
		name string
		d    *Facts
		want string
		seed Seed
	}{
		{"serving", &Facts{UID: "d", Active: all("web")}, "", ""},
		{"no deployment", nil, "WA-8.1", UnsupportedCapability},
		{"cron only", &Facts{UID: "d", Active: all("cron")}, "WA-8.1", UnsupportedCapability},
		{"not ready", &Facts{UID: "d", Active: all("web", "stale")}, "WA-8.1", UnsupportedCapability},
		{"unsettled", &Facts{UID: "d", Settling: true}, "WA-8.1", ResourceBusy},
		{"deleting", &Facts{UID: "d", Active: all("web"), Deleting: true}, "WA-8.1", UnsupportedCapability},
	} {
		expect(t, tt.name, ServiceTarget(world(tt.d, web, cron, stale), "API", "/serviceBindings/0/resource"), tt.want, tt.seed, "API", "w")
	}
}

// CL-8 to CL-10: exclusive slots, and dead letters that must not go round.
func TestClaims(t *testing.T) {
	expect(t, "free", Exclusive(Claim{ClaimConsumer, "q"}, "", "x"), "", "")
	expect(t, "own", Exclusive(Claim{ClaimConsumer, "q"}, "x", "x"), "", "")
	expect(t, "taken", Exclusive(Claim{ClaimConsumer, "q"}, "y", "x"), "CL-8", InvalidArgument, "q", "y")
	for _, tt := range []struct {
		name        string
		edges       map[string]string
		queue, dead string
		want        string
	}{
		{"none", nil, "a", "", ""},
		{"itself", nil, "a", "a", "CL-9"},
		{"two", map[string]string{"b": "a"}, "a", "b", "CL-9"},
		{"three", map[string]string{"b": "c", "c": "a"}, "a", "b", "CL-9"},
		{"chain", map[string]string{"b": "c"}, "a", "b", ""},
		{"diamond", map[string]string{"b": "d", "c": "d"}, "a", "b", ""},
		{"a cycle elsewhere ends the walk", map[string]string{"b": "c", "c": "b"}, "a", "b", ""},
	} {
		next := func(q string) string { return tt.edges[q] }
		expect(t, tt.name, DeadLetters(tt.queue, tt.dead, next), tt.want, InvalidArgument, tt.queue)
	}
}

// REL-10: what became of a pin.
func TestPins(t *testing.T) {
	for _, tt := range []struct {
		pins []PinState
		want string
	}{
		{nil, "<nil>"},
		{[]PinState{{Pointer: "/worker"}}, "<nil>"},
		{[]PinState{{Pointer: "/worker"}, {Pointer: "/bundle", Missing: true}}, "DependencyMissing"},
		{[]PinState{{Pointer: "/bundle", Changed: true}}, "ExternalChange"},
	} {
		got := "<nil>"
		if c := Pins(tt.pins); c != nil {
			got = fmt.Sprint(c.Reason)
		}
		if got != tt.want {
			t.Errorf("%v: %s, want %s", tt.pins, got, tt.want)
		}
	}
}

// A deployment of a cron-only version is ready, although its worker is not (D-06).
func TestDeploymentReady(t *testing.T) {
	cron := version("cron", "scheduled")
	a := world(&Facts{UID: "d", Active: all("cron")}, cron)
	if ok, c := DeploymentReady(a, &a.Deployments[0]); !ok {
		t.Errorf("not ready: %v", c)
	}
	if ok, _ := WorkerReady(a); ok {
		t.Error("a worker without HTTP is ready")
	}
	a.Attachments = []Facts{{UID: "e", Kind: "WorkerEndpoint", Need: NeedHTTP}}
	if ok, c := DeploymentReady(a, &a.Deployments[0]); ok || c.Reason != LacksCapability {
		t.Errorf("ready with an endpoint that finds nobody: %v", c)
	}
}
