package rules

// OneDeployment is rule 1: a worker has at most one live deployment. self is the UID of the one that is being changed,
// "" for a create.
func OneDeployment(a *Aggregate, self string) *Verdict {
	for i := range a.Deployments {
		if d := &a.Deployments[i]; d.UID != self {
			return Refuse(InvalidArgument, "WA-1.1", "/worker", []string{a.Worker.UID, d.UID},
				"worker %s already has the deployment %s (%s)", a.Worker.UID, d.UID, d.Name)
		}
	}
	return nil
}

// FullWeight is the sum of a distribution in basis points.
const FullWeight = 10000

// Distribution is the part of rule 2 that a spec shows by itself: no version twice, weights sum to exactly 10000.
func Distribution(weights []Weight) *Verdict {
	sum := 0
	for i, w := range weights {
		for _, earlier := range weights[:i] {
			if earlier.Version == w.Version {
				return Refuse(InvalidArgument, "WA-2.1", "/versions", []string{w.Version}, "version %s is weighted twice", w.Version)
			}
		}
		sum += w.Weight
	}
	if sum != FullWeight {
		return Refuse(InvalidArgument, "WA-2.2", "/versions", nil, "weights sum to %d, not 10000", sum)
	}
	return nil
}

// Integrity is the rest of rule 2: every version belongs to the worker, is not being deleted and is ready. Each
// condition is judged over all versions before the next.
func Integrity(a *Aggregate, weights []Weight) *Verdict {
	for _, w := range weights {
		if v := a.Version(w.Version); v.Owner != a.Worker.UID {
			return Refuse(InvalidArgument, "WA-2.3", "/versions", []string{w.Version, a.Worker.UID},
				"version %s does not belong to worker %s", w.Version, a.Worker.UID)
		}
	}
	for _, w := range weights {
		if v := a.Version(w.Version); v.Deleting {
			return Refuse(InvalidArgument, "WA-2.4", "/versions", []string{w.Version}, "version %s is being deleted", w.Version)
		}
	}
	for _, w := range weights {
		if v := a.Version(w.Version); !v.Ready {
			return Refuse(InvalidArgument, "WA-2.5", "/versions", []string{w.Version}, "version %s is not ready", w.Version)
		}
	}
	return nil
}

// Dependents is rule 4: the distribution may not take away what a live dependent needs (WA-4.1) or the class of a live
// namespace or workflow (WA-4.2, judged first).
func Dependents(a *Aggregate, weights []Weight) *Verdict {
	for i := range a.Classes {
		c := &a.Classes[i]
		for _, w := range weights {
			if v := a.Version(w.Version); !hasClass(&v, c.ClassName) {
				return Refuse(UnsupportedCapability, "WA-4.2", "/versions", []string{c.UID, w.Version},
					"%s %s needs class %s, which version %s does not provide", c.Kind, c.UID, c.ClassName, w.Version)
			}
		}
	}
	for _, d := range a.dependents() {
		for _, w := range weights {
			if v := a.Version(w.Version); !v.Meets(d.need) {
				return Refuse(UnsupportedCapability, "WA-4.1", "/versions", []string{d.UID, w.Version},
					"%s %s needs %s, which version %s does not serve", d.Kind, d.UID, d.need.Handler(), w.Version)
			}
		}
	}
	return nil
}

func hasClass(v *Facts, name string) bool {
	for _, c := range v.Classes {
		if c == name {
			return true
		}
	}
	return false
}

// The attachments that block the deletion of a deployment, by their row in rule 3, in the order in which they are reported.
var deleteOrder = []struct{ rule, gate string }{
	{"WA-5.1", "WA-3.1"}, {"WA-5.2", "WA-3.2"}, {"WA-5.3", "WA-3.3"}, {"WA-5.4", "WA-3.4"},
}

// DeleteDeployment is rule 5: a deployment stays while anything relies on it. The lowest UID of the first failing kind
// is named.
func DeleteDeployment(a *Aggregate) *Verdict {
	for _, kind := range deleteOrder {
		for i := range a.Attachments {
			if d := &a.Attachments[i]; d.Gate == kind.gate {
				return Refuse(DependencyInUse, kind.rule, "", []string{d.UID, a.Worker.UID},
					"%s %s (%s) relies on the deployment of worker %s", d.Kind, d.UID, d.Name, a.Worker.UID)
			}
		}
	}
	for i := range a.Inbound {
		d := &a.Inbound[i]
		return Refuse(DependencyInUse, "WA-5.5", "", []string{d.UID, a.Worker.UID},
			"%s %s (%s) of another worker binds worker %s", d.Kind, d.UID, d.Name, a.Worker.UID)
	}
	return nil
}
