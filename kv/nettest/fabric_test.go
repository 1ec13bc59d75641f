//go:build linux

package nettest

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"edged/internal/testkit/netns"
	"edged/kv"
)

// fabric is a switch in this process's own network namespace, with a link to each node.
type fabric struct {
	nodes []*proc
}

// newFabric starts n nodes that know each other. The last one has a small disk of its own.
func newFabric(t *testing.T, n int) *fabric {
	t.Helper()
	netns.Must(t, "mount", "--make-rprivate /")
	netns.Must(t, "ip", "link add br0 type bridge")
	netns.Must(t, "ip", "link set br0 up")
	root := t.TempDir()
	key := filepath.Join(root, "key")
	if err := os.WriteFile(key, []byte(base64.StdEncoding.EncodeToString(bytes.Repeat([]byte{3}, 32))), 0o600); err != nil {
		t.Fatal(err)
	}
	ca := newAuthority(t)
	f := &fabric{}
	t.Cleanup(func() {
		for _, p := range f.nodes {
			p.kill()
		}
	})
	for i := range n {
		name, ip := "node"+string(rune('a'+i)), fmt.Sprintf("10.77.0.%d", i+1)
		dir := filepath.Join(root, name)
		if err := os.Mkdir(dir, 0o700); err != nil {
			t.Fatal(err)
		}
		p := &proc{i: i, setup: setup{Name: name, IP: ip, Dir: filepath.Join(dir, "kv"), KeyFile: key, ID: ca.issue(t, name, ip), Reserve: 1 << 20}}
		if i == n-1 {
			netns.Must(t, "mount", "-t tmpfs -o size=256m none "+dir)
			t.Cleanup(func() { p.kill(); netns.Run("", "umount", dir) })
			p.setup.Reserve = 64 << 20
		}
		f.nodes = append(f.nodes, p)
		f.start(t, p)
	}
	f.introduce(t)
	return f
}

// start starts a node's process and plugs it in.
func (f *fabric) start(t *testing.T, p *proc) {
	t.Helper()
	p.start(t, func(pid int) error {
		netns.Run("", "ip", "link", "del", port(p)) // of a process that was killed a moment ago
		add := fmt.Sprintf("link add %s type veth peer name eth0 address 02:00:00:00:00:%02x netns %d", port(p), p.i+1, pid)
		if err := netns.Run("", "ip", strings.Fields(add)...); err != nil {
			return err
		}
		return netns.Run("", "ip", "link", "set", port(p), "master", "br0", "up")
	})
}

func port(p *proc) string { return fmt.Sprintf("link%d", p.i) }

// introduce tells all nodes of all.
func (f *fabric) introduce(t *testing.T) {
	t.Helper()
	var members []kv.Member
	for _, p := range f.nodes {
		members = append(members, p.member())
	}
	for _, p := range f.nodes {
		p.do(t, order{Op: "members", Members: members})
	}
}

// dropped returns how many packets the rules that count have dropped.
func (f *fabric) dropped(t *testing.T) (packets int) {
	t.Helper()
	out, err := exec.Command("nft", "list", "ruleset").Output()
	if err != nil {
		t.Fatal(err)
	}
	_, after, _ := strings.Cut(string(out), "counter packets ")
	fmt.Sscan(after, &packets) // 0 where no rule counts
	return packets
}

// cut takes a node off without telling anybody: packets vanish, connections stay.
func (f *fabric) cut(t *testing.T, p *proc) {
	t.Helper()
	netns.Filter(t, fmt.Sprintf("iifname %q drop", port(p)), fmt.Sprintf("oifname %q drop", port(p)))
}

func (f *fabric) heal(t *testing.T) { t.Helper(); netns.Filter(t) }

// slow bounds what reaches a node; "" lifts the bound.
func (f *fabric) slow(t *testing.T, p *proc, rate string) {
	t.Helper()
	if rate == "" {
		netns.Must(t, "tc", "qdisc del dev "+port(p)+" root")
		return
	}
	netns.Must(t, "tc", "qdisc replace dev "+port(p)+" root tbf rate "+rate+" burst 64kb latency 300ms")
}

// level waits until every node of who has all that every other of them wrote so far, and returns how long that took.
func (f *fabric) level(t *testing.T, within time.Duration, who ...*proc) time.Duration {
	t.Helper()
	begin := time.Now()
	for _, from := range who {
		at := from.do(t, order{Op: "state"})
		for _, p := range who {
			if p != from {
				if _, err := p.try(t, order{Op: "wait", Origin: at.Epoch, Seq: at.Seq, Within: within}); err != nil {
					t.Fatalf("within %v %s has not all of %s: %v", within, p.setup.Name, from.setup.Name, err)
				}
			}
		}
	}
	return time.Since(begin).Round(time.Millisecond)
}

// same holds all nodes to the same keys and values.
func (f *fabric) same(t *testing.T) {
	t.Helper()
	want := f.nodes[0].do(t, order{Op: "list"})
	for _, p := range f.nodes[1:] {
		if got := p.do(t, order{Op: "list"}); got.Sum != want.Sum {
			t.Errorf("%s holds %d keys, %s %d, and not the same", p.setup.Name, got.Keys, f.nodes[0].setup.Name, want.Keys)
		}
	}
}
