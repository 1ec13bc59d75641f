package sqlstore

import (
	"context"
	"regexp"
	"time"

	"edged/internal/fault"
	"edged/sqlstore/codec"
	"edged/sqlstore/engine"
)

// createLedger makes the table of applied migrations. Positions run from 0 without a gap.
const createLedger = `CREATE TABLE ` + engine.Ledger + `(position INTEGER PRIMARY KEY, path TEXT NOT NULL, sha256 TEXT NOT NULL) STRICT`

// An Entry is one applied migration file.
type Entry struct {
	Path   string
	SHA256 string // 64 lower-case hex digits
}

// Ledger returns the applied migrations in order (sql §8.1), at most 512. ErrHistory: it is not a ledger any more.
func (d *Database) Ledger(ctx context.Context) ([]Entry, error) {
	db, err := d.use(ctx)
	if err != nil {
		return nil, err
	}
	defer d.store.release(db)
	return d.store.readLedger(ctx, db)
}

// readLedger reads the ledger on a reading connection.
func (s *Store) readLedger(ctx context.Context, db *database) ([]Entry, error) {
	c, err := s.reader(ctx, db)
	if err != nil {
		return nil, err
	}
	ledger, err := scanLedger(limited{ctx, time.Now().Add(s.opt.MaxTime)}, c)
	s.giveBack(db, c, err)
	return ledger, err
}

var sha256Form = regexp.MustCompile(`^[0-9a-f]{64}$`)

func scanLedger(ctx context.Context, c *engine.Conn) ([]Entry, error) {
	out := []Entry{}
	err := c.Scan(ctx, engine.Host, "SELECT position, path, sha256 FROM main."+engine.Ledger+" ORDER BY position", nil, func(row []codec.Value) error {
		e := Entry{row[1].Bytes(), row[2].Bytes()}
		if row[0] != codec.Integer(int64(len(out))) || e.Path == "" || !sha256Form.MatchString(e.SHA256) || len(out) == MaxMigrationFiles {
			return ErrHistory.Newf("sqlstore.Ledger", "the ledger is damaged at entry %d", len(out))
		}
		out = append(out, e)
		return nil
	})
	if fault.NamedOf(err) == codec.ErrSQL && ctx.Err() == nil { // no such table or column
		return nil, ErrHistory.Wrap("sqlstore.Ledger", err)
	}
	return out, err
}

func appendLedger(ctx context.Context, c *engine.Conn, position int, e Entry) error {
	return c.Scan(ctx, engine.Host, "INSERT INTO main."+engine.Ledger+" VALUES(?1, ?2, ?3)",
		[]codec.Value{codec.Integer(int64(position)), codec.Text(e.Path), codec.Text(e.SHA256)}, func([]codec.Value) error { return nil })
}

// checkPrefix holds that the ledger is the beginning of the target: path, digest and order.
func checkPrefix(ledger []Entry, files []MigrationFile) error {
	const op = "sqlstore.Apply"
	if len(ledger) > len(files) {
		return ErrHistory.Newf(op, "%d migrations were applied, the set has %d", len(ledger), len(files))
	}
	for i, e := range ledger {
		if files[i].Path != e.Path || files[i].SHA256 != e.SHA256 {
			return ErrHistory.Newf(op, "migration %d was applied as %q with another path or content than %q", i+1, e.Path, files[i].Path)
		}
	}
	return nil
}
