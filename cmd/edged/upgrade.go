package main

import (
	"errors"
	"fmt"
	"os"
	"time"

	"edged/internal/fault"
)

// stage is how far an upgrade has come.
type stage int

const (
	preparing stage = iota // the next child makes ready what it can without the data directory
	giving                 // the old child was told to give way
	opening                // the next child has the data directory, and does not serve yet
)

// How long the stages may take. A first start of a program compiles the engine; giving has --drain-timeout besides.
const (
	preparingLimit = 2 * time.Minute
	givingLimit    = 20 * time.Second
	openingLimit   = time.Minute
	leavingLimit   = 5 * time.Second // beyond --drain-timeout, for a child that carries TLS
)

// change is an upgrade: one child followed by another, of the same or another program. The order is
//
//	next is started, and made ready without the data directory; if it fails, nothing has happened
//	old is told to give way: it ends what can take long while it serves, closes its listeners (which stay open here), gives its
//	    connections away (they are held here) and lets go of the data directory
//	next takes the data directory and the connections, and serves
//
// If next fails after old was told, the program before is started in its place: it is rolled back.
type change struct {
	wish    wish
	old     *child
	next    *child
	stage   stage
	until   time.Time // when the stage has taken too long
	began   time.Time
	closing time.Time     // since when clients wait
	waited  time.Duration // how long they did
	failed  error         // why the program is the one before after all
}

// upgrade begins a change that somebody asks for, or says why it does not.
func (s *supervisor) upgrade(w wish) {
	switch c := s.serving; {
	case s.dog.stop:
		w.fail(errors.New("the node was told to stop"))
		return
	case s.change != nil:
		w.fail(errors.New("another upgrade is under way"))
		return
	case c == nil || !c.ready:
		w.fail(errors.New("the node is just starting: try again when it serves"))
		return
	case c.link == nil:
		w.fail(errors.New("this operating system has no hand-over: stop the node and start it again"))
		return
	}
	p, err := openProgram(w.Binary, s.program)
	if err != nil {
		w.fail(err)
		return
	}
	ch := &change{wish: w, old: s.serving, began: time.Now(), until: time.Now().Add(preparingLimit)}
	if ch.next, err = s.start(p, true); err != nil {
		p.file.Close()
		w.fail(fmt.Errorf("%s cannot be started: %w", p.path, cause(err)))
		return
	}
	s.log.Info("upgrading", "binary", p.path, "pid", ch.next.cmd.Process.Pid)
	s.change = ch
}

// openProgram opens the file of a program, "" for where the present one was found.
func openProgram(path string, present *binary) (*binary, error) {
	if path == "" {
		path = present.path
	}
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	info, err := file.Stat()
	if err == nil && (!info.Mode().IsRegular() || info.Mode()&0o111 == 0) {
		err = fmt.Errorf("%s is not a program: it has to be a file with permission to execute it", path)
	}
	if err != nil {
		file.Close()
		return nil, err
	}
	return &binary{path, aside(file)}, nil
}

// changes takes the change on when a child has said something.
func (s *supervisor) changes(e event) {
	ch := s.change
	if ch == nil {
		return
	}
	switch old, next := e.child == ch.old, e.child == ch.next; {
	case next && e.Say == sayPrepared:
		ch.next.version = e.Version
		if ch.stage == preparing {
			ch.stage, ch.until = giving, time.Now().Add(s.drain+givingLimit)
			ch.wish.tell(fmt.Sprintf("%s is ready to take over", describe(e.Version)))
			ch.old.say(message{Say: sayGiveWay})
		}
	case old && e.Say == sayClosing && ch.stage == giving:
		ch.closing = time.Now()
	case old && e.Say == sayReleased && ch.stage == giving:
		s.leaving[ch.old] = time.Now().Add(s.drain + leavingLimit)
		s.followOn()
	case next && e.Say == sayOpened && !ch.closing.IsZero():
		ch.waited = time.Since(ch.closing)
	case next && e.Say == sayReady && ch.stage == opening:
		s.completed()
	}
}

// followOn gives the data directory to the next child.
func (s *supervisor) followOn() {
	ch := s.change
	ch.stage, ch.until = opening, time.Now().Add(openingLimit)
	s.serving, s.dog.silent = ch.next, 0
	s.keep(ch.next)
	s.letGo(ch.next)
}

