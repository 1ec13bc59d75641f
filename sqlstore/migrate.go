package sqlstore

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"time"
	"unicode/utf8"

	"edged/internal/fault"
	"edged/internal/faultpoint"
	"edged/sqlstore/codec"
	"edged/sqlstore/engine"
)

// A MigrationFile is one file of a migration set, in manifest order (sql §7). Open gives its bytes and may be called several
// times; an error of Open is told as it is.
type MigrationFile struct {
	Path   string
	SHA256 string // 64 lower-case hex digits
	Open   func() (io.ReadCloser, error)
}

const (
	migrateMemory = 256 << 20        // of the connection of a migration or a load
	migrateTime   = 10 * time.Minute // of one migration file
)

// MaxMigrationFiles is the number of files a set may have (sql §7).
const MaxMigrationFiles = 512

// Effect says what a failed application left behind.
type Effect string

// The effects of sql §8.2.
const (
	EffectNone    Effect = "none"    // nothing of this attempt was applied
	EffectPartial Effect = "partial" // the files marked applied were, and the next attempt goes on after them
	EffectUnknown Effect = "unknown" // whether the last file was applied cannot be told now; Ledger will tell
)

// Outcome is what became of one file of a target.
type Outcome string

// The outcomes.
const (
	OutcomeBefore  Outcome = "applied_before" // it was in the ledger already
	OutcomeApplied Outcome = "applied"        // this attempt applied it
	OutcomeFailed  Outcome = "failed"         // it was rolled back, with its ledger entry
	OutcomeNotRun  Outcome = "not_run"        // an earlier file failed, or nothing was to run
	OutcomeUnknown Outcome = "unknown"        // its commit ended without an answer
)

// Applied is the result of one attempt, also of one that failed.
type Applied struct {
	Ledger []Entry   // after the attempt; with EffectUnknown before its last file
	Files  []Outcome // one per file of the target, in order
	Effect Effect    // of a failed attempt
}

// Apply brings the database to the state of files (sql §8.1). The ledger must be an exact prefix of files; then only the rest
// runs, file by file, each in one transaction with its ledger entry, under a lock that keeps other applications out. The
// prefix is checked again inside each of these transactions. After a failure the files before the failed one stay, and the
// next Apply goes on there. Reads go on meanwhile; other writers take turns between the files.
//
// Errors: ErrHistory (nothing ran), ErrMigration, ErrDatabaseBusy, codec.ErrBackend; fault.Invalid without a name when a
// file is not what its digest says, not UTF-8, or over 16 MiB, which is found before anything runs; fault.Canceled.
func (d *Database) Apply(ctx context.Context, files []MigrationFile) (a Applied, err error) {
	s, start := d.store, time.Now()
	defer func() { s.count(opMigrate, start, err) }()
	a = Applied{Files: make([]Outcome, len(files)), Effect: EffectNone}
	for i := range a.Files {
		a.Files[i] = OutcomeNotRun
	}
	if len(files) == 0 || len(files) > MaxMigrationFiles {
		return a, fault.Newf(fault.Invalid, "sqlstore.Apply", "a migration set of %d files, allowed are 1 to %d", len(files), MaxMigrationFiles)
	}
	db, err := d.use(ctx)
	if err != nil {
		return a, err
	}
	defer s.release(db)
	if err := take(ctx, db.migrate.Acquire, 1, s.opt.MigrateWait, ErrDatabaseBusy); err != nil {
		return a, err
	}
	defer db.migrate.Release(1)
	if a.Ledger, err = s.readLedger(ctx, db); err != nil {
		return a, err
	}
	if err := checkPrefix(a.Ledger, files); err != nil {
		return a, err
	}
	done := len(a.Ledger)
	for i := range done {
		a.Files[i] = OutcomeBefore
	}
	for _, f := range files[done:] { // a bad file further on must not be found half-way
		if _, err := f.read(); err != nil {
			return a, err
		}
	}
	for i, f := range files[done:] {
		if err := s.applyNext(ctx, db, &a, files, done+i, f); err != nil {
			return a, err
		}
	}
	return a, nil
}

