package control

import (
	"context"
	"io"
	"slices"

	"edged/control/artifact"
	"edged/control/form"
	"edged/control/rules"
	"edged/control/state"
	"edged/internal/fault"
)

// Migration asks for a database to be brought to the state of a migration set.
type Migration struct {
	Database string // UID, whose store Create has made
	Epoch    uint64 // of the node that is its home
	Files    []MigrationFile
}

// MigrationFile is one file of a set, in the set's order. Open gives its bytes and may be called several times; an error of it
// with the name artifact_invalid says that the bytes are not held.
type MigrationFile struct {
	Path, SHA256 string // SHA256 is 64 lower-case hex digits
	Open         func() (io.ReadCloser, error)
}

// Migrated is what became of one attempt, also of one that failed.
type Migrated struct {
	Ledger []form.Entry // what is applied after it, in order; nil only if that could not be read
	Effect state.Effect // of a failed attempt: none, partial, or unknown while the ledger alone can tell
}

// migrationSeeds are the names of failed attempts (sql §8.2).
var migrationSeeds = map[string]rules.Seed{
	"migration_history_conflict": rules.MigrationHistory,
	"migration_sql_error":        rules.MigrationSQL,
	"database_busy":              rules.DatabaseBusy,
	"artifact_invalid":           rules.ArtifactInvalid,
}

// migrate applies a migration set. The ledger in the database decides what runs, so that an attempt that a crash or a failing disk
// interrupted (again) is made once more; only then is it known what the Operation did.
func (c *Control) migrate(ctx context.Context, r *state.Resource, again bool) (*state.Command, error) {
	const where = "control.migrate"
	if !c.opt.has(form.Migrations) {
		return nil, fault.New(fault.Unavailable, where, "this node cannot apply migrations")
	}
	set := c.state.Resource(r.Parsed().MigrationSet)
	if set == nil || set.Index == nil {
		return nil, fault.Newf(fault.Unavailable, where, "the migration set %s is gone", r.Parsed().MigrationSet)
	}
	m := Migration{Database: r.Parsed().Database, Epoch: homeEpoch}
	for _, e := range set.Index.Entries() {
		m.Files = append(m.Files, migrationFile(ctx, r.Tenant, e.Path, e.SHA256, c.blob))
	}
	did, seed, err := c.migrateAt(ctx, m)
	if err == nil {
		return &state.Command{OK: true, Ledger: &form.Ledger{Entries: did.Ledger}}, nil
	}
	if ctx.Err() != nil || did.Effect == state.EffectUnknown || again && did.Ledger == nil {
		return nil, err
	}
	end := failed(seed, err)
	end.Effect = did.Effect
	if did.Ledger != nil {
		end.Ledger = &form.Ledger{Entries: did.Ledger}
		// Nothing else was applied since the ledger was last verified: what is more now is of an attempt before this one.
		if again && !slices.Equal(did.Ledger, c.state.Ledger(m.Database)) {
			end.Effect = state.EffectPartial
		}
	}
	c.opt.Log.Info("migrations failed", "resource", r.UID, "effect", string(end.Effect), "err", err)
	return end, nil
}

// migrationSeed names a failure whose effect is known. What has no name is this node's trouble, unless it speaks of a file.
func migrationSeed(err error) rules.Seed {
	if seed, ok := migrationSeeds[fault.NameOf(err)]; ok {
		return seed
	}
	if fault.NamedOf(err) == nil && fault.CodeOf(err) == fault.Invalid {
		return rules.ArtifactInvalid
	}
	return rules.BackendUnavailable
}

// migrationFile is a file whose bytes open gives.
func migrationFile(ctx context.Context, tenant, path, sha256 string, open func(context.Context, string, artifact.Digest) (*artifact.Blob, error)) MigrationFile {
	return MigrationFile{path, sha256, func() (io.ReadCloser, error) {
		digest, ok := artifact.ParseDigest(sha256)
		if !ok {
			return nil, fault.New(fault.Internal, "control.migrate", "")
		}
		blob, err := open(ctx, tenant, digest)
		if fault.CodeOf(err) == fault.NotFound {
			return nil, artifact.ErrInvalid.Newf("control.migrate", "the bytes of %s are not held any more", path)
		}
		if err != nil {
			return nil, err
		}
		return blob, nil
	}}
}
