package rules

// ServiceTarget is rule 8: the worker that a service binding points at must be serving HTTP. binding is the binding's
// name and pointer the place of the reference.
func ServiceTarget(target *Aggregate, binding, pointer string) *Verdict {
	ready, cause := WorkerReady(target)
	if ready {
		return nil
	}
	if target.Active() == nil {
		for i := range target.Deployments {
			if d := &target.Deployments[i]; d.Settling && !d.Deleting {
				return Refuse(ResourceBusy, "WA-8.1", pointer, []string{target.Worker.UID, d.UID},
					"binding %s: the deployment %s of worker %s has not settled yet", binding, d.UID, target.Worker.UID)
			}
		}
	}
	return Refuse(UnsupportedCapability, "WA-8.1", pointer, []string{target.Worker.UID},
		"binding %s: worker %s is not serving HTTP: %s", binding, target.Worker.UID, cause.Text)
}
