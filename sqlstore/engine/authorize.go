package engine

import (
	"strings"

	"github.com/ncruces/go-sqlite3"
)

// Ledger is the table of applied migrations in every database. Application code cannot reach it.
const Ledger = "_edged_migrations"

// What the authorizer saw of one statement while it was compiled. Only what the statement itself does counts, not what
// triggers do.
type facts struct {
	inserts     string // the table of a direct INSERT
	updates     bool
	writes      bool
	transaction bool   // BEGIN, COMMIT and their like
	pragma      string // the name of a PRAGMA
	denied      bool
}

// telling are the PRAGMAs that an operator may use: without an argument that sets something they change nothing.
var telling = map[string]bool{
	"table_info": true, "table_xinfo": true, "table_list": true, "index_list": true, "index_info": true, "index_xinfo": true,
	"foreign_key_list": true, "foreign_key_check": true, "integrity_check": true, "quick_check": true,
	"page_count": true, "freelist_count": true, "page_size": true, "journal_mode": true, "synchronous": true,
	"max_page_count": true, "foreign_keys": true, "collation_list": true, "function_list": true, "compile_options": true,
}

// takesName are those of them whose argument names something and sets nothing.
var takesName = map[string]bool{
	"table_info": true, "table_xinfo": true, "index_list": true, "index_info": true, "index_xinfo": true,
	"foreign_key_list": true, "foreign_key_check": true, "integrity_check": true, "quick_check": true, "table_list": true,
}

// opened are the virtual tables that statements may read. They have no content of their own.
var opened = map[string]bool{"json_each": true, "json_tree": true, "jsonb_each": true, "jsonb_tree": true}

// foreign are prefixes of functions that the driver adds to SQLite's own. They are not part of what the contract calls
// SQLite, and some take time that grows with the square of their argument and cannot be interrupted.
var foreign = []string{"decimal", "regexp", "ieee754", "load_extension"}

func (c *Conn) authorize(action sqlite3.AuthorizerActionCode, arg3, arg4, _, inner string) sqlite3.AuthorizerReturnCode {
	if c.mode == Host {
		return sqlite3.AUTH_OK
	}
	c.learn(action, arg3, inner)
	if c.allow(action, arg3, arg4) {
		return sqlite3.AUTH_OK
	}
	if action == sqlite3.AUTH_ANALYZE && isLedger(arg3) {
		return sqlite3.AUTH_IGNORE // ANALYZE of everything passes over it
	}
	c.facts.denied = true
	return sqlite3.AUTH_DENY
}

func (c *Conn) learn(action sqlite3.AuthorizerActionCode, arg3, inner string) {
	f := &c.facts
	switch action {
	case sqlite3.AUTH_INSERT:
		f.writes = true
		if inner == "" {
			f.inserts = arg3
		}
	case sqlite3.AUTH_UPDATE:
		f.writes = true
		f.updates = f.updates || inner == ""
	case sqlite3.AUTH_DELETE:
		f.writes = true
	case sqlite3.AUTH_TRANSACTION, sqlite3.AUTH_SAVEPOINT:
		f.transaction = true
	case sqlite3.AUTH_PRAGMA:
		f.pragma = arg3
	}
}

// allow decides one access. It is called for every table, column and function a statement touches, also through views,
// triggers and foreign keys.
func (c *Conn) allow(action sqlite3.AuthorizerActionCode, arg3, arg4 string) bool {
	switch action {
	case sqlite3.AUTH_SELECT, sqlite3.AUTH_RECURSIVE:
		return true
	case sqlite3.AUTH_FUNCTION:
		return c.mayCall(arg4)
	case sqlite3.AUTH_READ:
		return c.mayRead(arg3)
	case sqlite3.AUTH_INSERT, sqlite3.AUTH_UPDATE, sqlite3.AUTH_DELETE:
		return c.mayChange(action, arg3)
	case sqlite3.AUTH_PRAGMA:
		return c.mayPragma(arg3, arg4)
	case sqlite3.AUTH_TRANSACTION:
		return c.mode == Load // compiled, never run
	case sqlite3.AUTH_SAVEPOINT, sqlite3.AUTH_ATTACH, sqlite3.AUTH_DETACH:
		return false
	}
	return (c.mode == Migrate || c.mode == Load) && c.mayDefine(action, arg3, arg4)
}

