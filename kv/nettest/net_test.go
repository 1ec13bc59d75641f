//go:build linux

package nettest

import (
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"edged/internal/testkit"
	"edged/internal/testkit/netns"
)

const roleEnv = "EDGED_NETTEST_ROLE" // "node" in a process that was started again as one

func TestMain(m *testing.M) {
	if os.Getenv(roleEnv) == "node" {
		if err := runNode(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	testkit.Main(m)
}

// kv §2 and §5 on a real network, with real processes: what was acknowledged arrives everywhere after every fault.
func TestNetwork(t *testing.T) {
	if !netns.Apart(t) {
		return
	}
	f := newFabric(t, 3)
	t.Run("Converges", f.testConverges)
	t.Run("ShortCut", f.testShortCut)
	t.Run("Loss", f.testLoss)
	t.Run("SlowLinkLargeValue", f.testSlowLink)
	t.Run("SlowReader", f.testSlowReader)
	t.Run("StoppedPeer", f.testStoppedPeer)
	t.Run("LongCut", f.testLongCut)
	t.Run("FullDisk", f.testFullDisk)
}

const soon = 60 * time.Second // for what takes seconds at most, on a machine that may be busy

func (f *fabric) testConverges(t *testing.T) {
	for i, p := range f.nodes {
		p.put(t, "own"+p.setup.Name, 100, 1000, byte(i))
		p.put(t, "shared", 50, 100, byte(i))
	}
	t.Logf("300 small and 150 contended puts are level after %v", f.level(t, soon, f.nodes...))
	f.same(t)
}

// A cut of 5 s: both sides go on, and meet when it heals.
func (f *fabric) testShortCut(t *testing.T) {
	a, b, c := f.nodes[0], f.nodes[1], f.nodes[2]
	f.cut(t, b)
	end := time.Now().Add(5 * time.Second)
	for i := byte(0); time.Now().Before(end); i++ {
		for _, p := range f.nodes {
			p.put(t, "cut", 20, 500, i)
		}
		f.level(t, soon, a, c)
	}
	f.heal(t)
	t.Logf("level %v after a cut of 5 s", f.level(t, soon, f.nodes...))
	f.same(t)
}

// A tenth of all packets is lost.
func (f *fabric) testLoss(t *testing.T) {
	netns.Filter(t, "numgen random mod 100 < 10 counter drop")
	for i, p := range f.nodes {
		p.put(t, "loss"+p.setup.Name, 200, 2000, byte(i))
	}
	took, lost := f.level(t, soon, f.nodes...), f.dropped(t)
	f.heal(t)
	t.Logf("600 puts of 2 kB under 10 %% loss are level after %v; %d packets were lost", took, lost)
	if lost == 0 {
		t.Error("nothing was lost: this shows nothing")
	}
	f.same(t)
}

// A value of 25 MiB over a slow link, whose reader dies on the way: it goes on where it was.
func (f *fabric) testSlowLink(t *testing.T) {
	a, b := f.nodes[0], f.nodes[1]
	f.slow(t, b, "20mbit")
	part := filepath.Join(b.setup.Dir, "blobs", "part")
	a.put(t, "large", 0, 26214400, 1)
	eventually(t, "a third of the value is there", soon, func() bool { return sizeIn(part) > 8<<20 })
	if got := b.do(t, order{Op: "get", Key: "large"}).Sum; got != "-" {
		t.Errorf("half a value is visible: %.40s", got)
	}
	b.kill()
	kept := sizeIn(part)
	f.start(t, b)
	f.slow(t, b, "20mbit") // its link is a new one
	f.introduce(t)
	took := f.level(t, soon, a, b)
	t.Logf("%d of 26214400 bytes were there when the reader died; the rest came at 20 Mbit/s in %v", kept, took)
	if n := b.metric(t, "blobs_fetched_total,resumed"); n != 1 || kept < 8<<20 {
		t.Errorf("%v files were resumed, %d bytes kept", n, kept)
	}
	f.slow(t, b, "")
	if want, got := a.do(t, order{Op: "get", Key: "large"}).Sum, b.do(t, order{Op: "get", Key: "large"}).Sum; got != want {
		t.Errorf("it arrived as %.40s, want %.40s", got, want)
	}
	f.level(t, soon, f.nodes...)
	f.same(t)
}

func sizeIn(dir string) (n int64) {
	entries, _ := os.ReadDir(dir)
	for _, e := range entries {
		if info, err := e.Info(); err == nil {
			n += info.Size()
		}
	}
	return n
}

// A reader on a slow link: the others do not wait for it, and what it missed costs the live data, not the history.
func (f *fabric) testSlowReader(t *testing.T) {
	a, b, c := f.nodes[0], f.nodes[1], f.nodes[2]
	f.slow(t, b, "2mbit")
	for i := range byte(40) { // 20 MB, of which half a megabyte stays: 80 s of that link, or two
		a.put(t, "hot", 50, 10_000, i)
	}
	fast := f.level(t, soon, a, c)
	slow := f.level(t, soon, a, b)
	f.slow(t, b, "")
	t.Logf("20 MB of overwrites: level on a fast link after %v, on 2 Mbit/s after %v more", fast, slow)
	f.level(t, soon, f.nodes...)
	f.same(t)
}

// A peer that is stopped keeps its connections and reads nothing: it costs its members no memory.
func (f *fabric) testStoppedPeer(t *testing.T) {
	a, b, c := f.nodes[0], f.nodes[1], f.nodes[2]
	for i := range byte(20) { // caches and tables have their size
		a.put(t, "warm", 20, 50_000, i)
	}
	f.level(t, soon, f.nodes...)
	before := a.do(t, order{Op: "state"}).RSS
	if err := b.cmd.Process.Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	for i := range byte(100) {
		a.put(t, "warm", 20, 50_000, i+50)
	}
	took := f.level(t, soon, a, c)
	after := a.do(t, order{Op: "state"}).RSS
	t.Logf("100 MB were written while a peer was stopped: memory of the writer %d MiB before, %d MiB after; the other is level %v later",
		before>>20, after>>20, took)
	if grown := after - before; grown > 64<<20 {
		t.Errorf("it grew by %d MiB", grown>>20)
	}
	if err := b.cmd.Process.Signal(syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	t.Logf("the stopped one is level after %v", f.level(t, soon, f.nodes...))
	f.same(t)
}

// A cut of 60 s, longer than a session lives without a word, in which the node that is cut off also restarts.
func (f *fabric) testLongCut(t *testing.T) {
	a, b, c := f.nodes[0], f.nodes[1], f.nodes[2]
	a.put(t, "fate", 100, 100, 1)
	f.level(t, soon, f.nodes...)
	f.cut(t, b)
	end := time.Now().Add(60 * time.Second)
	a.do(t, order{Op: "delete", Key: "fate", Count: 50})
	c.put(t, "while", 200, 100, 2)
	b.put(t, "alone", 200, 100, 3)
	b.kill()
	f.start(t, b)
	b.do(t, order{Op: "members", Members: nil}) // it has heard of nobody yet
	f.level(t, soon, a, c)
	b.put(t, "alone", 200, 100, 4)
	eventually(t, "sessions end", soon, func() bool { return a.metric(t, "peers_live") == 1 && time.Now().After(end) })
	f.introduce(t)
	f.heal(t)
	t.Logf("level %v after a cut of 60 s and a restart", f.level(t, soon, f.nodes...))
	f.same(t)
	for _, p := range f.nodes {
		if got := p.do(t, order{Op: "get", Key: "fate0"}).Sum; got != "-" {
			t.Errorf("%s: what was deleted is back", p.setup.Name)
		}
		if n := p.metric(t, "resurrected_total"); n != 0 {
			t.Errorf("%s: %v deletes came back", p.setup.Name, n)
		}
	}
}

// A disk that fills up while a feed is applied: the node stops taking, loses nothing, and catches up when there is room.
func (f *fabric) testFullDisk(t *testing.T) {
	a, c := f.nodes[0], f.nodes[2]
	c.put(t, "before", 20, 1000, 1)
	kept := c.do(t, order{Op: "get", Key: "before7"}).Sum
	ballast := filepath.Join(filepath.Dir(c.setup.Dir), "ballast")
	var st syscall.Statfs_t
	if err := syscall.Statfs(filepath.Dir(ballast), &st); err != nil {
		t.Fatal(err)
	}
	fill := int64(st.Bavail)*st.Bsize - 60<<20 // 60 MiB are left, and 64 are to stay free
	if err := os.WriteFile(ballast, make([]byte, max(fill, 0)), 0o600); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the node's own puts are refused", soon, func() bool {
		_, err := c.try(t, order{Op: "put", Key: "refused", Size: 10})
		return err != nil
	})
	a.put(t, "during", 20, 200_000, 2)
	eventually(t, "a session ends for it", soon, func() bool { return c.metric(t, "sessions_ended_total,disk_full") > 0 })
	if got := c.do(t, order{Op: "get", Key: "during0"}).Sum; got != "-" {
		t.Errorf("the full node took %.40s", got)
	}
	c.kill() // and what it had acknowledged outlives that
	f.start(t, c)
	f.introduce(t)
	if got := c.do(t, order{Op: "get", Key: "before7"}).Sum; got != kept {
		t.Errorf("after the restart it holds %.40s, want %.40s", got, kept)
	}
	if err := os.Remove(ballast); err != nil {
		t.Fatal(err)
	}
	t.Logf("level %v after there is room again", f.level(t, soon, f.nodes...))
	f.same(t)
}
