package node

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"time"

	"edged/control/form"
	"edged/control/operator"
	"edged/internal/fault"
	"edged/sqlstore"
	"edged/sqlstore/codec"
)

// maxStatement bounds the document of one statement: its text, and a hundred values of a megabyte in base64.
const maxStatement = 160 << 20

// sqlRoom is what operators do with databases.
func (n *Node) sqlRoom() operator.Room {
	route := func(name, method, path string, serve func(*operator.Call, *sqlstore.Database) error, query ...string) operator.Route {
		return operator.Route{Name: name, Method: method, Path: "databases/{uid}/" + path, Query: query,
			Serve: ofForm(form.SQLiteDatabaseURL, func(c *operator.Call) error { return serve(c, n.stores.sql.Database(c.Target.UID, homeEpoch)) })}
	}
	inspect, operate, load := route("inspect", "POST", "inspect", sqlInspect), route("operate", "POST", "operate", sqlOperate), route("import", "PUT", "dump", sqlLoad)
	inspect.Body, inspect.MaxBody = operator.JSONBody, maxStatement
	operate.Body, operate.MaxBody, operate.Changes = operator.JSONBody, maxStatement, true
	load.Body, load.MaxBody, load.Changes = operator.RawBody, sqlstore.MaxLoadBytes, true
	return operator.Room{Name: "sql", Routes: []operator.Route{
		inspect, operate, load,
		route("export", "GET", "dump", sqlDump),
		route("tables", "GET", "tables", sqlTables),
		route("schema", "GET", "schema", sqlSchema, "name"),
		route("check", "GET", "check", sqlCheck),
		{Name: "slow", Method: "GET", Path: "slow", Whole: true, Serve: n.sqlSlow},
		{Name: "backup", Method: "GET", Path: "backup", Whole: true, Changes: true, Serve: n.sqlBackup}, // changes nothing, but leaves a record
	}}
}

func sqlInspect(c *operator.Call, db *sqlstore.Database) error { return sqlRun(c, db.Inspect) }
func sqlOperate(c *operator.Call, db *sqlstore.Database) error { return sqlRun(c, db.Operate) }

// sqlRun runs one statement with tagged parameters; the answer has tagged values.
func sqlRun(c *operator.Call, run func(context.Context, codec.Statement) (codec.Result, error)) error {
	var in struct {
		SQL    string          `json:"sql"`
		Params json.RawMessage `json:"params"`
	}
	if err := c.Decode(&in); err != nil {
		return err
	}
	if in.Params == nil {
		in.Params = json.RawMessage("[]")
	}
	answer, err := one(c.Context(), in.SQL, in.Params, run)
	if err != nil {
		return err
	}
	return c.JSON(json.RawMessage(answer))
}

func sqlTables(c *operator.Call, db *sqlstore.Database) error {
	list, err := db.Tables(c.Context())
	if err != nil {
		return err
	}
	return c.JSON(map[string][]string{"tables": append([]string{}, list...)})
}

func sqlSchema(c *operator.Call, db *sqlstore.Database) error {
	list, err := db.Schema(c.Context(), c.Query.Get("name"))
	if err != nil {
		return err
	}
	return c.JSON(map[string][]string{"statements": append([]string{}, list...)})
}

func sqlDump(c *operator.Call, db *sqlstore.Database) error {
	return db.Dump(c.Context(), c.StreamLater("application/sql"))
}

func sqlLoad(c *operator.Call, db *sqlstore.Database) error {
	if err := db.Load(c.Context(), c.Body()); err != nil {
		return err
	}
	return c.JSON(struct{}{})
}

func sqlCheck(c *operator.Call, db *sqlstore.Database) error {
	r, err := db.Check(c.Context())
	if err != nil {
		return err
	}
	return c.JSON(map[string]int64{"bytes": r.Bytes, "migrations": int64(r.Entries), "milliseconds": r.Took.Milliseconds()})
}

// slowCall is a slow call as operators see it.
type slowCall struct {
	Database     string   `json:"database"`
	Op           string   `json:"op"`
	At           string   `json:"at"`
	Milliseconds int64    `json:"milliseconds"`
	SQL          []string `json:"sql"`
	Plan         []string `json:"plan"`
}

func (n *Node) sqlSlow(c *operator.Call) error {
	calls := []slowCall{}
	for _, s := range n.stores.sql.Slow() {
		calls = append(calls, slowCall{s.Database, s.Op, s.At.UTC().Format(time.RFC3339Nano), s.Took.Milliseconds(), s.SQL, s.Plan})
	}
	return c.JSON(map[string]any{"calls": calls})
}

// sqlBackup sends every database, each as it is when its turn comes. One that is deleted meanwhile is left out.
func (n *Node) sqlBackup(c *operator.Call) error {
	return n.sendBackup(c, "sql", func(dir string) error {
		if err := os.Mkdir(dir, 0o700); err != nil {
			return fault.Wrap(fault.Unavailable, "node.sql", err)
		}
		uids, err := n.stores.sql.List()
		if err != nil {
			return err
		}
		for _, uid := range uids {
			err := n.stores.sql.Database(uid, homeEpoch).Backup(c.Context(), filepath.Join(dir, uid+".db"))
			if there, eerr := n.stores.sql.Exists(uid); err != nil && (eerr != nil || there) {
				return err
			}
		}
		return nil
	})
}
