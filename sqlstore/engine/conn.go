package engine

import (
	"context"
	"errors"
	"fmt"
	"math"
	"net/url"
	"strings"
	"time"

	"github.com/ncruces/go-sqlite3"

	"edged/internal/fault"
	"edged/sqlstore/codec"
)

// PageBytes is the size of a page of every database.
const PageBytes = 4096

// Options of one connection.
type Options struct {
	Path      string       // absolute path of the database file, required
	Create    bool         // make the file if it is missing
	Reader    bool         // for Read and Inspect only; SQLite itself refuses to write
	Scripts   bool         // for Migrate and Load: statement texts up to MaxScriptBytes; foreign keys are for CheckForeignKeys
	MaxMemory int64        // bytes SQLite may use for this connection, 0 means 64 MiB
	MaxBytes  int64        // size over which the database does not grow, 0 means 1 GiB
	Grow      func() error // asked before a statement that may make the database larger; nil allows

	vfs string // a file system of SQLite that tests registered
}

// MaxScriptBytes is the largest migration file (sql §7).
const MaxScriptBytes = 16 << 20

// lockWait is how long a statement waits for a lock of another connection.
const lockWait = time.Second

// A Conn is one connection to one database. Not safe for concurrent use.
type Conn struct {
	db      *sqlite3.Conn
	opt     Options
	mode    Mode
	facts   facts
	modules map[string]bool // virtual tables known to this SQLite, lower case
	cache   cache
	pages   int // frames of the write-ahead log after the last commit
	broken  bool
	large   bool
	begin   map[string]*sqlite3.Stmt // transaction control, by text
}

// Open opens a connection. The journal is a write-ahead log and every commit is on disk before it returns
// (synchronous=FULL). Errors are ErrBackend.
func Open(opt Options) (c *Conn, err error) {
	if opt.MaxMemory == 0 {
		opt.MaxMemory = 64 << 20
	}
	if opt.MaxBytes == 0 {
		opt.MaxBytes = 1 << 30
	}
	c = &Conn{opt: opt, begin: map[string]*sqlite3.Stmt{}}
	defer func() {
		if err != nil {
			c.Close()
			c, err = nil, codec.ErrBackend.Wrap("sqlstore.Open", err)
		}
	}()
	defer c.guard("sqlstore.Open", &err)
	mode := "rw"
	if opt.Create {
		mode = "rwc"
	}
	name := url.URL{Scheme: "file", Path: opt.Path, RawQuery: "mode=" + mode}
	if opt.vfs != "" {
		name.RawQuery += "&vfs=" + opt.vfs
	}
	c.db, err = sqlite3.OpenContext(sqlite3.WithMaxMemory(context.Background(), opt.MaxMemory), name.String())
	if err != nil {
		return c, err
	}
	return c, c.configure()
}

func (c *Conn) configure() error {
	settings := []string{
		fmt.Sprintf("PRAGMA page_size=%d", PageBytes),
		"PRAGMA temp_store=MEMORY", // no statement makes a file
		"PRAGMA mmap_size=0",
		"PRAGMA cache_size=-2000",
		"PRAGMA foreign_keys=" + map[bool]string{false: "ON", true: "OFF"}[c.opt.Scripts],
		"PRAGMA synchronous=FULL",
		fmt.Sprintf("PRAGMA journal_size_limit=%d", 4<<20),
		fmt.Sprintf("PRAGMA max_page_count=%d", min(c.opt.MaxBytes/PageBytes, math.MaxUint32-1)),
	}
	if c.opt.Create {
		settings = append(settings, "PRAGMA journal_mode=WAL")
	}
	if c.opt.Reader {
		settings = append(settings, "PRAGMA query_only=ON")
	}
	if err := c.db.BusyTimeout(lockWait); err != nil {
		return err
	}
	if err := c.db.Exec(strings.Join(settings, ";")); err != nil {
		return fmt.Errorf("configure: %w", err)
	}
	if err := c.fence(); err != nil {
		return err
	}
	if err := c.db.WALAutoCheckpoint(0); err != nil { // the room's root decides when
		return err
	}
	c.db.WALHook(func(_ *sqlite3.Conn, _ string, pages int) error {
		c.pages = pages
		return nil
	})
	return c.verify()
}

