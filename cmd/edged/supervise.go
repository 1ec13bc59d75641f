package main

import (
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"
)

// supervisorEnv tells a child that it is one: the process number of its supervisor. Its descriptors are then these.
const (
	supervisorEnv = "EDGED_SUPERVISOR"
	ordersFD      = 3 // from the supervisor: a byte for each signal; its end is the supervisor's
	heartFD       = 4 // to the supervisor: heartbeats
)

// What a child writes to its heart.
const (
	beatByte  = '.'
	readyByte = 'r' // it serves
)

// supervisor runs the node as a child process and starts it again when it dies or freezes. Code inside the node cannot
// do that: a guest that could not be stopped would stop the Go scheduler with it (module-worker §6, node-surface §2).
type supervisor struct {
	args    []string
	out     io.Writer // of the child too
	log     *slog.Logger
	stop    *stopper
	notify  *notifier
	frozen  time.Duration // without a heartbeat
	cleanUp func(pid int) // removes what a child that was killed left behind
	dog     watchdog
}

// exitCode is the error of a command that has said everything and only wants this code.
type exitCode int

func (c exitCode) Error() string { return fmt.Sprintf("exit code %d", int(c)) }

// run returns nil or an exitCode when the node has ended for good. The child dies with the supervisor, by the kernel's
// hand: that is bound to the thread which started it, so run keeps to one.
func (s *supervisor) run() error {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	atOnce := make(chan struct{})
	s.stop.onSecond(func() { close(atOnce) })
	for {
		c, err := s.start()
		if err != nil {
			return err
		}
		end := s.watch(c, atOnce)
		restart, pause, code := s.dog.ended(end)
		if !restart {
			if code == 0 {
				return nil
			}
			return exitCode(code)
		}
		s.cleanUp(c.cmd.Process.Pid)
		s.log.Error("the node has ended; starting it again", "pid", c.cmd.Process.Pid, "how", c.cmd.ProcessState.String(), "pause", pause,
			"do", "read what it said before; if it goes on, stop it and see docs/runbook.md, EdgedNodeRestarting")
		select {
		case <-time.After(pause):
		case <-s.stop.ctx.Done():
			return nil
		}
	}
}

// child is one serving process.
type child struct {
	cmd    *exec.Cmd
	orders *os.File
	beats  atomic.Int64
	ready  chan struct{} // closed when it serves
	heart  chan struct{} // closed when its heart was read to the end
	dead   chan struct{} // closed when it was waited for
}

func (s *supervisor) start() (*child, error) {
	orders, ours, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	theirs, heart, err := os.Pipe()
	if err != nil {
		orders.Close()
		ours.Close()
		return nil, err
	}
	c := &child{orders: ours, ready: make(chan struct{}), heart: make(chan struct{}), dead: make(chan struct{})}
	c.cmd = exec.Command(selfPath(), s.args...)
	c.cmd.Args[0] = os.Args[0]
	c.cmd.Stdout, c.cmd.Stderr = s.out, os.Stderr
	c.cmd.ExtraFiles = []*os.File{orders, heart}
	c.cmd.Env = append(childEnv(os.Environ()), supervisorEnv+"="+strconv.Itoa(os.Getpid()))
	dieWithParent(c.cmd)
	err = c.cmd.Start()
	orders.Close()
	heart.Close()
	if err != nil {
		ours.Close()
		theirs.Close()
		return nil, fmt.Errorf("start the serving process: %w", err)
	}
	go c.listen(theirs) // both end with the child; watch waits for them
	go func() {
		_ = c.cmd.Wait() // ProcessState tells
		close(c.dead)
	}()
	return c, nil
}

// childEnv is the environment without what a service manager says to its own child alone.
func childEnv(env []string) []string {
	return slices.DeleteFunc(slices.Clone(env), func(v string) bool {
		name, _, _ := strings.Cut(v, "=")
		return name == notifyEnv || name == watchdogTimeEnv || name == watchdogPIDEnv || name == supervisorEnv
	})
}

func (c *child) listen(heart *os.File) {
	defer close(c.heart)
	defer heart.Close()
	buffer, ready := make([]byte, 64), false
	for {
		n, err := heart.Read(buffer)
		if err != nil {
			return
		}
		c.beats.Add(1)
		if !ready && slices.Contains(buffer[:n], readyByte) {
			ready = true
			close(c.ready)
		}
	}
}

// watch returns when the child has ended, by itself or because it was killed.
func (s *supervisor) watch(c *child, atOnce <-chan struct{}) childEnd {
	look := time.NewTicker(s.frozen / looks)
	defer look.Stop()
	var end childEnd
	var since time.Time
	ready, stop, seen := c.ready, s.stop.ctx.Done(), int64(0)
	for {
		select {
		case <-ready:
			ready, end.ready, since = nil, true, time.Now()
			s.notify.send("READY=1")
		case <-stop:
			stop, s.dog.stop = nil, true
			s.notify.send("STOPPING=1")
			c.order()
		case <-atOnce:
			atOnce = nil
			c.kill()
		case <-look.C:
			now := c.beats.Load()
			if s.dog.look(now != seen) {
				s.log.Error("the node is frozen; killing it", "pid", c.cmd.Process.Pid, "silent", s.frozen,
					"do", "look for a machine that swaps or whose disk does not answer; else report it as a bug")
				c.kill()
				s.dog.silent = 0
			}
			seen = now
		case <-c.dead:
			<-c.heart
			c.orders.Close()
			if end.code = c.cmd.ProcessState.ExitCode(); end.ready {
				end.served = time.Since(since)
			}
			return end
		}
	}
}

// order passes a signal on.
func (c *child) order() { _, _ = c.orders.Write([]byte{'s'}) } // a child that is gone shows at once

func (c *child) kill() { _ = c.cmd.Process.Kill() } // as above
