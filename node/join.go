package node

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"edged/control"
	"edged/control/form"
	"edged/internal/disk"
	"edged/internal/fault"
	"edged/internal/fleetwire"
	"edged/internal/pki"
	"edged/node/peer"
)

// found makes the control state of this node that of a fleet, whose first member it is. The room runs for that alone: nobody can reach it
// yet.
func (n *Node) found(f *fleet) error {
	if !n.opt.hasRole("control") || !n.opt.hasRole("edge") {
		return fault.Newf(fault.Invalid, "node.fleet", "--role %s: a fleet begins with a node in both roles; join one with --join and --invite", n.opt.Role)
	}
	metrics := n.registry
	n.registry = prometheus.NewRegistry() // of rooms that are opened again
	defer func() { n.registry = metrics }()
	if err := n.openStores(); err != nil {
		return err
	}
	defer func() { _ = n.stores.close(); n.stores = stores{} }() // nothing was written
	opt, err := n.controlOptions()
	if err != nil {
		return err
	}
	opt.OnPlan, opt.Retire, opt.InUse, opt.Detach, opt.Inspect, opt.Metrics = nil, nil, nil, nil, nil, nil
	c, err := control.Open(opt)
	if err == nil && n.hadLogOfFleet() {
		n.log.Warn("the certificate of this member is gone; as the only voter of its fleet it gives itself another", "dir", f.dir)
	}
	if errors.Is(err, control.ErrShared) {
		return fault.Newf(fault.Conflict, "node.fleet", "the control log here is that of a fleet with other voters, and this member's certificate in %s is gone: %s", f.dir, anew(n.id))
	}
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), joinPatience)
	defer cancel()
	running, stop := context.WithCancel(ctx)
	ended := make(chan error, 1)
	go func() { ended <- c.Run(running) }()
	err = func() error {
		select {
		case <-c.Started():
		case err := <-ended:
			ended <- nil
			return err
		}
		key, csr, err := pki.NewRequest(n.id)
		if err != nil {
			return err
		}
		req := n.request()
		req.CSR = csr
		answer, err := c.FoundFleet(ctx, req)
		if err != nil {
			return err
		}
		if err := n.keep(f, answer, false); err != nil {
			return err
		}
		return peer.Found(f.dir, n.id, answer.CAPEM, answer.CertPEM, key)
	}()
	stop()
	<-ended
	return errors.Join(err, c.Close())
}

// request is what this node says of itself when it joins.
func (n *Node) request() fleetwire.JoinRequest {
	return fleetwire.JoinRequest{ID: n.id, Name: n.name(), Peer: addrOf(n.bound, "peer")}
}

// name is what people call this node: its host's name, and some of its ID, for no two members share one.
func (n *Node) name() string {
	host, _ := os.Hostname()
	return nodeName(host, n.id)
}

func nodeName(host, id string) string {
	id = strings.TrimPrefix(id, "n-")
	id = id[:min(len(id), 6)]
	host, _, _ = strings.Cut(host, ".")
	if host = host[:min(len(host), 50)]; !form.IsName(host) { // some hosts have none
		host = "node"
	}
	return host + "-" + id
}

// checkRoles refuses to start a member in other roles than the fleet knows it in: it would wait for a vote that it cannot get, or keep
// none of the log that it votes about.
func (n *Node) checkRoles(f *fleet) error {
	control, edge := true, true // a founder's
	for _, s := range f.seeds {
		if s.ID == n.id {
			control, edge = s.Control, s.Edge
		}
	}
	if control == n.opt.hasRole("control") && edge == n.opt.hasRole("edge") {
		return nil
	}
	roles := "control,edge"
	if !control {
		roles = "edge"
	} else if !edge {
		roles = "control"
	}
	return fault.Newf(fault.Invalid, "node.fleet", "--role %s: in its fleet this node has the role %s, and keeps it; start it with --role %s", n.opt.Role, roles, roles)
}

// invite reads what --invite gives, or names with an @.
func (n *Node) invite() (string, error) {
	name, file := strings.CutPrefix(n.opt.Invite, "@")
	if !file {
		return n.opt.Invite, nil
	}
	f, err := os.Open(name)
	if err != nil {
		return "", fault.Newf(fault.Invalid, "node.fleet", "--invite: %v", err)
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, 4<<10)) // what is longer is no invite, as Join says
	return string(b), fault.Wrap(fault.Unavailable, "node.fleet", err)
}

// join asks the fleet that --join names to take this node in. A node with a control state of its own is refused: two histories do not
// become one.
func (n *Node) join(f *fleet) error {
	if _, err := os.Stat(filepath.Join(n.opt.DataDir, "control", "log")); err == nil {
		return fault.New(fault.Conflict, "node.fleet", "this data directory has a control state of its own and cannot join a fleet: start with an empty one")
	}
	invite, err := n.invite()
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), joinPatience)
	defer cancel()
	opt := peer.JoinOptions{Dir: f.dir, URL: n.opt.Join, Invite: invite, Request: n.request(),
		Keep: func(a fleetwire.JoinAnswer) error { return n.keep(f, a, true) }}
	for {
		_, err := peer.Join(ctx, opt)
		switch {
		case err == nil:
			return f.readSeeds()
		case fault.CodeOf(err) != fault.Unavailable || ctx.Err() != nil:
			return err
		}
		n.log.Warn("the fleet does not take this node in yet; it is asked again", "err", err)
		select {
		case <-ctx.Done():
			return err
		case <-time.After(joinPause):
		}
	}
}

// joinPatience is how long a start waits for the fleet that it joins: one that elects a leader takes nobody in for some seconds.
const (
	joinPatience = time.Minute
	joinPause    = time.Second
)

// keep writes what the fleet gave to its new member.
func (n *Node) keep(f *fleet, a fleetwire.JoinAnswer, joined bool) error {
	if err := disk.Prepare(f.dir); err != nil {
		return err
	}
	if joined {
		seeds, err := json.Marshal(a.Members)
		if err != nil {
			return fault.Wrap(fault.Internal, "node.fleet", err)
		}
		if err := disk.WriteFile(filepath.Join(f.dir, seedsFile), append(seeds, '\n'), 0o600); err != nil {
			return err
		}
		if err := control.KeepRing(n.opt.DataDir, a.RingFile); err != nil {
			return err
		}
	}
	return disk.WriteFile(filepath.Join(f.dir, gossipKeyFile), []byte(a.GossipKey+"\n"), 0o600)
}

func (f *fleet) readSeeds() error {
	b, err := os.ReadFile(filepath.Join(f.dir, seedsFile))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fault.Wrap(fault.Unavailable, "node.fleet", err)
	}
	f.joined = true
	if json.Unmarshal(b, &f.seeds) != nil {
		return fault.Newf(fault.Conflict, "node.fleet", "%s is damaged: put it back from a backup, or remove the node and let it join anew with an empty directory",
			filepath.Join(f.dir, seedsFile))
	}
	return nil
}
