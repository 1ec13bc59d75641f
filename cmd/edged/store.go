package main

import (
	"context"
	"fmt"
	"net/url"
	"time"

	"github.com/spf13/cobra"

	"edged/cmd/edged/deploy"
	"edged/control/client"
)

// storeTarget is one data Resource as the command line names it.
type storeTarget struct {
	target
	form  string // its Form
	or    string // another Form that is as good; "" for none
	path  string // of the room's calls about one, like kv/namespaces
	space string
	byUID bool
}

func (t *storeTarget) storeFlags(cmd *cobra.Command) {
	t.flags(cmd.Flags())
	cmd.Flags().StringVar(&t.space, "space", "default", "Space of the "+deploy.Kind(t.form))
	cmd.Flags().BoolVar(&t.byUID, "uid", false, "the name is a UID")
}

// store is one data Resource at its node.
type store struct {
	c    *client.Client
	name string
	path string // of its calls
}

// with finds the Resource and hands it to use.
func (t *storeTarget) with(cmd *cobra.Command, name string, use func(context.Context, *store) error) error {
	c, err := t.connect(cmd)
	if err != nil {
		return err
	}
	defer c.Close()
	uid, err := t.resolve(cmd.Context(), c, name)
	if err != nil {
		return explain(err)
	}
	return explain(use(cmd.Context(), &store{c, name, t.path + "/" + url.PathEscape(uid)}))
}

// resolve returns the UID of a name.
func (t *storeTarget) resolve(ctx context.Context, c *client.Client, name string) (string, error) {
	if t.byUID {
		return name, nil
	}
	r, ok, err := c.Lookup(ctx, t.space, name)
	if err != nil {
		return "", err
	}
	if !ok || r.Form != t.form && r.Form != t.or {
		return "", fmt.Errorf("there is no %s %q in Space %q", deploy.Kind(t.form), name, t.space)
	}
	return r.UID, nil
}

// call is a call about this store.
func (s *store) call(method, path string, query url.Values, body any) client.Call {
	return client.Call{Method: method, Path: s.path + "/" + path, Query: query, Body: body}
}

// wholeSeconds reads a duration for a parameter that counts seconds; 0 stays "none".
func wholeSeconds(flag string, d time.Duration) (int64, error) {
	if d < 0 || d%time.Second != 0 {
		return 0, usagef("--%s: %v is not whole seconds", flag, d)
	}
	return int64(d / time.Second), nil
}
