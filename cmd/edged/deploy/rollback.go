package deploy

import (
	"context"

	"edged/control/client"
	"edged/internal/fault"
)

// rollbackRecords is how many of the deployment's audit records are looked at.
const rollbackRecords = 1000

// Rollback makes the distribution before the present one the present one again. What it was stands in the node's audit, which
// operators may read: the newest accepted mutation of the deployment that asked for another distribution and did not fail.
// So a second rollback undoes the first. The errors: NotFound if the audit knows of none before, Conflict if one of its
// versions is gone.
func (w *Worker) Rollback(ctx context.Context) (*Change, error) {
	const op = "deploy.Rollback"
	if w.deployment == nil {
		return nil, fault.Newf(fault.Conflict, op, "nothing of %s is deployed", w.Name)
	}
	records, err := w.c.Audit(ctx, client.AuditFilter{Target: w.deployment.UID, Outcome: "accepted"}, rollbackRecords)
	if err != nil {
		return nil, failed("read the audit of", w.deployment.Name, err)
	}
	present := deploymentOf(w.UID, active(w.deployment.Observed))
	for _, r := range records {
		var shares []Share
		for _, s := range r.Versions {
			shares = append(shares, Share(s))
		}
		if len(shares) == 0 || deploymentOf(w.UID, shares).equal(present) || w.came(ctx, r.Operation) != nil {
			continue
		}
		for _, s := range shares {
			if w.versions[s.Version] == nil {
				return nil, fault.Newf(fault.Conflict, op, "the distribution before, of %s, had the version %s, which is gone: choose with edged weights", r.At, s.Version)
			}
		}
		return w.move(ctx, shares)
	}
	return nil, fault.Newf(fault.NotFound, op, "the audit knows of no distribution of %s before the present one", w.Name)
}

// came returns why an accepted mutation did not take effect. One whose Operation is not kept any more did.
func (w *Worker) came(ctx context.Context, operation string) error {
	op, err := w.c.Operation(ctx, operation)
	if err == nil && op.Status != "succeeded" {
		return &client.OperationError{Operation: op}
	}
	return nil
}
