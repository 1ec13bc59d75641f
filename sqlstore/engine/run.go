package engine

import (
	"context"

	"github.com/ncruces/go-sqlite3"

	"edged/sqlstore/codec"
)

const opRun = "sqlstore.Run"

// From these on a statement's values and rows, or its sorting and grouping, may have taken megabytes. It took so long that
// another connection (about 1 ms) adds little.
const (
	largeBytes = 4 << 20
	largeSteps = 1_000_000 // of SQLite's virtual machine: some 50 ms
)

// run binds and runs a compiled statement to its end and returns its measured result. The statement is reset afterwards,
// whatever happened. ctx interrupts it.
func (c *Conn) run(ctx context.Context, mode Mode, st *compiled, params []codec.Value, meter *codec.Meter) (r codec.Result, err error) {
	if len(params) != st.params {
		return r, codec.ErrSQL.Newf(opRun, "the statement takes %d parameters, %d were given", st.params, len(params))
	}
	if st.grows && c.opt.Grow != nil {
		if err := c.opt.Grow(); err != nil {
			return r, codec.ErrBackend.Wrap(opRun, err)
		}
	}
	c.mode = mode
	c.db.SetInterrupt(ctx)
	defer func() {
		if rerr := st.reset(len(params) > 0); err == nil {
			err = rerr
		}
	}()
	out := meter.Used()
	for i, p := range params {
		out -= len(p.Bytes())
		if err := bind(st.stmt, i+1, p); err != nil {
			return r, err
		}
	}
	before, total := c.db.LastInsertRowID(), c.db.TotalChanges()
	watched := st.rowid && st.upsert
	direct := false
	if watched {
		c.db.PreUpdateHook(func(u sqlite3.PreUpdateData) {
			direct = direct || u.Op == sqlite3.AUTH_INSERT && u.Depth() == 0
		})
		defer c.db.PreUpdateHook(nil)
	}
	err = c.rows(st, &r, meter)
	c.large = c.large || meter.Used()-out > largeBytes || st.stmt.Status(sqlite3.STMTSTATUS_VM_STEP, true) > largeSteps
	if err != nil {
		return r, err
	}
	if !st.readOnly && c.db.TotalChanges() != total { // after EXPLAIN it still has the count of an earlier statement
		r.RowsWritten = c.db.Changes()
	}
	if st.rowid && r.RowsWritten > 0 {
		// An insert that cannot update wrote nothing but inserted rows. Where it can, the rowid tells unless it is the one before.
		r.LastInsertRowID = c.db.LastInsertRowID()
		r.Inserted = !st.upsert || direct || r.LastInsertRowID != before
		if !r.Inserted {
			r.LastInsertRowID = 0
		}
	}
	return r, meter.End(&r)
}

// rows steps to the end. The names are read again when SQLite compiled the statement anew because the schema had changed.
func (c *Conn) rows(st *compiled, r *codec.Result, meter *codec.Meter) error {
	row := st.stmt.Step()
	if n := st.stmt.Status(sqlite3.STMTSTATUS_REPREPARE, false); n != st.prepared {
		st.prepared = n
		st.readNames()
	}
	r.Columns = st.names
	if err := meter.Columns(st.names); err != nil {
		return err
	}
	n := len(st.names)
	var slab []codec.Value
	for ; row; row = st.stmt.Step() {
		if len(slab) < n {
			slab = make([]codec.Value, n*min(max(len(r.Rows), 1), 256))
		}
		out := slab[:n:n]
		slab = slab[n:]
		for i := range out {
			v, err := column(st.stmt, i)
			if err != nil {
				return err
			}
			out[i] = v
		}
		if err := meter.Row(out); err != nil {
			return err
		}
		r.Rows = append(r.Rows, out)
	}
	return st.stmt.Err()
}

func (st *compiled) reset(bound bool) error {
	err := st.stmt.Reset()
	if bound {
		if cerr := st.stmt.ClearBindings(); err == nil {
			err = cerr
		}
	}
	return err
}

func bind(s *sqlite3.Stmt, i int, v codec.Value) error {
	switch v.Kind() {
	case codec.KindInteger:
		return s.BindInt64(i, v.Int64())
	case codec.KindReal:
		return s.BindFloat(i, v.Float64())
	case codec.KindText:
		return s.BindText(i, v.Bytes())
	case codec.KindBlob:
		return s.BindBlob(i, []byte(v.Bytes()))
	}
	return s.BindNull(i)
}

// column copies a value out of SQLite's memory. Its storage class is read first: reading it as another would convert it.
func column(s *sqlite3.Stmt, i int) (codec.Value, error) {
	switch s.ColumnType(i) {
	case sqlite3.INTEGER:
		return codec.Integer(s.ColumnInt64(i)), nil
	case sqlite3.FLOAT:
		return codec.Real(s.ColumnFloat(i)), nil
	case sqlite3.TEXT:
		v := codec.Text(string(s.ColumnRawText(i)))
		return v, s.Err()
	case sqlite3.BLOB:
		v := codec.Blob(s.ColumnRawBlob(i))
		return v, s.Err()
	}
	return codec.Null(), nil
}
