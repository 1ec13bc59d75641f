package control

import (
	"context"
	"errors"

	"edged/control/artifact"
	"edged/control/form"
	"edged/control/rules"
	"edged/control/state"
	"edged/internal/fault"
)

var artifactKinds = map[string]artifact.Kind{
	"WorkerBundle": artifact.Worker, "StaticAssetBundle": artifact.Assets, "SQLiteMigrationSet": artifact.Migrations,
}

// effect does what an Operation has to do outside the state and returns how it ended; an error means that it must be
// tried again. Every effect may be done any number of times; again says that it may have been done, wholly or partly.
func (c *Control) effect(ctx context.Context, op *state.Operation, again bool) (*state.Command, error) {
	r := c.state.Resource(op.Resource)
	if r == nil {
		return nil, fault.Newf(fault.Internal, "control.effect", "operation %s has no resource", op.ID)
	}
	switch {
	case r.Driver().ArtifactKind != "" && op.Action == form.Delete:
		if err := c.artifacts.Release(r.UID); err != nil {
			return nil, err
		}
		return &state.Command{OK: true}, nil
	case r.Driver().ArtifactKind != "":
		return c.acquire(ctx, r)
	case r.Driver().Store != "":
		return c.storeEffect(ctx, op, r)
	case r.Driver().Role == rules.Migration:
		return c.migrate(ctx, r, again)
	case r.Driver().Need == rules.NeedQueue && op.Action == form.Delete:
		return c.detach(ctx, r)
	case r.Driver().Role == rules.Deployment && op.Action == form.Delete:
		return c.retire(ctx, r)
	}
	return nil, fault.Newf(fault.Internal, "control.effect", "nothing is known to do for %s of a %s", op.Action, r.Driver().Kind)
}

func (c *Control) acquire(ctx context.Context, r *state.Resource) (*state.Command, error) {
	source := r.Parsed().Artifact
	digest, ok := artifact.ParseDigest(source.SHA256)
	if !ok {
		return nil, fault.New(fault.Internal, "control.acquire", "")
	}
	index, err := c.artifacts.Acquire(ctx, artifact.Request{
		Tenant: r.Tenant, UID: r.UID, URL: source.URL, Digest: digest, Kind: artifactKinds[r.Driver().ArtifactKind],
	})
	switch {
	case errors.Is(err, artifact.ErrInvalid):
		return failed(rules.ArtifactInvalid, err), nil
	case err != nil:
		return nil, err
	}
	digests := []artifact.Digest{digest}
	for _, f := range index.Files {
		d, ok := artifact.ParseDigest(f.SHA256)
		if !ok {
			return nil, fault.New(fault.Internal, "control.acquire", "")
		}
		digests = append(digests, d)
	}
	if err := c.spread(ctx, r.Tenant, digests); err != nil {
		return nil, err
	}
	out := &form.Index{SHA256: index.ManifestSHA256, Entrypoint: index.Entrypoint, Files: make([]form.File, 0, len(index.Files))}
	for _, f := range index.Files {
		out.Files = append(out.Files, form.File{Path: f.Path, SHA256: f.SHA256, MediaType: f.MediaType, Size: f.ByteSize})
	}
	return &state.Command{OK: true, Index: out}, nil
}

// retire ends a deployment: selection is closed first, by a plan without it, then every context of its worker must have
// ended, also of versions that an earlier switch dropped and that still drain (worker-deployment §4), on every member that serves.
func (c *Control) retire(ctx context.Context, r *state.Resource) (*state.Command, error) {
	in := runErrand{Index: c.machine.planned.Load(), Versions: c.state.Versions(r.Parsed().Worker)}
	return &state.Command{OK: true}, c.everywhere(ctx, "retire", in, c.hands.retire)
}

// detach ends a queue consumer: it gets no new batch, by a plan without it, then its running deliveries must have ended or be
// owed by the queue again (attachments §5).
func (c *Control) detach(ctx context.Context, r *state.Resource) (*state.Command, error) {
	in := runErrand{Index: c.machine.planned.Load(), Consumer: r.UID, Queue: r.Parsed().Consumer.Queue}
	return &state.Command{OK: true}, c.everywhere(ctx, "detach", in, c.hands.detach)
}