// completed ends a change whose next child serves.
func (s *supervisor) completed() {
	ch := s.change
	s.change = nil
	pid, waited := ch.next.cmd.Process.Pid, ch.waited.Round(100*time.Microsecond)
	if ch.failed != nil {
		s.log.Error("the upgrade was rolled back; the program before serves", "err", ch.failed, "pid", pid, "waited", waited,
			"do", "read what the new program said before; edged doctor, run with it, tells what it lacks")
		ch.wish.fail(fmt.Errorf("%w; the program before serves again", ch.failed))
		return
	}
	s.program.file.Close()
	s.program = ch.next.program
	s.log.Info("upgraded", "pid", pid, "binary", s.program.path, "version", ch.next.version, "waited", waited, "took", time.Since(ch.began).Round(time.Millisecond))
	ch.wish.done(pid, ch.next.version, waited)
}

// changeSurvives is asked when a child has ended. True says that this was part of the change, which has seen to it.
func (s *supervisor) changeSurvives(c *child) bool {
	ch := s.change
	switch {
	case ch == nil:
		return false
	case c == ch.next && ch.stage == preparing:
		s.change = nil
		c.program.file.Close()
		err := fmt.Errorf("the new program does not start: %s", c.end())
		s.log.Error("no upgrade", "err", err, "do", "read what the new program said before; edged doctor, run with it, tells what it lacks")
		ch.wish.fail(fmt.Errorf("%w\nthe node serves on as before", err))
		return true
	case c == ch.next && ch.stage == giving:
		return s.replaceNext(fmt.Errorf("the new program has ended: %s", c.end()))
	case c == ch.old && ch.stage == giving && !s.dog.stop: // without a word: it crashed, or was killed
		s.log.Error("the node ended before it had given way; the new program goes on", "pid", c.cmd.Process.Pid, "how", c.cmd.ProcessState.String(),
			"do", fault.ReportBug)
		s.cleanUp(c.cmd.Process.Pid)
		s.followOn()
		return true
	case c == ch.old && ch.stage < opening:
		s.dropChange(fmt.Errorf("the node ended meanwhile: %s", c.end()))
	}
	return false
}

// replaceNext puts a child of the program before in the place of the next one, which has failed: the old child gives way already.
func (s *supervisor) replaceNext(why error) bool {
	ch := s.change
	if ch.failed != nil {
		why = ch.failed // this is the second that fails: it is the first that matters
	} else {
		ch.next.program.file.Close()
	}
	next, err := s.start(s.program, true)
	if err != nil {
		s.dropChange(errors.Join(why, err)) // the old child's end starts another
		return true
	}
	ch.failed, ch.next = why, next
	return true
}

// rolledBack ends the change if c, which has ended, was to be the node's next child. The program before is then started at once.
func (s *supervisor) rolledBack(c *child) bool {
	ch := s.change
	if ch == nil || c != ch.next {
		return false
	}
	s.change = nil
	why := ch.failed
	if why == nil {
		why = fmt.Errorf("the new program has ended before it served: %s", c.end())
		c.program.file.Close()
	}
	s.log.Error("the upgrade is rolled back; starting the program before", "err", why, "do", "read what the new program said before; edged doctor, run with it, tells what it lacks")
	ch.wish.fail(fmt.Errorf("%w; the program before is started again", why))
	return true
}

// dropChange gives a change up that has not come to its end.
func (s *supervisor) dropChange(why error) {
	ch := s.change
	if ch == nil {
		return
	}
	s.change = nil
	ch.wish.fail(why)
	if ch.next != s.serving {
		ch.next.kill()
		s.leaving[ch.next] = time.Now()
	}
}

// lookAtChange ends what takes too long.
func (s *supervisor) lookAtChange() {
	ch := s.change
	if ch == nil || time.Now().Before(ch.until) {
		return
	}
	ch.until = time.Now().Add(preparingLimit) // what is killed shows at once
	switch ch.stage {
	case preparing:
		ch.next.failure = fmt.Sprintf("it was not ready within %v", preparingLimit)
		ch.next.kill()
	case giving:
		s.log.Error("the node does not give way; killing it", "pid", ch.old.cmd.Process.Pid,
			"do", "if it happens again, give it more time (--drain-timeout), and see what holds it: edged drain --explain")
		ch.old.kill()
	case opening:
		ch.next.failure = fmt.Sprintf("it did not serve within %v", openingLimit)
		ch.next.kill()
	}
}

// end says how a child ended, in its own words if it had any.
func (c *child) end() string {
	if c.failure != "" {
		return c.failure
	}
	return c.cmd.ProcessState.String()
}

func describe(version string) string {
	if version == "" {
		return "the new program"
	}
	return "the new program, " + version + ","
}
