package rules

// Gate is rule 3: an attachment needs an active deployment (WA-3.5) whose every weighted version, active and pending,
// serves what it brings in. rule is the id of its own row, like "WA-3.1".
func Gate(a *Aggregate, rule string, need Need) *Verdict {
	active := a.Active()
	if active == nil {
		for i := range a.Deployments {
			if d := &a.Deployments[i]; d.Settling && !d.Deleting {
				return Refuse(ResourceBusy, "WA-3.5", "/worker", []string{a.Worker.UID, d.UID},
					"the deployment %s of worker %s has not settled yet", d.UID, a.Worker.UID)
			}
		}
		return Refuse(UnsupportedCapability, "WA-3.5", "/worker", []string{a.Worker.UID},
			"worker %s has no active deployment", a.Worker.UID)
	}
	if uid := unfit(a, active.Active, need); uid != "" {
		if len(active.Pending) > 0 && unfit(a, active.Pending, need) == "" {
			return Refuse(ResourceBusy, rule, "/worker", []string{a.Worker.UID, active.UID},
				"the verdict on worker %s depends on an unfinished change of deployment %s", a.Worker.UID, active.UID)
		}
		return Refuse(UnsupportedCapability, rule, "/worker", []string{a.Worker.UID, uid},
			"worker %s has version %s weighted without handler %s", a.Worker.UID, uid, need.Handler())
	}
	if uid := unfit(a, active.Pending, need); uid != "" {
		return Refuse(ResourceBusy, rule, "/worker", []string{a.Worker.UID, uid},
			"a pending change of worker %s weights version %s without handler %s", a.Worker.UID, uid, need.Handler())
	}
	return nil
}

// unfit returns the first weighted version that does not meet the need, "" if all do.
func unfit(a *Aggregate, weights []Weight, need Need) string {
	for _, w := range weights {
		if v := a.Version(w.Version); !v.Meets(need) {
			return w.Version
		}
	}
	return ""
}
