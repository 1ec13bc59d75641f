package selftest

import (
	"context"
	"slices"
	"strings"
	"time"

	"edged/cmd/edged/deploy"
	"edged/control/client"
	"edged/control/form"
	"edged/internal/fault"
)

// legal is the order in which Resources can go: what brings work in first, what others refer to last.
var legal = []string{form.QueueConsumerURL, form.CronTriggerURL, form.WorkerEndpointURL, form.CustomDomainURL, form.WorkerDeploymentURL, form.WorkerVersionURL,
	form.WorkerBundleURL, form.StaticAssetBundleURL, form.ModuleWorkerURL, form.MigrationURL, form.SQLiteMigrationsURL}

// Remove empties a selftest's Space, of a run that was killed. Invalid for a Space that no selftest made.
func Remove(ctx context.Context, c *client.Client, space string) (*Report, error) {
	if !strings.HasPrefix(space, Prefix) {
		return nil, fault.Newf(fault.Invalid, "selftest.Remove", "%q is no Space of a selftest: those begin with %s", space, Prefix)
	}
	report := &Report{Space: space, Checks: []Result{}, Left: []Left{}}
	remove(ctx, c, space, report)
	return report, nil
}

// removeRounds is how often what could not be removed is tried again.
const removeRounds = 5

// remove empties the Space and says in the report how far it came. A create that was interrupted may still come about: the Space counts
// as empty when it was so twice.
func remove(ctx context.Context, c *client.Client, space string, report *Report) {
	empty := 0
	for round := 0; round < removeRounds && empty < 2; round++ {
		list, err := inSpace(ctx, c, space)
		report.Left, report.Unlisted = []Left{}, ""
		if err != nil {
			report.Unlisted = err.Error()
		} else if len(list) == 0 {
			empty++
		}
		for _, res := range list {
			if err := removeOne(ctx, c, res); err != nil {
				report.Left = append(report.Left, Left{deploy.Kind(res.Form), res.Name, res.UID, err.Error()})
			} else {
				report.Removed++
			}
		}
		if pause(ctx, 200*time.Millisecond) != nil {
			return
		}
	}
}

// inSpace lists the Space in the order in which it can be emptied.
func inSpace(ctx context.Context, c *client.Client, space string) (list []*client.Resource, err error) {
	for r, err := range c.List(ctx, client.Filter{Space: space}) {
		if err != nil {
			return nil, err
		}
		list = append(list, r)
	}
	rank := func(r *client.Resource) int {
		if i := slices.Index(legal, r.Form); i >= 0 {
			return i
		}
		return len(legal) // data: nothing refers to it any more
	}
	slices.SortStableFunc(list, func(a, b *client.Resource) int { return rank(a) - rank(b) })
	return list, nil
}

// removeOne deletes a Resource and waits for its end; one that is gone already is fine.
func removeOne(ctx context.Context, c *client.Client, r *client.Resource) error {
	if r.Phase == "pending" || r.Phase == "deleting" { // what was interrupted goes on first
		op, err := c.Operation(ctx, r.LastOperation)
		if err == nil {
			_, _ = c.Wait(ctx, op) // however it ended: the Resource is asked next
		}
		fresh, err := c.Read(ctx, r.UID)
		if fault.CodeOf(err) == fault.NotFound {
			return nil
		} else if err != nil {
			return err
		}
		r = fresh
	}
	op, err := c.Delete(ctx, r.UID, r.Generation, client.NewKey())
	if err == nil {
		_, err = c.Wait(ctx, op)
	}
	if fault.CodeOf(err) == fault.NotFound {
		return nil
	}
	return err
}

// pause waits.
func pause(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-t.C:
		return nil
	}
}
