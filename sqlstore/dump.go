package sqlstore

import (
	"bufio"
	"context"
	"encoding/hex"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"
	"time"

	"edged/internal/fault"
	"edged/sqlstore/codec"
	"edged/sqlstore/engine"
)

// Dump writes the database as it is now as SQL text: tables, rows, the ledger, then indexes, triggers and views. Load reads it
// into an empty database, and so does any SQLite shell. Values keep their storage class and their bits.
func (d *Database) Dump(ctx context.Context, w io.Writer) error {
	return d.reading(ctx, opBackup, func(ctx context.Context, c *engine.Conn) error {
		out := bufio.NewWriter(w)
		if err := c.Snapshot(ctx, func() error { return dump(ctx, c, out) }); err != nil {
			return err
		}
		return out.Flush()
	})
}

type dumped struct{ kind, name, sql string }

func dump(ctx context.Context, c *engine.Conn, out *bufio.Writer) error {
	var all []dumped
	sequences := false
	err := c.Scan(ctx, engine.Host, "SELECT type, name, sql FROM sqlite_schema ORDER BY rowid", nil, func(row []codec.Value) error {
		name := row[1].Bytes()
		sequences = sequences || name == "sqlite_sequence"
		if row[2].Kind() == codec.KindText && !strings.HasPrefix(name, "sqlite_") {
			all = append(all, dumped{row[0].Bytes(), name, row[2].Bytes()})
		}
		return nil
	})
	if err != nil {
		return err
	}
	fmt.Fprint(out, "PRAGMA foreign_keys=OFF;\nBEGIN TRANSACTION;\n")
	for _, t := range all {
		if t.kind == "table" {
			if err := dumpTable(ctx, c, out, t); err != nil {
				return err
			}
		}
	}
	if sequences {
		fmt.Fprint(out, "DELETE FROM sqlite_sequence;\n")
		if err := dumpRows(ctx, c, out, "sqlite_sequence"); err != nil {
			return err
		}
	}
	for _, t := range all {
		if t.kind != "table" {
			fmt.Fprintf(out, "%s;\n", t.sql)
		}
	}
	_, err = fmt.Fprint(out, "COMMIT;\n")
	return err
}

func dumpTable(ctx context.Context, c *engine.Conn, out *bufio.Writer, t dumped) error {
	fmt.Fprintf(out, "%s;\n", t.sql)
	return dumpRows(ctx, c, out, t.name)
}

// dumpRows writes the stored columns of a table; generated ones make themselves.
func dumpRows(ctx context.Context, c *engine.Conn, out *bufio.Writer, table string) error {
	var columns []string
	err := c.Scan(ctx, engine.Host, "SELECT name FROM pragma_table_xinfo(?1) WHERE hidden=0", []codec.Value{codec.Text(table)}, func(row []codec.Value) error {
		columns = append(columns, quoteName(row[0].Bytes()))
		return nil
	})
	if err != nil {
		return err
	}
	list := strings.Join(columns, ",")
	head := "INSERT INTO " + quoteName(table) + "(" + list + ") VALUES("
	return c.Scan(ctx, engine.Host, "SELECT "+list+" FROM "+quoteName(table), nil, func(row []codec.Value) error {
		out.WriteString(head)
		for i, v := range row {
			if i > 0 {
				out.WriteByte(',')
			}
			out.WriteString(literal(v))
		}
		_, err := out.WriteString(");\n")
		return err
	})
}

func quoteName(s string) string { return `"` + strings.ReplaceAll(s, `"`, `""`) + `"` }

// literal writes a value so that SQLite reads back its class and bits.
func literal(v codec.Value) string {
	switch v.Kind() {
	case codec.KindInteger:
		if v.Int64() == math.MinInt64 {
			return "(-9223372036854775807-1)"
		}
		return strconv.FormatInt(v.Int64(), 10)
	case codec.KindReal:
		f := v.Float64()
		switch {
		case math.IsInf(f, 1):
			return "9e999"
		case math.IsInf(f, -1):
			return "-9e999"
		}
		s := strconv.FormatFloat(f, 'e', -1, 64)
		if !strings.Contains(s, ".") {
			s = strings.Replace(s, "e", ".0e", 1)
		}
		return s
	case codec.KindText:
		if strings.IndexByte(v.Bytes(), 0) >= 0 {
			return "CAST(X'" + hex.EncodeToString([]byte(v.Bytes())) + "' AS TEXT)"
		}
		return "'" + strings.ReplaceAll(v.Bytes(), "'", "''") + "'"
	case codec.KindBlob:
		return "X'" + hex.EncodeToString([]byte(v.Bytes())) + "'"
	}
	return "NULL"
}

// MaxLoadBytes is the largest SQL text that Load reads.
const MaxLoadBytes = 256 << 20

// Load runs SQL text, such as a dump, in a new database and puts that in the place of this one, with a ledger: the text's, or
// an empty one. What migrations may not do is refused; transaction control and PRAGMA foreign_keys are passed over. Either
// all of the text takes effect or none. Restore tells how calls are kept out.
func (d *Database) Load(ctx context.Context, r io.Reader) (err error) {
	const op = "sqlstore.Load"
	s := d.store
	defer func(start time.Time) { s.count(opLoad, start, err) }(time.Now())
	text, err := io.ReadAll(io.LimitReader(contextReader{ctx, r}, MaxLoadBytes+1))
	if err != nil {
		return fault.Wrap(fault.CodeOf(err), op, err)
	}
	if len(text) > MaxLoadBytes {
		return fault.Newf(fault.TooLarge, op, "the SQL text is over %d bytes; restore a backup instead", MaxLoadBytes)
	}
	return s.replace(ctx, d.uid, d.epoch, func(temp string) error {
		c, err := s.openNew(temp)
		if err != nil {
			return err
		}
		err = c.Transact(ctx, func() error {
			if err := c.Script(ctx, engine.Load, string(text)); err != nil {
				return err
			}
			return finishLedger(ctx, c)
		})
		if cerr := c.Close(); err == nil {
			err = cerr
		}
		return err
	})
}