// fence sets SQLite's own defences and limits (sql §§5, 6).
func (c *Conn) fence() error {
	for op, on := range map[sqlite3.DBConfig]bool{
		sqlite3.DBCONFIG_DEFENSIVE: true, sqlite3.DBCONFIG_TRUSTED_SCHEMA: false,
		sqlite3.DBCONFIG_WRITABLE_SCHEMA: false, sqlite3.DBCONFIG_ENABLE_FTS3_TOKENIZER: false,
		sqlite3.DBCONFIG_DQS_DDL: false, sqlite3.DBCONFIG_DQS_DML: false,
	} {
		got, err := c.db.Config(op, on)
		if err != nil || got != on {
			return fmt.Errorf("configure %d: %t, %w", op, got, err)
		}
	}
	sqlBytes := codec.MaxSQLBytes
	if c.opt.Scripts {
		sqlBytes = MaxScriptBytes
	}
	for limit, n := range map[sqlite3.LimitCategory]int{
		sqlite3.LIMIT_SQL_LENGTH:          sqlBytes,
		sqlite3.LIMIT_LENGTH:              max(4<<20, sqlBytes), // of a value and of a stored row
		sqlite3.LIMIT_VARIABLE_NUMBER:     codec.MaxParams,
		sqlite3.LIMIT_ATTACHED:            0,
		sqlite3.LIMIT_EXPR_DEPTH:          1000,
		sqlite3.LIMIT_TRIGGER_DEPTH:       100,
		sqlite3.LIMIT_LIKE_PATTERN_LENGTH: 500, // matching takes time in the product of both lengths
		sqlite3.LIMIT_WORKER_THREADS:      0,
	} {
		c.db.Limit(limit, n)
		if got := c.db.Limit(limit, -1); got != n {
			return fmt.Errorf("limit %d is %d, not %d", limit, got, n)
		}
	}
	if err := c.replaceFunctions(); err != nil {
		return fmt.Errorf("replace functions: %w", err)
	}
	c.modules = map[string]bool{}
	err := c.scan(context.Background(), Host, "PRAGMA module_list", nil, func(row []codec.Value) error {
		c.modules[strings.ToLower(row[0].Bytes())] = true
		return nil
	})
	if err != nil || len(c.modules) == 0 {
		return fmt.Errorf("list virtual tables: %w", err)
	}
	return c.db.SetAuthorizer(c.authorize)
}

// verify reads back what durability and quota stand on: SQLite answers a setting it cannot take by keeping the old one.
func (c *Conn) verify() error {
	keys := codec.Integer(1)
	if c.opt.Scripts {
		keys = codec.Integer(0)
	}
	want := []codec.Value{codec.Text("wal"), codec.Integer(2), codec.Integer(PageBytes), codec.Text("UTF-8"), codec.Integer(2), keys}
	return c.scan(context.Background(), Host, `SELECT j.journal_mode, s.synchronous, p.page_size, e.encoding, t.temp_store, f.foreign_keys
		FROM pragma_journal_mode j, pragma_synchronous s, pragma_page_size p, pragma_encoding e, pragma_temp_store t, pragma_foreign_keys f`, nil,
		func(row []codec.Value) error {
			for i, v := range row {
				if v != want[i] {
					return fmt.Errorf("setting %d is %v %q, not as set", i, v.Int64(), v.Bytes())
				}
			}
			return nil
		})
}

// Close frees the connection. A transaction that is still open is rolled back. The last connection of a database moves its
// write-ahead log into it.
func (c *Conn) Close() (err error) {
	if c == nil || c.db == nil {
		return nil
	}
	defer c.guard("sqlstore.Close", &err)
	db := c.db
	c.db = nil
	c.broken = true
	db.SetInterrupt(context.Background())
	var open []*sqlite3.Stmt
	for s := range db.Stmts() {
		open = append(open, s)
	}
	for _, s := range open {
		s.Close() // its error is the last step's, which was told then
	}
	return fault.Wrap(fault.Unavailable, "sqlstore.Close", db.Close())
}

// Broken reports whether the connection must be closed and opened anew.
func (c *Conn) Broken() bool { return c.broken }

// Large reports whether the connection ran something that may have taken much memory. SQLite keeps what it took, up to
// Options.MaxMemory, until the connection is closed.
func (c *Conn) Large() bool { return c.large }

// Pages returns the frames that the write-ahead log held after the last commit of this connection.
func (c *Conn) Pages() int { return c.pages }

// Checkpoint moves what it can of the write-ahead log into the database without waiting for readers.
func (c *Conn) Checkpoint() (err error) {
	defer c.guard("sqlstore.Checkpoint", &err)
	_, _, err = c.db.WALCheckpoint("main", sqlite3.CHECKPOINT_PASSIVE)
	if errors.Is(err, sqlite3.BUSY) {
		return nil
	}
	return c.translate(context.Background(), "sqlstore.Checkpoint", err)
}

// control runs transaction control. It is kept compiled, and it runs whether or not the caller's context is done.
func (c *Conn) control(text string) error {
	c.mode = Host
	c.db.SetInterrupt(context.Background())
	s := c.begin[text]
	if s == nil {
		var err error
		if s, _, err = c.db.PrepareFlags(text, sqlite3.PREPARE_PERSISTENT); err != nil {
			return err
		}
		c.begin[text] = s
	}
	return s.Exec()
}

// rollback ends whatever transaction is open. SQLite may have ended it already (OR ROLLBACK, a full disk, an interrupt).
func (c *Conn) rollback() {
	if c.broken || c.db.GetAutocommit() {
		return
	}
	if err := c.control("ROLLBACK"); err != nil || !c.db.GetAutocommit() {
		c.broken = true
	}
}
