//go:build linux

package nettest

import (
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"syscall"
	"testing"
	"time"

	"edged/kv"
	"edged/kv/replica"
)

// proc is a node's process, as the cases see it.
type proc struct {
	i     int
	setup setup
	epoch replica.Origin

	cmd  *exec.Cmd
	in   *json.Encoder
	out  *json.Decoder
	ends []io.Closer
}

// start runs the node in a network of its own, or in this one if it is set up for loopback, and waits until its store is open.
func (p *proc) start(t testing.TB, attach func(pid int) error) {
	t.Helper()
	p.cmd = exec.Command("/proc/self/exe")
	p.cmd.Env = append(os.Environ(), roleEnv+"=node")
	p.cmd.Stderr = os.Stderr
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNET, Pdeathsig: syscall.SIGKILL}
	if p.setup.Loopback {
		p.cmd.SysProcAttr.Cloneflags = 0
	}
	in, err := p.cmd.StdinPipe()
	out, err2 := p.cmd.StdoutPipe()
	if err := errors.Join(err, err2, p.cmd.Start()); err != nil {
		t.Fatal(err)
	}
	p.in, p.out, p.ends = json.NewEncoder(in), json.NewDecoder(out), []io.Closer{in, out}
	if err := attach(p.cmd.Process.Pid); err != nil {
		t.Fatal(err)
	}
	var a answer
	if err := errors.Join(p.in.Encode(p.setup), p.out.Decode(&a)); err != nil {
		t.Fatalf("%s did not start: %v", p.setup.Name, err)
	}
	p.epoch = a.Epoch
}

// kill ends the process at once, as a crash would.
func (p *proc) kill() {
	if p.cmd == nil {
		return
	}
	p.cmd.Process.Kill()
	for _, c := range p.ends {
		c.Close()
	}
	p.cmd.Wait()
	p.cmd = nil
}

// try sends an order and returns the answer; its error is what the node says.
func (p *proc) try(t testing.TB, o order) (answer, error) {
	t.Helper()
	var a answer
	if err := errors.Join(p.in.Encode(o), p.out.Decode(&a)); err != nil {
		t.Fatalf("%s is gone: %v", p.setup.Name, err)
	}
	if a.Err != "" {
		return a, errors.New(a.Err)
	}
	return a, nil
}

func (p *proc) do(t testing.TB, o order) answer {
	t.Helper()
	a, err := p.try(t, o)
	if err != nil {
		t.Fatalf("%s, %s: %v", p.setup.Name, o.Op, err)
	}
	return a
}

func (p *proc) put(t testing.TB, key string, count, size int, seed byte) {
	t.Helper()
	p.do(t, order{Op: "put", Key: key, Count: count, Size: size, Seed: seed})
}

func (p *proc) metric(t testing.TB, name string) float64 {
	t.Helper()
	return p.do(t, order{Op: "state"}).Metrics[name]
}

func (p *proc) member() kv.Member {
	return kv.Member{Name: p.setup.Name, Epoch: p.epoch, URL: "https://" + p.setup.IP + ":" + feedPort, Gossip: p.setup.IP + ":" + gossipPort}
}

// eventually polls, as what it waits for happens in other processes.
func eventually(t testing.TB, what string, within time.Duration, ok func() bool) {
	t.Helper()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	deadline := time.After(within)
	for !ok() {
		select {
		case <-tick.C:
		case <-deadline:
			t.Fatalf("within %v it did not come about: %s", within, what)
		}
	}
}
