//go:build linux

package nettest

import (
	"context"
	"fmt"
	"maps"
	"net"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"edged/internal/testkit/netns"
)

// fabric is a switch in this process's own network, with a link to each node. The test reaches all nodes by the switch itself, whatever is
// cut between them.
type fabric struct {
	t     *testing.T
	root  string
	token string // file with the founder's

	mu    sync.Mutex
	nodes []*node
	drops map[*node][]string // rules of the filter
}

func newFabric(t *testing.T) *fabric {
	t.Helper()
	netns.Must(t, "mount", "--make-rprivate /")
	netns.Must(t, "ip", "link set lo up")
	netns.Must(t, "ip", "link add br0 type bridge")
	netns.Must(t, "ip", "addr add 10.78.0.254/24 dev br0")
	netns.Must(t, "ip", "link set br0 up")
	f := &fabric{t: t, root: t.TempDir(), drops: map[*node][]string{}}
	f.token = filepath.Join(f.root, "a", "control.token")
	t.Cleanup(func() {
		for _, n := range f.all() {
			n.kill()
		}
	})
	return f
}

// plug gives the fabric one more node, which does not run yet.
func (f *fabric) plug(role string) *node {
	f.t.Helper()
	f.mu.Lock()
	i := len(f.nodes)
	f.mu.Unlock()
	ns, err := netns.New()
	if err != nil {
		f.t.Fatal(err)
	}
	name := string(rune('a' + i))
	n := &node{f: f, name: name, role: role, ip: fmt.Sprintf("10.78.0.%d", i+1), peer: 7400, link: "link" + name, dir: filepath.Join(f.root, name), ns: ns}
	n.client = &http.Client{Timeout: 10 * time.Second, Transport: &http.Transport{
		DialContext: func(ctx context.Context, network, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, network, n.ip+":8080")
		}}}
	netns.Must(f.t, "ip", fmt.Sprintf("link add %s type veth peer name eth0 address 02:00:00:00:00:%02x netns %s", n.link, i+1, ns.Path()))
	netns.Must(f.t, "ip", "link set "+n.link+" master br0 up")
	err = ns.In(func() error {
		for _, args := range []string{"link set lo up", "addr add " + n.ip + "/24 dev eth0", "link set eth0 up"} {
			if err := netns.Run("", "ip", strings.Fields(args)...); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		f.t.Fatal(err)
	}
	f.mu.Lock()
	f.nodes = append(f.nodes, n)
	f.mu.Unlock()
	return n
}

func (f *fabric) all() []*node {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.nodes)
}

// voters are the nodes with a vote, others those that are not one of some.
func (f *fabric) voters() []*node {
	return slices.DeleteFunc(f.all(), func(n *node) bool { return !n.votes.Load() })
}

func (f *fabric) others(than ...*node) []*node {
	return slices.DeleteFunc(f.all(), func(n *node) bool { return slices.Contains(than, n) })
}

// What can be done to a node's link: packets vanish, connections stay.
const (
	both = "cut"
	from = "cut from"     // what it sends is lost
	to   = "cut to"       // what it is sent is lost
	loss = "20 % loss of" // in each direction
)

// harm does that; "" ends it.
func (f *fabric) harm(n *node, kind string) {
	f.t.Helper()
	in, out := fmt.Sprintf("iifname %q", n.link), fmt.Sprintf("oifname %q", n.link)
	switch kind {
	case "":
		delete(f.drops, n)
	case both:
		f.drops[n] = []string{in + " drop", out + " drop"}
	case from:
		f.drops[n] = []string{in + " drop"}
	case to:
		f.drops[n] = []string{out + " drop"}
	case loss:
		f.drops[n] = []string{in + " numgen random mod 100 < 20 drop", out + " numgen random mod 100 < 20 drop"}
	}
	netns.Filter(f.t, slices.Concat(slices.Collect(maps.Values(f.drops))...)...)
}
