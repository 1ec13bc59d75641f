package main

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"os"
	"runtime"
	"slices"
	"time"
)

// supervisor runs the node as a child process and starts it again when it dies or freezes. Code inside the node cannot
// do that: a guest that could not be stopped would stop the Go scheduler with it (module-worker §6, node-surface §2).
// It also keeps the node's listeners open between two children, and follows one by another (upgrade.go). One goroutine, run's, has
// all of its fields.
type supervisor struct {
	args    []string
	dir     string    // DATA
	out     io.Writer // of the child too
	log     *slog.Logger
	stop    *stopper
	notify  *notifier
	frozen  time.Duration // without a heartbeat
	drain   time.Duration // the node's --drain-timeout
	cleanUp func(pid int) // removes what a child that was killed left behind
	dog     watchdog

	program   *binary // what the next child runs
	listeners []kept  // open also while there is no child
	conns     []held  // on their way from one child to the next
	events    chan event
	door      *door                // where an upgrade is asked for; nil before the node has served
	pause     *time.Timer          // until the next child is started
	serving   *child               // has the data directory, or is to have it; nil in a pause
	drained   []wish               // who waits for the end of the node
	change    *change              // the upgrade under way, nil if there is none
	leaving   map[*child]time.Time // children that were followed by another and carry what only they can, and until when
}

// kept is a listener of the node.
type kept struct {
	linkedAddr
	file *os.File
}

// held is a connection that no child has for certain.
type held struct {
	conn *linkedConn
	file *os.File
}

// exitCode is the error of a command that has said everything and only wants this code.
type exitCode int

func (c exitCode) Error() string { return fmt.Sprintf("exit code %d", int(c)) }

// binary is a program whose file was opened once: it stays this very program also when the file is replaced.
type binary struct {
	path string // where it was found
	file *os.File
}

// thisProgram is the one that runs.
func thisProgram() (*binary, error) {
	path, err := os.Executable()
	if err != nil {
		return nil, err
	}
	file, err := os.Open(selfPath())
	if err != nil {
		return nil, err
	}
	return &binary{path, aside(file)}, nil
}

// run returns nil or an exitCode when the node has ended for good. The children die with the supervisor, by the kernel's
// hand: that is bound to the thread which started them, so run keeps to one.
func (s *supervisor) run() (err error) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	if s.program, err = thisProgram(); err != nil {
		return err
	}
	s.events, s.leaving = make(chan event), map[*child]time.Time{}
	defer s.end()
	atOnce := make(chan struct{})
	s.stop.onSecond(func() { close(atOnce) })
	look := time.NewTicker(s.frozen / looks)
	defer look.Stop()
	stop := s.stop.ctx.Done()
	s.pause = time.NewTimer(0) // the first child
	defer s.pause.Stop()
	for {
		select {
		case <-s.pause.C:
			if err := s.startServing(); err != nil {
				return err
			}
		case e := <-s.events:
			if over, err := s.heard(e); over {
				return err
			}
		case w := <-s.door.requests():
			s.asked(w)
		case <-stop:
			stop, s.dog.stop = nil, true
			s.notify.send("STOPPING=1")
			if s.serving == nil {
				return nil
			}
			s.stopAll()
		case <-atOnce:
			atOnce = nil
			for _, c := range s.children() {
				c.kill()
			}
		case <-look.C:
			s.look()
		}
	}
}

// startServing starts a child that has the data directory at once.
func (s *supervisor) startServing() error {
	c, err := s.start(s.program, false)
	if err != nil {
		return err
	}
	s.serving = c
	s.letGo(c)
	return nil
}

// letGo lets a child take the data directory, and gives it the connections that wait for one.
func (s *supervisor) letGo(c *child) {
	c.say(message{Say: sayGo})
	for _, h := range s.conns {
		c.pass(h)
	}
}

// heard acts on what came from a child. over says that the node has ended for good.
func (s *supervisor) heard(e event) (over bool, err error) {
	c := e.child
	switch e.Say {
	case sayListeners:
		closeKept(c.listeners)
		c.listeners = nil
		for i, file := range e.files {
			if i < len(e.Listeners) {
				c.listeners = append(c.listeners, kept{e.Listeners[i], aside(file)})
			}
		}
		if c == s.serving && s.change == nil {
			s.keep(c)
		}
	case sayConn:
		if e.Conn != nil && len(e.files) == 1 {
			s.take(held{e.Conn, e.files[0]})
		}
	case sayStopping:
		if c == s.serving { // clients are refused from now on and do not wait for nothing
			closeKept(s.listeners)
			s.listeners = nil
		}
	case sayFailed:
		c.failure = e.Text
	case sayHolding:
		s.explained(c, e.Holding)
	case sayOpened:
		if c.opened = true; c == s.serving {
			s.dropConns() // the child has them
		}
	case sayReady:
		c.ready, c.since = true, time.Now()
		s.readied(c)
	case sayDead:
		return s.died(c)
	}
	s.changes(e)
	return false, nil
}

