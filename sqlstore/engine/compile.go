package engine

import (
	"container/list"
	"strings"

	"github.com/ncruces/go-sqlite3"

	"edged/sqlstore/codec"
)

// A compiled statement and what is known about it.
type compiled struct {
	stmt     *sqlite3.Stmt
	readOnly bool
	params   int
	grows    bool // it inserts or updates
	rowid    bool // it inserts into a rowid table
	upsert   bool // an insert that may update instead
	names    []string
	prepared int // how often SQLite compiled it again by itself
}

type cacheKey struct {
	sql  string
	mode Mode
}

// cache keeps the statements used last. The zero value is empty.
type cache struct {
	byKey map[cacheKey]*list.Element
	order list.List // of *cached, the last used in front
	bytes int
}

type cached struct {
	key cacheKey
	st  *compiled
}

const (
	maxCached      = 64
	maxCachedBytes = 256 << 10 // of statement text
)

func (k *cache) get(key cacheKey) *compiled {
	e := k.byKey[key]
	if e == nil {
		return nil
	}
	k.order.MoveToFront(e)
	return e.Value.(*cached).st
}

func (k *cache) put(key cacheKey, st *compiled) {
	if k.byKey == nil {
		k.byKey = map[cacheKey]*list.Element{}
	}
	k.byKey[key] = k.order.PushFront(&cached{key, st})
	k.bytes += len(key.sql)
	for k.order.Len() > maxCached || k.bytes > maxCachedBytes && k.order.Len() > 1 {
		k.drop(k.order.Back())
	}
}

func (k *cache) drop(e *list.Element) {
	it := k.order.Remove(e).(*cached)
	delete(k.byKey, it.key)
	k.bytes -= len(it.key.sql)
	it.st.stmt.Close()
}

func (k *cache) clear() {
	for k.order.Len() > 0 {
		k.drop(k.order.Back())
	}
}

// Forget drops all compiled statements. Call it after the schema changed through another connection.
func (c *Conn) Forget() (err error) {
	defer c.guard("sqlstore.Forget", &err)
	c.cache.clear()
	return nil
}

const opCompile = "sqlstore.Compile"

// compile returns the one statement that sql holds, compiled for mode. It stays with the cache.
func (c *Conn) compile(sql string, mode Mode) (*compiled, error) {
	key := cacheKey{sql, mode}
	if st := c.cache.get(key); st != nil {
		return st, nil
	}
	if strings.IndexByte(sql, 0) >= 0 {
		return nil, codec.ErrSQL.New(opCompile, "the SQL text holds a NUL character")
	}
	c.mode, c.facts = mode, facts{}
	s, tail, err := c.db.PrepareFlags(sql, sqlite3.PREPARE_PERSISTENT)
	if err != nil {
		return nil, c.refuse(err)
	}
	if s == nil {
		return nil, codec.ErrSQL.New(opCompile, "the SQL text holds no statement")
	}
	f := c.facts
	if err := c.onlySpace(tail); err != nil {
		s.Close()
		return nil, err
	}
	st, err := c.describe(s, f)
	if err != nil {
		s.Close()
		return nil, err
	}
	c.cache.put(key, st)
	return st, nil
}

// onlySpace compiles what follows the statement: it may be space, comments and semicolons, which compile to nothing.
func (c *Conn) onlySpace(tail string) error {
	if strings.Trim(tail, " \t\r\n;") == "" {
		return nil
	}
	next, _, err := c.db.Prepare(tail)
	if next != nil {
		next.Close()
	}
	if next != nil || err != nil {
		return codec.ErrSQL.New(opCompile, "the SQL text holds more than one statement")
	}
	return nil
}

func (c *Conn) refuse(err error) error {
	if c.facts.denied {
		return codec.ErrSQL.New(opCompile, "the statement does something that is not allowed here: "+err.Error())
	}
	return err
}

// describe learns what the result will say about a statement. For an INSERT it asks whether the table has rowids
// (sql §3, lastInsertRowId); a view has none of its own.
func (c *Conn) describe(s *sqlite3.Stmt, f facts) (*compiled, error) {
	st := &compiled{stmt: s, readOnly: s.ReadOnly(), params: s.BindCount(), prepared: s.Status(sqlite3.STMTSTATUS_REPREPARE, false)}
	st.grows = !st.readOnly && (f.inserts != "" || f.updates)
	st.readNames()
	if f.inserts == "" || st.readOnly {
		return st, nil
	}
	st.upsert = f.updates
	mode := c.mode
	defer func() { c.mode = mode }()
	err := c.scanOne("SELECT 1 FROM pragma_table_list(?1) WHERE schema='main' AND type='table' AND NOT wr",
		[]codec.Value{codec.Text(f.inserts)}, func() { st.rowid = true })
	return st, err
}

func (st *compiled) readNames() {
	st.names = make([]string, st.stmt.ColumnCount())
	for i := range st.names {
		st.names[i] = st.stmt.ColumnName(i)
	}
}
