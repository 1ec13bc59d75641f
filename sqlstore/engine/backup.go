package engine

import (
	"context"
	"fmt"
	"net/url"

	"edged/internal/fault"
	"edged/sqlstore/codec"
)

// backupPages are copied between two looks at the context.
const backupPages = 256

// Backup copies the database as of now into a new file at path, page by page, while others read and write. The copy is complete
// and on disk when Backup returns nil; else the caller removes it.
func (c *Conn) Backup(ctx context.Context, path string) (err error) {
	const op = "sqlstore.Backup"
	if c.broken {
		return errBroken(op)
	}
	defer c.guard(op, &err)
	// One snapshot, so that writers do not make the copy start again.
	return c.Snapshot(ctx, func() error { return c.copyTo(ctx, path) })
}

// Snapshot runs fn while the connection sees one state of the database. fn reads with Scan of the same connection.
func (c *Conn) Snapshot(ctx context.Context, fn func() error) (err error) {
	const op = "sqlstore.Snapshot"
	if c.broken {
		return errBroken(op)
	}
	defer c.guard(op, &err)
	defer func() {
		err = c.translate(ctx, op, err)
		c.rollback()
	}()
	if err := c.control("BEGIN"); err != nil {
		return err
	}
	if err := c.scan(ctx, Host, "SELECT 1 FROM sqlite_schema LIMIT 1", nil, func([]codec.Value) error { return nil }); err != nil {
		return err
	}
	return fn()
}

func (c *Conn) copyTo(ctx context.Context, path string) error {
	const op = "sqlstore.Backup"
	to := url.URL{Scheme: "file", Path: path}
	b, err := c.db.BackupInit("main", to.String())
	if err != nil {
		return err
	}
	for done := false; !done && err == nil; {
		if err = ctx.Err(); err != nil {
			err = fault.Wrap(fault.CodeOf(err), op, err)
			break
		}
		done, err = b.Step(backupPages)
	}
	if cerr := b.Close(); err == nil {
		err = cerr
	}
	return err
}

// Check reads the whole database and returns an error that wraps ErrDamaged when SQLite finds anything wrong in it. quick leaves
// out comparing indexes with their tables.
func (c *Conn) Check(ctx context.Context, quick bool) error {
	sql := "PRAGMA integrity_check(1)"
	if quick {
		sql = "PRAGMA quick_check(1)"
	}
	verdict := ""
	err := c.Scan(ctx, Host, sql, nil, func(row []codec.Value) error {
		verdict = row[0].Bytes()
		return nil
	})
	if err == nil && verdict != "ok" {
		err = codec.ErrBackend.Wrap("sqlstore.Check", fmt.Errorf("%w: %s", ErrDamaged, verdict))
	}
	return err
}
