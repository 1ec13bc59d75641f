package engine

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/ncruces/go-sqlite3"

	"edged/internal/fault"
	"edged/sqlstore/codec"
)

// ErrDamaged is wrapped by errors that say the file itself is not as SQLite left it.
var ErrDamaged = errors.New("the database file is damaged")

// translate gives an error of SQLite the name it has for an application (sql §2). ctx is what the statement ran under: a
// context that ended by its own limit is a statement that took too long, one that was cancelled is the caller's leaving.
// After a failure of the disk, of the file or of the program's own doing the connection is broken.
func (c *Conn) translate(ctx context.Context, op string, err error) error {
	var code sqlite3.ErrorCode
	if err == nil || fault.CodeOf(err) != fault.Internal || !errors.As(err, &code) {
		return err
	}
	switch code {
	case sqlite3.INTERRUPT:
		if cause := ctx.Err(); errors.Is(cause, context.Canceled) {
			return fault.Wrap(fault.Canceled, op, cause)
		}
		return codec.ErrSQL.New(op, "the statement took longer than it may")
	case sqlite3.BUSY, sqlite3.LOCKED:
		return codec.ErrBusy.Wrap(op, err)
	case sqlite3.CORRUPT, sqlite3.NOTADB:
		c.broken = true
		return codec.ErrBackend.Wrap(op, fmt.Errorf("%w: %w", ErrDamaged, err))
	case sqlite3.FULL:
		return codec.ErrBackend.Wrap(op, err)
	case sqlite3.IOERR, sqlite3.CANTOPEN, sqlite3.PROTOCOL, sqlite3.NOLFS, sqlite3.READONLY, sqlite3.PERM:
		c.broken = true
		return codec.ErrBackend.Wrap(op, err)
	case sqlite3.MISUSE, sqlite3.INTERNAL:
		c.broken = true
		return fault.Wrap(fault.Internal, op, err)
	}
	return codec.ErrSQL.New(op, strings.TrimPrefix(err.Error(), "sqlite3: "))
}

// guard turns a panic of the driver into an error and the connection into a broken one. The driver panics when the
// connection's memory is used up, which a statement can bring about; any other panic is a fault in SQLite or the driver, which
// stays inside the connection's own memory.
func (c *Conn) guard(op string, errp *error) {
	r := recover()
	if r == nil {
		return
	}
	c.broken = true
	// The driver's out-of-memory value has an unexported type: its text is all there is to know it by.
	if e, ok := r.(error); ok && e.Error() == "sqlite3: out of memory" {
		*errp = codec.ErrSQL.New(op, "the statement needs more memory than it may use")
		return
	}
	*errp = fault.Wrap(fault.Internal, op, fmt.Errorf("panic in the SQL engine: %v", r))
}