// readied is called when a child serves and says so.
func (s *supervisor) readied(c *child) {
	if c != s.serving {
		return
	}
	if !s.dog.served {
		s.notify.send("READY=1")
	}
	s.dog.served = true
	if s.door == nil { // not before: now the data directory is this node's
		var err error
		if s.door, err = openDoor(s.dir); err != nil {
			s.log.Warn("this node cannot be asked for an upgrade", "err", err)
		}
	}
}

// died decides what the end of a child means, and has another started if it should be.
func (s *supervisor) died(c *child) (over bool, err error) {
	s.explained(c, nil)
	c.link.close()
	c.orders.Close()
	closeKept(c.listeners)
	delete(s.leaving, c)
	if s.changeSurvives(c) || c != s.serving {
		return false, nil
	}
	s.serving = nil
	end := childEnd{code: c.cmd.ProcessState.ExitCode(), ready: c.ready}
	if c.ready {
		end.served = time.Since(c.since)
	}
	restart, pause, code := s.dog.ended(end)
	if !restart {
		if code == 0 {
			return true, nil
		}
		return true, exitCode(code)
	}
	s.cleanUp(c.cmd.Process.Pid)
	if s.rolledBack(c) {
		s.pause.Reset(0)
		return false, nil
	}
	s.log.Error("the node has ended; starting it again", "pid", c.cmd.Process.Pid, "how", c.cmd.ProcessState.String(), "pause", pause,
		"do", "read what it said before; if it goes on, stop it and see docs/runbook.md, EdgedNodeRestarting")
	if pause > patientPause { // nobody is to wait so long without an answer
		closeKept(s.listeners)
		s.listeners = nil
		s.dropConns()
	}
	s.pause.Reset(pause)
	return false, nil
}

// patientPause is how long clients may wait in the listeners for the next child.
const patientPause = 500 * time.Millisecond

// look is called regularly: it finds the child that is frozen, and what has taken its time.
func (s *supervisor) look() {
	if c := s.serving; c != nil {
		now := c.beats.Load()
		if s.dog.look(now != c.seen) {
			s.log.Error("the node is frozen; killing it", "pid", c.cmd.Process.Pid, "silent", s.frozen,
				"do", "look for a machine that swaps or whose disk does not answer; else report it as a bug")
			c.kill()
			s.dog.silent = 0
		}
		c.seen = now
	}
	for c, until := range s.leaving {
		if time.Now().After(until) {
			c.kill()
		}
	}
	s.lookAtChange()
}

// keep makes a child's listeners those that stay open.
func (s *supervisor) keep(c *child) {
	closeKept(s.listeners)
	s.listeners, c.listeners = c.listeners, nil
}

// take passes a connection on, and keeps it for as long as the child that gets it may still fail.
func (s *supervisor) take(h held) {
	if s.dog.stop {
		h.file.Close()
		return
	}
	c := s.serving
	if s.change != nil && s.change.stage < opening {
		c = nil // it is the one that gives the connection away
	}
	if c != nil {
		c.pass(h)
	}
	if c != nil && c.opened {
		h.file.Close()
	} else {
		s.conns = append(s.conns, h)
	}
}

// dropConns gives up what is held of connections.
func (s *supervisor) dropConns() {
	for _, h := range s.conns {
		h.file.Close()
	}
	s.conns = nil
}

// stopAll passes the wish to stop on.
func (s *supervisor) stopAll() {
	closeKept(s.listeners)
	s.listeners = nil
	s.dropChange(errors.New("the node was told to stop"))
	s.serving.order()
}

// children are all that run.
func (s *supervisor) children() []*child {
	all := slices.Collect(maps.Keys(s.leaving))
	if s.serving != nil {
		all = append(all, s.serving)
	}
	if s.change != nil && s.change.next != nil && s.change.next != s.serving {
		all = append(all, s.change.next)
	}
	return all
}

// end ends what is left, and waits for it.
func (s *supervisor) end() {
	s.dropChange(errors.New("the node has ended"))
	for _, w := range s.drained {
		w.done(0, "", 0)
	}
	for _, c := range s.children() {
		s.explained(c, nil)
	}
	s.door.close()
	closeKept(s.listeners)
	s.dropConns()
	for _, c := range s.children() {
		c.kill()
	}
	for alive := len(s.children()); alive > 0; {
		e := <-s.events
		closeFiles(e.files)
		if e.Say == sayDead {
			e.child.link.close()
			e.child.orders.Close()
			alive--
		}
	}
}

func closeKept(list []kept) {
	for _, l := range list {
		l.file.Close()
	}
}
