package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strings"
	"time"

	"edged/control/client"
)

// nodeFleet is some real nodes under one control plane, each a process of its own on loopback. The first one has founded it, and the voters
// come first.
type nodeFleet struct {
	cfg    config
	dir    string
	voters int
	nodes  []*nodeProcess
}

// withFleet runs a fleet in a temporary directory for as long as use takes.
func withFleet(ctx context.Context, cfg config, voters, edges int, use func(*nodeFleet) error) error {
	dir, err := os.MkdirTemp("", "edged-bench-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	f := &nodeFleet{cfg: cfg, dir: dir, voters: voters}
	for i := 0; err == nil && i < voters+edges; i++ {
		err = f.add(ctx, i < voters)
	}
	if err == nil {
		err = use(f)
	}
	if err != nil {
		for i, n := range f.nodes {
			err = fmt.Errorf("%w\nnode %d said last:\n%s", err, i, *n.said)
		}
	}
	for i, n := range f.nodes {
		if stopped := n.stop(); stopped != nil {
			err = errors.Join(err, fmt.Errorf("node %d at its end: %w\n%s", i, stopped, *n.said))
		}
	}
	return err
}

// add starts one more node and has it join.
func (f *nodeFleet) add(ctx context.Context, votes bool) error {
	var places [2]string
	for i := range places {
		ln, err := net.Listen("tcp", "127.0.0.1:0") // finds a free port
		if err != nil {
			return err
		}
		places[i] = ln.Addr().String()
		ln.Close()
	}
	role := "edge"
	if votes {
		role = "control,edge"
	}
	cfg, dir := f.cfg, filepath.Join(f.dir, fmt.Sprint(len(f.nodes)))
	flags := []string{"--role", role, "--peer", places[0], "--gossip", places[1], "--max-inflight", "1024", "--supervise=false"}
	if len(f.nodes) > 0 {
		first := f.nodes[0]
		var made struct{ Invite string }
		in := map[string]any{"seconds": 600, "edge": true, "control": votes}
		if err := first.client.Ask(ctx, client.Call{Method: "POST", Path: "fleet/invites", Body: in}, &made); err != nil {
			return fmt.Errorf("invite: %w", err)
		}
		flags = append(flags, "--join", first.peer, "--invite", made.Invite)
		cfg.token = filepath.Join(first.dir, "control.token")
		if err := compiled(first.dir, dir); err != nil {
			return err
		}
	}
	n, err := startNode(ctx, cfg, dir, flags...)
	if err != nil {
		return err
	}
	f.nodes = append(f.nodes, n)
	if !votes || len(f.nodes) == 1 {
		return nil
	}
	id, err := n.id()
	if err != nil {
		return err
	}
	path := "fleet/nodes/" + id + "/vote"
	if err := f.nodes[0].client.Ask(ctx, client.Call{Method: "POST", Path: path}, nil); err != nil {
		return fmt.Errorf("vote: %w", err)
	}
	return nil
}

// compiled gives a new node what the engine compiled for another, which is the same everywhere.
func compiled(from, to string) error {
	code := filepath.Join("sandbox", "code")
	from, to = filepath.Join(from, code), filepath.Join(to, code)
	if err := os.MkdirAll(filepath.Dir(to), 0o700); err != nil {
		return err
	}
	return filepath.WalkDir(from, func(path string, d fs.DirEntry, err error) error {
		at := to + strings.TrimPrefix(path, from)
		switch {
		case err != nil:
			return err
		case d.IsDir():
			return os.Mkdir(at, 0o700)
		}
		return os.Link(path, at)
	})
}

// everywhere waits until every node answers a GET of the path with 200.
func (f *nodeFleet) everywhere(ctx context.Context, host, path string) error {
	for i, n := range f.nodes {
		buf := make([]byte, 4096)
		err := soon(ctx, func() error {
			c, err := net.Dial("tcp", n.http)
			if err != nil {
				return err
			}
			defer c.Close()
			_, err = request(c, host, path, buf)
			return err
		})
		if err != nil {
			return fmt.Errorf("node %d does not serve %s: %w", i, path, err)
		}
	}
	return nil
}

// soon tries until it succeeds, for a minute at most.
func soon(ctx context.Context, try func() error) error {
	end := time.Now().Add(time.Minute)
	for {
		err := try()
		if err == nil || time.Now().After(end) {
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(20 * time.Millisecond):
		}
	}
}
