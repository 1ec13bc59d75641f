package state

import (
	"fmt"
	"testing"

	"edged/control/form"
	"edged/control/rules"
)

// CL-1 to CL-7 and D-54 (with CL-4).
func TestClaims(t *testing.T) {
	onBothSets(t, func(t *testing.T, l *lab) {
		w := l.worker("w")
		l.deploy(w, "d", l.version(w, "v", "fetch"), 10000)
		c := l.createCommand(form.CustomDomainURL, "x", domain(w, "a.test"))
		c.Proven = false
		out := l.apply(c)
		l.seed(out, rules.PermissionDenied)
		l.ok(l.create(form.CustomDomainURL, "dom", domain(w, "A.Test.")))
		if got := fmt.Sprint(l.served("dom")["output"]); got != "map[hostname:a.test url:https://a.test/]" {
			t.Errorf("output is %s", got)
		}
		l.refused(l.create(form.CustomDomainURL, "dom2", domain(w, "a.TEST")), "CL-3", "dom")
		l.ok(l.update("dom", domain(w, "a.test."))) // canonically equal
		l.refused(l.update("dom", domain(w, "b.test")), "immutable", "/hostname")
		// Across the Spaces of one tenant.
		other := func(c *Command) *Command { c.Space = "other"; return c }
		l.ok(l.apply(other(l.createCommand(form.ModuleWorkerURL, "ow", object{}))))
		l.ok(l.apply(other(l.createCommand(form.WorkerBundleURL, "ob", artifactSpec()))))
		l.ok(l.apply(other(l.createCommand(form.WorkerVersionURL, "ov", object{"worker": ref("ow"), "bundle": ref("ob"), "handlers": []string{"fetch"}}))))
		l.ok(l.apply(other(l.createCommand(form.WorkerDeploymentURL, "od", weights("ow", "ov", 10000)))))
		l.refused(l.apply(other(l.createCommand(form.CustomDomainURL, "odom", domain("ow", "a.test")))), "CL-3", "dom")
		// CL-4: another tenant is outside the comparison; the older claim has the route until it is gone.
		m := l.as("t2", "p2")
		mw := m.worker("mw")
		m.deploy(mw, "md", m.version(mw, "mv", "fetch"), 10000)
		m.ok(m.create(form.CustomDomainURL, "mdom", domain(mw, "a.test")))
		route := func(uid string) bool {
			return l.served(uid)["observed"].(object)["activeDeploymentRouteReady"].(bool)
		}
		if !route("dom") || route("mdom") {
			t.Error("the older live claim does not have the route")
		}
		before := l.revisions()
		l.ok(l.delete("dom"))
		if !route("mdom") || l.moved(before) != "-dom mdom" {
			t.Errorf("the newer claim does not get the route: moved %s", l.moved(before))
		}
		l.ok(l.create(form.CustomDomainURL, "dom3", domain(w, "a.test"))) // CL-5: free again
		// CL-6, CL-7.
		l.ok(l.create(form.WorkerEndpointURL, "e", endpoint(w)))
		l.refused(l.create(form.WorkerEndpointURL, "e2", endpoint(w)), "CL-6", "e")
		c = l.createCommand(form.WorkerEndpointURL, "e3", endpoint("ow"))
		c.Address = ""
		l.seed(l.apply(other(c)), rules.UnsupportedCapability)
		if l.s.Resource("e3") != nil {
			t.Error("a refused endpoint was stored")
		}
		address := l.served("e")["output"]
		l.ok(l.update("e", endpoint(w)))
		if got := l.served("e")["output"]; fmt.Sprint(got) != fmt.Sprint(address) {
			t.Errorf("address changed from %v to %v", address, got)
		}
	})
}

// CL-11 and WA-1.3: of two creates that were both found good, the one that is applied first wins, and the other is refused when it
// would commit, names the holder and leaves nothing.
func TestSecondOfTwoGoodCreatesIsRefused(t *testing.T) {
	for _, row := range []struct {
		rule, form  string
		spec, other object
	}{
		{"WA-1.3", form.WorkerDeploymentURL, weights("idle", "v-idle", 10000), weights("idle", "v-idle", 10000)},
		{"CL-3", form.CustomDomainURL, domain("w", "a.test"), domain("x", "A.test.")},
		{"CL-6", form.WorkerEndpointURL, endpoint("w"), endpoint("w")},
		{"CL-8", form.QueueConsumerURL, consumer("w", "q", nil), consumer("x", "q", nil)},
		{"CL-9", form.QueueConsumerURL, consumer("w", "q", object{"deadLetterQueue": ref("r")}), consumer("w", "r", object{"deadLetterQueue": ref("q")})},
	} {
		t.Run(row.rule, func(t *testing.T) {
			onBothSets(t, func(t *testing.T, l *lab) {
				l.serving("w")
				l.serving("x")
				l.version(l.worker("idle"), "v-idle", "fetch")
				l.queue("q")
				l.queue("r")
				first, second := l.createCommand(row.form, "first", row.spec), l.createCommand(row.form, "second", row.other)
				for _, c := range []*Command{first, second} {
					if out := l.s.Decide(c); out.Refusal != nil {
						t.Fatalf("%s is refused alone: %s", c.UID, out.Refusal.Detail())
					}
				}
				l.ok(l.s.Apply(first))
				before := l.revisions()
				out := l.s.Apply(second)
				rule := row.rule
				if rule == "WA-1.3" {
					rule = "WA-1.1" // the rule that WA-1.3 repeats
				}
				l.refused(out, rule)
				l.seed(out, rules.InvalidArgument)
				if rule != "CL-9" {
					l.refused(out, rule, "first")
				}
				if l.s.Resource("second") != nil || l.s.Operation(second.Operation) != nil || l.moved(before) != "" {
					t.Errorf("the refused one left traces: moved %q", l.moved(before))
				}
			})
		})
	}
}

// CL-11 and WA-1.3: there is no time between acceptance and commit in which a claim or a deployment could be lost to another. What the
// rules of the aggregate judge settles in the command that accepts it.
func TestAcceptanceOfAggregateMembersIsTheirCommit(t *testing.T) {
	for url, d := range form.Builtin() {
		switch d.Role {
		case rules.Version, rules.Deployment, rules.Attachment, rules.Class:
			if d.Outside(form.Create) || d.Outside(form.Update) {
				t.Errorf("%s commits after its acceptance: State.end has to judge its rules again", url)
			}
		}
	}
}
