package node

import (
	"encoding/json"
	"io"
	"time"

	"edged/control/form"
	"edged/control/operator"
	"edged/internal/fault"
	"edged/kv"
)

// kvRoom is what operators do with key-value namespaces.
func (n *Node) kvRoom() operator.Room {
	route := func(name, method, path string, serve func(*operator.Call, *kv.Namespace) error, query ...string) operator.Route {
		return operator.Route{Name: name, Method: method, Path: path, Query: query, Changes: method != "GET",
			Serve: ofForm(form.KVNamespaceURL, func(c *operator.Call) error { return serve(c, n.stores.kv.Namespace(c.Target.UID)) })}
	}
	put := route("put", "PUT", "namespaces/{uid}/value", kvPut, "key", "ttl", "metadata")
	put.Body, put.MaxBody = operator.RawBody, kv.MaxValueBytes
	return operator.Room{Name: "kv", Routes: []operator.Route{
		route("list", "GET", "namespaces/{uid}/keys", kvList, "prefix", "limit", "cursor"),
		route("get", "GET", "namespaces/{uid}/value", kvGet, "key"),
		route("entry", "GET", "namespaces/{uid}/entry", kvEntry, "key"),
		put,
		route("delete", "DELETE", "namespaces/{uid}/value", kvDelete, "key"),
		{Name: "lag", Method: "GET", Path: "lag", Whole: true, Serve: n.kvLag},
		{Name: "position", Method: "GET", Path: "position", Whole: true, Serve: n.kvPosition},
		{Name: "wait", Method: "GET", Path: "wait", Query: []string{"until"}, Whole: true, Serve: n.kvWait},
		{Name: "backup", Method: "GET", Path: "backup", Whole: true, Changes: true, Serve: n.kvBackup}, // changes nothing, but leaves a record
	}}
}

func kvList(c *operator.Call, ns *kv.Namespace) error {
	limit, err := c.Int("limit", kv.DefaultListLimit, 1, kv.MaxListLimit)
	if err != nil {
		return err
	}
	page, err := ns.List(c.Context(), kv.ListOptions{Prefix: c.Query.Get("prefix"), Limit: limit, Cursor: c.Query.Get("cursor")})
	if err != nil {
		return err
	}
	out := struct {
		Keys []string `json:"keys"`
		Next *string  `json:"nextCursor"`
	}{Keys: append([]string{}, page.Keys...)}
	if !page.Complete {
		out.Next = &page.Cursor
	}
	return c.JSON(out)
}

// kvOpen opens the value of the key that the query names.
func kvOpen(c *operator.Call, ns *kv.Namespace) (*kv.Stream, error) {
	st, ok, err := ns.Open(c.Context(), c.Query.Get("key"))
	if err == nil && !ok {
		err = fault.New(fault.NotFound, "node.kv", "the key has no value")
	}
	return st, err
}

// kvGet streams a value as it is.
func kvGet(c *operator.Call, ns *kv.Namespace) error {
	st, err := kvOpen(c, ns)
	if err != nil {
		return err
	}
	defer st.Close()
	_, err = io.Copy(c.Stream("application/octet-stream"), st)
	return err
}

// kvEntry says what is known of a key without its value.
func kvEntry(c *operator.Call, ns *kv.Namespace) error {
	st, err := kvOpen(c, ns)
	if err != nil {
		return err
	}
	defer st.Close()
	metadata := json.RawMessage("null")
	if st.Metadata != nil {
		metadata = st.Metadata
	}
	return c.JSON(struct {
		Key      string          `json:"key"`
		Size     int64           `json:"size"`
		Metadata json.RawMessage `json:"metadata"`
	}{c.Query.Get("key"), st.Size, metadata})
}

func kvPut(c *operator.Call, ns *kv.Namespace) error {
	ttl, err := c.Int("ttl", 0, 0, int(kv.MaxTTL/time.Second))
	if err != nil {
		return err
	}
	opt := kv.PutOptions{TTL: time.Duration(ttl) * time.Second}
	if text := c.Query.Get("metadata"); text != "" {
		if json.Unmarshal([]byte(text), &opt.Metadata) != nil || opt.Metadata == nil {
			return fault.New(fault.Invalid, "node.kv", "metadata must be a JSON object of strings")
		}
	}
	if err := ns.PutReader(c.Context(), c.Query.Get("key"), c.Body(), c.Length(), opt); err != nil {
		return err
	}
	return c.JSON(struct{}{})
}

func kvDelete(c *operator.Call, ns *kv.Namespace) error {
	if err := ns.Delete(c.Context(), c.Query.Get("key")); err != nil {
		return err
	}
	return c.JSON(struct{}{})
}

func (n *Node) kvBackup(c *operator.Call) error {
	return n.sendBackup(c, "kv", func(dir string) error { return n.stores.kv.Backup(dir) })
}