func (c *Conn) mayCall(function string) bool {
	for _, p := range foreign {
		if len(function) >= len(p) && strings.EqualFold(function[:len(p)], p) {
			return false
		}
	}
	return true
}

func (c *Conn) mayRead(table string) bool {
	switch c.mode {
	case Read, Write:
		return !isLedger(table) && !isSystem(table) && !c.isVirtual(table)
	case Migrate:
		return !isLedger(table) && !c.isVirtual(table)
	}
	return true
}

func (c *Conn) mayChange(action sqlite3.AuthorizerActionCode, table string) bool {
	switch c.mode {
	case Write, Operate:
		return !isLedger(table) && !isSystem(table) && !c.isVirtual(table)
	case Migrate:
		// The schema's own table is written by every schema statement; by hand SQLite refuses it (DEFENSIVE).
		return !isLedger(table) && !c.isVirtual(table)
	case Load:
		return !isLedger(table) || action == sqlite3.AUTH_INSERT
	}
	return false
}

func (c *Conn) mayPragma(name, arg string) bool {
	name = strings.ToLower(name)
	switch c.mode {
	case Inspect, Operate:
		return telling[name] && (arg == "" || takesName[name])
	case Load:
		return name == "foreign_keys" // compiled, never run; inside a transaction compiling it sets nothing
	}
	return false
}

// mayDefine decides a schema statement. Which of the two arguments names the table differs; neither may be the ledger or a
// name by which a built-in virtual table is known. A dump makes the ledger; whoever loads it
// checks what it made.
func (c *Conn) mayDefine(action sqlite3.AuthorizerActionCode, arg3, arg4 string) bool {
	if c.mode == Load && action == sqlite3.AUTH_CREATE_TABLE && isLedger(arg3) {
		return true
	}
	switch action {
	case sqlite3.AUTH_CREATE_INDEX, sqlite3.AUTH_CREATE_TABLE, sqlite3.AUTH_CREATE_TRIGGER, sqlite3.AUTH_CREATE_VIEW,
		sqlite3.AUTH_CREATE_TEMP_INDEX, sqlite3.AUTH_CREATE_TEMP_TABLE, sqlite3.AUTH_CREATE_TEMP_TRIGGER, sqlite3.AUTH_CREATE_TEMP_VIEW,
		sqlite3.AUTH_DROP_INDEX, sqlite3.AUTH_DROP_TABLE, sqlite3.AUTH_DROP_TRIGGER, sqlite3.AUTH_DROP_VIEW,
		sqlite3.AUTH_DROP_TEMP_INDEX, sqlite3.AUTH_DROP_TEMP_TABLE, sqlite3.AUTH_DROP_TEMP_TRIGGER, sqlite3.AUTH_DROP_TEMP_VIEW,
		sqlite3.AUTH_ALTER_TABLE, sqlite3.AUTH_REINDEX, sqlite3.AUTH_ANALYZE:
		return !isLedger(arg3) && !isLedger(arg4) && !c.isVirtual(arg3)
	}
	return false
}

func isLedger(table string) bool { return strings.EqualFold(table, Ledger) }

func isSystem(table string) bool { return hasPrefixFold(table, "sqlite_") }

func hasPrefixFold(s, prefix string) bool {
	return len(s) >= len(prefix) && strings.EqualFold(s[:len(prefix)], prefix)
}

// isVirtual reports whether the name belongs to a virtual table of this SQLite that is not on the short list. Names that
// begin with pragma_ run a PRAGMA.
func (c *Conn) isVirtual(table string) bool {
	if hasPrefixFold(table, "pragma_") {
		return true
	}
	name := strings.ToLower(table)
	return c.modules[name] && !opened[name]
}