// applyNext applies file n of the target and writes what became of it into a.
func (s *Store) applyNext(ctx context.Context, db *database, a *Applied, files []MigrationFile, n int, f MigrationFile) error {
	err := s.applyFile(ctx, db, files, n, f)
	if err == nil {
		a.Files[n] = OutcomeApplied
		a.Effect = EffectPartial // of a failure that is yet to come
		a.Ledger = append(a.Ledger, Entry{f.Path, f.SHA256})
		faultpoint.Hit("sqlstore.migrated")
		return nil
	}
	a.Files[n] = OutcomeFailed
	if fault.NamedOf(err) != codec.ErrBackend && fault.CodeOf(err) != fault.Internal {
		return err
	}
	// The disk or the engine failed, perhaps during the commit: the ledger knows.
	ledger, lerr := s.readLedger(context.WithoutCancel(ctx), db)
	switch {
	case lerr != nil || checkPrefix(ledger, files) != nil:
		a.Files[n], a.Effect = OutcomeUnknown, EffectUnknown
	case len(ledger) > n:
		a.Files[n], a.Effect, a.Ledger = OutcomeApplied, EffectPartial, ledger
	}
	return err
}

// applyFile runs one file and its ledger entry in one transaction, on a connection of its own: whatever temporary a file
// makes ends with it.
func (s *Store) applyFile(ctx context.Context, db *database, files []MigrationFile, n int, f MigrationFile) error {
	const op = "sqlstore.Apply"
	text, err := f.read()
	if err != nil {
		return err
	}
	if err := s.opt.Space.Check(); err != nil {
		return codec.ErrBackend.Wrap(op, err)
	}
	if err := take(ctx, db.write.Acquire, 1, s.opt.MigrateWait, ErrDatabaseBusy); err != nil {
		return err
	}
	defer db.write.Release(1)
	if err := s.mark(db); err != nil {
		return err
	}
	c, err := s.connectScripts(db.dir)
	if err != nil {
		return err
	}
	defer s.schemaChanged(db)
	run := limited{ctx, time.Now().Add(migrateTime)}
	err = c.Transact(run, func() error {
		ledger, err := scanLedger(run, c)
		if err != nil {
			return err
		}
		if err := checkPrefix(ledger, files); err != nil {
			return err
		}
		if len(ledger) != n {
			return ErrHistory.Newf(op, "the ledger has %d entries, %d were there before", len(ledger), n)
		}
		if err := c.Script(run, engine.Migrate, text); err != nil {
			return err
		}
		if err := c.CheckForeignKeys(run); err != nil {
			return err
		}
		return appendLedger(run, c, n, Entry{f.Path, f.SHA256})
	})
	told := err
	if err == nil && c.Pages() >= checkpointPages {
		s.opt.Metrics.checkpoints.Inc()
		told = c.Checkpoint() // the file is applied, whatever becomes of the log
	}
	if !s.failed(db, c, told) {
		s.closeQuietly(db, c)
	}
	return migrationError(op, f.Path, err)
}

// migrationError gives a failure the name it has for an application of migrations.
func migrationError(op, path string, err error) error {
	switch fault.NamedOf(err) {
	case codec.ErrSQL, codec.ErrRange:
		return ErrMigration.Newf(op, "%s: %s", path, fault.Detail(err))
	case codec.ErrBusy:
		return ErrDatabaseBusy.Wrap(op, err)
	}
	return err
}

func (s *Store) connectScripts(dir string) (*engine.Conn, error) {
	return engine.Open(engine.Options{Path: mainPath(dir), Scripts: true, MaxMemory: migrateMemory, MaxBytes: s.opt.MaxBytes})
}

// schemaChanged makes the writing connection compile its statements anew: what is known about a table's rowids may be wrong
// now. The caller holds write.
func (s *Store) schemaChanged(db *database) {
	if db.writer == nil {
		return
	}
	db.moved = 0
	if err := db.writer.Forget(); err != nil && s.failed(db, db.writer, err) {
		db.writer = nil
	}
}

// read returns the file's text when it is what the digest says.
func (f *MigrationFile) read() (string, error) {
	const op = "sqlstore.Apply"
	r, err := f.Open()
	if err != nil {
		return "", err
	}
	defer r.Close()
	b, err := io.ReadAll(io.LimitReader(r, engine.MaxScriptBytes+1))
	switch {
	case err != nil:
		return "", codec.ErrBackend.Wrap(op, fmt.Errorf("read %s: %w", f.Path, err))
	case len(b) > engine.MaxScriptBytes:
		return "", fault.Newf(fault.Invalid, op, "%s is larger than %d bytes", f.Path, engine.MaxScriptBytes)
	case digest(string(b)) != f.SHA256:
		return "", fault.Newf(fault.Invalid, op, "%s does not have the digest %.64s", f.Path, f.SHA256)
	case !utf8.Valid(b) || len(b) >= 3 && string(b[:3]) == "\uFEFF":
		return "", fault.Newf(fault.Invalid, op, "%s is not UTF-8 without a byte order mark", f.Path)
	}
	return string(b), nil
}

func digest(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:])
}
