package engine

import (
	"context"

	"edged/sqlstore/codec"
)

// Scan runs one statement and passes each row to fn, without the limits of sql §6 and outside any cache. fn's row is valid
// until it returns. An error of fn ends the scan and is returned. Outside a transaction the statement is its own.
func (c *Conn) Scan(ctx context.Context, mode Mode, sql string, params []codec.Value, fn func(row []codec.Value) error) (err error) {
	const op = "sqlstore.Scan"
	if c.broken {
		return errBroken(op)
	}
	defer c.guard(op, &err)
	return c.translate(ctx, op, c.scan(ctx, mode, sql, params, fn))
}

func (c *Conn) scan(ctx context.Context, mode Mode, sql string, params []codec.Value, fn func(row []codec.Value) error) error {
	c.db.SetInterrupt(ctx)
	c.mode, c.facts = mode, facts{}
	s, tail, err := c.db.Prepare(sql)
	if err != nil {
		return c.refuse(err)
	}
	if s == nil {
		return codec.ErrSQL.New(opCompile, "the SQL text holds no statement")
	}
	defer s.Close()
	if err := c.onlySpace(tail); err != nil {
		return err
	}
	for i, p := range params {
		if err := bind(s, i+1, p); err != nil {
			return err
		}
	}
	row := make([]codec.Value, s.ColumnCount())
	for s.Step() {
		for i := range row {
			if row[i], err = column(s, i); err != nil {
				return err
			}
		}
		if err := fn(row); err != nil {
			return err
		}
	}
	return s.Err()
}

// scanOne runs a statement of the host and calls found when it has a row.
func (c *Conn) scanOne(sql string, params []codec.Value, found func()) error {
	ctx := c.db.GetInterrupt()
	return c.scan(ctx, Host, sql, params, func([]codec.Value) error {
		found()
		return nil
	})
}
