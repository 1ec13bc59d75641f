package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"
)

// supervisorEnv tells a child that it is one: the process number of its supervisor. Its descriptors are then these. linkEnv says that
// the third is there.
const (
	supervisorEnv = "EDGED_SUPERVISOR"
	linkEnv       = "EDGED_LINK"
	ordersFD      = 3 // from the supervisor: a byte for each signal; its end is the supervisor's
	heartFD       = 4 // to the supervisor: heartbeats
	linkFD        = 5 // both ways: see link.go
)

// What a child writes to its heart.
const (
	beatByte  = '.'
	readyByte = 'r' // it serves
)

// What the supervisor hears of a child besides its messages.
const (
	sayReady = "ready" // its heart said so
	sayDead  = "dead"  // it has ended and was waited for; the last event
)

// event is something that came from a child. Who receives it owns the files.
type event struct {
	child *child
	message
	files []*os.File
}

// child is one serving process. The supervisor's goroutine has what is without a comment.
type child struct {
	cmd       *exec.Cmd
	program   *binary
	orders    *os.File
	link      *link        // nil where there are none
	beats     atomic.Int64 // any goroutine
	seen      int64
	opened    bool // it accepts requests
	ready     bool
	since     time.Time // when it was ready
	listeners []kept    // as it said, until the supervisor takes them
	failure   string    // as it said
	explains  []wish    // who waits to hear what holds it
	version   string    // as it said
}

// start starts a child and gives it the listeners. With wait it leaves the data directory alone until sayGo.
func (s *supervisor) start(p *binary, wait bool) (*child, error) {
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
	c := &child{orders: ours, program: p}
	c.cmd = exec.Command(pathOf(p.file), s.args...)
	c.cmd.Args[0] = os.Args[0]
	c.cmd.Stdout, c.cmd.Stderr = s.out, os.Stderr
	c.cmd.ExtraFiles = []*os.File{orders, heart}
	c.cmd.Env = append(childEnv(os.Environ()), supervisorEnv+"="+strconv.Itoa(os.Getpid()))
	end, err := c.addLink()
	if err == nil {
		dieWithParent(c.cmd)
		err = c.cmd.Start()
	}
	orders.Close()
	heart.Close()
	if end != nil {
		end.Close()
	}
	if err != nil {
		ours.Close()
		theirs.Close()
		c.link.close()
		return nil, fmt.Errorf("start the serving process: %w", err)
	}
	first := message{Say: sayListeners, Wait: wait}
	fds := make([]int, len(s.listeners))
	for i, l := range s.listeners {
		first.Listeners = append(first.Listeners, l.linkedAddr)
		fds[i] = fdOf(l.file)
	}
	if c.link != nil {
		_ = c.link.send(first, fds...) // a child that is gone shows at once
	}
	go c.follow(s.events, theirs) // ends with the child; the last event is its end, which run or end waits for
	return c, nil
}

// addLink gives the child to be started its end of a link, which the caller closes after that.
func (c *child) addLink() (theirs *os.File, err error) {
	ours, theirs, err := linkPair()
	if errors.Is(err, errors.ErrUnsupported) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	if c.link, err = newLink(ours); err != nil {
		theirs.Close()
		return nil, err
	}
	c.cmd.ExtraFiles = append(c.cmd.ExtraFiles, theirs)
	c.cmd.Env = append(c.cmd.Env, linkEnv+"=1")
	return theirs, nil
}

// childEnv is the environment without what a service manager says to its own child alone.
func childEnv(env []string) []string {
	private := []string{notifyEnv, watchdogTimeEnv, watchdogPIDEnv, supervisorEnv, linkEnv, socketsEnv, socketsPIDEnv, socketNamesEnv}
	return slices.DeleteFunc(slices.Clone(env), func(v string) bool {
		name, _, _ := strings.Cut(v, "=")
		return slices.Contains(private, name)
	})
}

// follow tells what comes from the child, until it has ended and all of it was told.
func (c *child) follow(events chan<- event, heart *os.File) {
	heard := make(chan struct{})
	go func() { // ends with the child, and is waited for below
		defer close(heard)
		for buffer := make([]byte, maxPacket); c.link != nil; {
			m, files, err := c.link.receive(buffer)
			if err != nil {
				return
			}
			events <- event{c, m, files}
		}
	}()
	c.listen(events, heart)
	<-heard
	_ = c.cmd.Wait() // ProcessState tells
	events <- event{child: c, message: message{Say: sayDead}}
}

func (c *child) listen(events chan<- event, heart *os.File) {
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
			events <- event{child: c, message: message{Say: sayReady}}
		}
	}
}

// order passes a signal on.
func (c *child) order() { _, _ = c.orders.Write([]byte{'s'}) } // a child that is gone shows at once

func (c *child) kill() { _ = c.cmd.Process.Kill() } // as above

// say tells the child something. One that takes nothing for seconds is stuck, and of no use.
func (c *child) say(m message) {
	if c.link != nil && c.link.send(m) != nil {
		c.kill()
	}
}

// pass gives the child a connection; the caller keeps its descriptor.
func (c *child) pass(h held) {
	if c.link == nil {
		return
	}
	_ = c.link.send(message{Say: sayConn, Conn: h.conn}, fdOf(h.file)) // one that cannot be passed ends with its last descriptor
}
