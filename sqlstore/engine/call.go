package engine

import (
	"context"

	"edged/internal/fault"
	"edged/sqlstore/codec"
)

// Execute runs statements in one immediate transaction and returns one result each, or commits nothing. Every limit of sql
// §6 is checked on the complete result before the commit. mode is Write or Operate. meter must be fresh. A context that
// is done interrupts the statements, not the commit: once that has begun its outcome is told.
func (c *Conn) Execute(ctx context.Context, mode Mode, statements []codec.Statement, meter *codec.Meter) (results []codec.Result, err error) {
	const op = "sqlstore.Execute"
	if c.broken {
		return nil, errBroken(op)
	}
	defer c.guard(op, &err)
	defer func() {
		if err != nil {
			results, err = nil, c.translate(ctx, op, err)
			c.rollback()
		}
	}()
	if err := ctx.Err(); err != nil {
		return nil, fault.Wrap(fault.CodeOf(err), op, err)
	}
	if err := c.control("BEGIN IMMEDIATE"); err != nil {
		return nil, err
	}
	results = make([]codec.Result, len(statements))
	for i, s := range statements {
		st, err := c.compileFor(ctx, s.SQL, mode)
		if err != nil {
			return nil, err
		}
		if results[i], err = c.run(ctx, mode, st, s.Params, meter); err != nil {
			return nil, err
		}
		if c.db.GetAutocommit() {
			return nil, codec.ErrSQL.New(op, "the statement ended the transaction")
		}
	}
	return results, c.control("COMMIT")
}

// Query runs one reading statement in a transaction that is always rolled back. A statement that can write is refused
// before it runs, by what it was compiled to. mode is Read or Inspect.
func (c *Conn) Query(ctx context.Context, mode Mode, s codec.Statement, meter *codec.Meter) (r codec.Result, err error) {
	const op = "sqlstore.Query"
	if c.broken {
		return r, errBroken(op)
	}
	defer c.guard(op, &err)
	defer func() {
		err = c.translate(ctx, op, err)
		c.rollback()
	}()
	if err := ctx.Err(); err != nil {
		return r, fault.Wrap(fault.CodeOf(err), op, err)
	}
	if err := c.control("BEGIN"); err != nil {
		return r, err
	}
	st, err := c.compileFor(ctx, s.SQL, mode)
	if err != nil {
		return r, err
	}
	if !st.readOnly {
		return r, codec.ErrSQL.New(op, "a query may not write")
	}
	return c.run(ctx, mode, st, s.Params, meter)
}

func (c *Conn) compileFor(ctx context.Context, sql string, mode Mode) (*compiled, error) {
	c.db.SetInterrupt(ctx)
	return c.compile(sql, mode)
}

func errBroken(op string) error {
	return fault.New(fault.Internal, op, "the connection is broken")
}
