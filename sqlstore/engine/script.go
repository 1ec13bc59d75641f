package engine

import (
	"context"
	"strings"

	"edged/internal/fault"
	"edged/sqlstore/codec"
)

// Transact runs fn in an immediate transaction and commits it, or rolls back when fn or the commit fails. fn uses Scan and
// Script of the same connection. An error of fn that has a name keeps it.
func (c *Conn) Transact(ctx context.Context, fn func() error) (err error) {
	const op = "sqlstore.Transact"
	if c.broken {
		return errBroken(op)
	}
	defer c.guard(op, &err)
	defer func() {
		if err != nil {
			err = c.translate(ctx, op, err)
			c.rollback()
		}
	}()
	if err := ctx.Err(); err != nil {
		return fault.Wrap(fault.CodeOf(err), op, err)
	}
	if err := c.control("BEGIN IMMEDIATE"); err != nil {
		return err
	}
	if err := fn(); err != nil {
		return err
	}
	if c.db.GetAutocommit() {
		return codec.ErrSQL.New(op, "a statement ended the transaction")
	}
	return c.control("COMMIT")
}

// firstWindow is how much of a script SQLite is shown at first. It copies what it is shown for every statement, so that
// showing it everything would cost the square of the script's length.
const firstWindow = 4096

// Script runs the statements of text one after the other; rows are discarded. Where a statement ends is what SQLite's parser
// says. Call it inside Transact. mode is Migrate or Load; Load passes over transaction control and
// PRAGMA foreign_keys, which dumps begin and end with.
func (c *Conn) Script(ctx context.Context, mode Mode, text string) (err error) {
	const op = "sqlstore.Script"
	if c.broken {
		return errBroken(op)
	}
	defer c.guard(op, &err)
	if i := strings.IndexByte(text, 0); i >= 0 {
		return codec.ErrSQL.Newf(op, "the script holds a NUL character at byte %d", i)
	}
	c.db.SetInterrupt(ctx)
	for rest := text; ; {
		used, err := c.scriptStatement(ctx, mode, rest)
		if err != nil {
			return c.translate(ctx, op, err)
		}
		if used == 0 {
			return nil
		}
		rest = rest[used:]
	}
}

// scriptStatement runs the first statement of rest and returns its length, 0 when rest holds none.
func (c *Conn) scriptStatement(ctx context.Context, mode Mode, rest string) (int, error) {
	for window := firstWindow; ; window *= 2 {
		if window >= 2*MaxScriptBytes {
			return 0, codec.ErrSQL.Newf("sqlstore.Script", "a statement is over %d bytes", MaxScriptBytes)
		}
		shown := rest[:min(window, len(rest))]
		c.mode, c.facts = mode, facts{}
		s, tail, err := c.db.Prepare(shown)
		if len(shown) < len(rest) && (err != nil || s == nil || tail == "") {
			// What was shown may end inside the statement. Only text left over proves that its semicolon was seen.
			s.Close()
			continue
		}
		if err != nil {
			return 0, c.refuse(err)
		}
		if s == nil {
			return 0, nil
		}
		defer s.Close()
		if skip := c.facts.transaction || c.facts.pragma != ""; !skip {
			for s.Step() {
			}
			if err := s.Err(); err != nil {
				return 0, err
			}
		}
		if c.db.GetAutocommit() {
			return 0, codec.ErrSQL.New("sqlstore.Script", "a statement ended the transaction")
		}
		return len(shown) - len(tail), nil
	}
}

// CheckForeignKeys returns an ErrSQL when a row refers to one that is not there. Scripts run without foreign keys, so that they
// can rebuild tables as SQLite's manual says; this before their commit makes up for it. It costs a look at every row of every
// table that has a foreign key.
func (c *Conn) CheckForeignKeys(ctx context.Context) error {
	return c.Scan(ctx, Host, "PRAGMA foreign_key_check", nil, func(row []codec.Value) error {
		return codec.ErrSQL.Newf("sqlstore.CheckForeignKeys", "a row of table %q refers to a row of %q that is not there", row[0].Bytes(), row[2].Bytes())
	})
}
