package sqlstore

import (
	"context"
	"os"
	"time"

	"edged/sqlstore/codec"
	"edged/sqlstore/engine"
)

// Inspect runs one reading statement for an operator: it may also read the schema's tables, the ledger and the PRAGMAs that
// only tell. The limits of sql §6 hold.
func (d *Database) Inspect(ctx context.Context, st codec.Statement) (codec.Result, error) {
	if err := st.Check(); err != nil {
		return codec.Result{}, err
	}
	return d.look(ctx, opShell, engine.Inspect, st)
}

// Operate runs one statement for an operator who may write rows. The schema changes through migrations only, and the ledger
// through nothing else.
func (d *Database) Operate(ctx context.Context, st codec.Statement) (codec.Result, error) {
	if err := st.Check(); err != nil {
		return codec.Result{}, err
	}
	one := [1]codec.Statement{st}
	results, err := d.change(ctx, opShell, engine.Operate, one[:], &codec.Meter{})
	if err != nil {
		return codec.Result{}, err
	}
	return results[0], nil
}

// Tables returns the names of the application's tables and views, sorted.
func (d *Database) Tables(ctx context.Context) ([]string, error) {
	return d.names(ctx, `SELECT name FROM sqlite_schema WHERE type IN ('table','view') AND name NOT LIKE 'sqlite\_%' ESCAPE '\' AND name<>'`+engine.Ledger+`' ORDER BY name`)
}

// Schema returns the statements that made the application's schema, in the order they were run; with a name only those of that
// table, view, index or trigger.
func (d *Database) Schema(ctx context.Context, name string) ([]string, error) {
	const all = `SELECT sql FROM sqlite_schema WHERE sql IS NOT NULL AND name NOT LIKE 'sqlite\_%' ESCAPE '\' AND tbl_name<>'` + engine.Ledger + `'`
	if name == "" {
		return d.names(ctx, all+` ORDER BY rowid`)
	}
	return d.names(ctx, all+` AND (name=?1 COLLATE NOCASE OR tbl_name=?1 COLLATE NOCASE) ORDER BY rowid`, codec.Text(name))
}

func (d *Database) names(ctx context.Context, sql string, params ...codec.Value) (out []string, err error) {
	err = d.reading(ctx, opShell, func(ctx context.Context, c *engine.Conn) error {
		return c.Scan(ctx, engine.Host, sql, params, func(row []codec.Value) error {
			out = append(out, row[0].Bytes())
			return nil
		})
	})
	return out, err
}

// A Report is what a check of a database found.
type Report struct {
	Bytes   int64 // of the database file and its log
	Entries int   // of the ledger
	Took    time.Duration
}

// Check reads the whole database, online, and returns codec.ErrBackend when SQLite finds anything wrong in it.
func (d *Database) Check(ctx context.Context) (r Report, err error) {
	start := time.Now()
	err = d.reading(ctx, opShell, func(ctx context.Context, c *engine.Conn) error {
		if err := c.Check(ctx, false); err != nil {
			return err
		}
		ledger, err := scanLedger(ctx, c)
		r.Entries = len(ledger)
		return err
	})
	dir, _ := d.store.folder(d.uid)
	for _, name := range []string{mainPath(dir), mainPath(dir) + "-wal"} {
		if info, serr := os.Stat(name); serr == nil {
			r.Bytes += info.Size()
		}
	}
	r.Took = time.Since(start)
	return r, err
}

// reading runs fn on a reading connection, without the time limit of calls: an operator's ctx decides.
func (d *Database) reading(ctx context.Context, o op, fn func(ctx context.Context, c *engine.Conn) error) (err error) {
	s, start := d.store, time.Now()
	defer func() { s.count(o, start, err) }()
	db, err := d.use(ctx)
	if err != nil {
		return err
	}
	defer s.release(db)
	c, err := s.reader(ctx, db)
	if err != nil {
		return err
	}
	err = fn(ctx, c)
	s.giveBack(db, c, err)
	return err
}
