package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"sync"
	"time"
)

// doorFile is the supervisor's socket below the data directory. Who may connect to it is whoever may write to its file: the user of the
// node, for the directory and the socket are that user's alone.
const doorFile = "supervisor.sock"

// Bounds of the door.
const (
	doorMost    = 4                // connections at once
	doorRequest = 16 << 10         // bytes of a request
	doorPatient = 10 * time.Second // for a request to come, and for an answer to be taken
)

// request is what a client asks for.
type request struct {
	Upgrade bool   `json:"upgrade,omitempty"`
	Drain   bool   `json:"drain,omitempty"`
	Wait    bool   `json:"wait,omitempty"` // of Drain: the answer is the node's end
	Explain bool   `json:"explain,omitempty"`
	Binary  string `json:"binary,omitempty"` // absolute; "" is where the present program was found
}

// reply is one line of the answer. The last one has Done or Error.
type reply struct {
	Say     string          `json:"say,omitempty"`
	Done    bool            `json:"done,omitempty"`
	Error   string          `json:"error,omitempty"`
	PID     int             `json:"pid,omitempty"`
	Version string          `json:"version,omitempty"`
	Waited  time.Duration   `json:"waitedNanoseconds,omitempty"`
	Holding json.RawMessage `json:"holding,omitempty"` // of Explain: a node.Holding
}

// wish is a request with the way of its answer.
type wish struct {
	request
	replies chan reply // room for all, so that the supervisor never waits
}

func (w wish) tell(text string) { w.replies <- reply{Say: text} }
func (w wish) fail(err error)   { w.replies <- reply{Error: err.Error()}; close(w.replies) }
func (w wish) done(pid int, version string, waited time.Duration) {
	w.replies <- reply{Done: true, PID: pid, Version: version, Waited: waited}
	close(w.replies)
}

// door is where the supervisor is asked for something. A nil door hears nothing.
type door struct {
	dir      string
	listener net.Listener
	wishes   chan wish
	closed   chan struct{}
	open     sync.WaitGroup
}

// openDoor makes the socket; a file that is there was left behind, for the data directory is the caller's.
func openDoor(dir string) (*door, error) {
	path, done, err := doorPath(dir)
	if err != nil {
		return nil, err
	}
	defer done()
	if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, err
	}
	l, err := net.Listen("unix", path)
	if err != nil {
		return nil, err
	}
	l.(*net.UnixListener).SetUnlinkOnClose(false) // the path does not last
	if err := os.Chmod(path, 0o600); err != nil { // its folder is private already
		l.Close()
		return nil, err
	}
	d := &door{dir: dir, listener: l, wishes: make(chan wish), closed: make(chan struct{})}
	d.open.Go(func() { d.accept() })
	return d, nil
}

func (d *door) requests() <-chan wish {
	if d == nil {
		return nil
	}
	return d.wishes
}

// close ends the door when every answer is out.
func (d *door) close() {
	if d == nil {
		return
	}
	close(d.closed)
	d.listener.Close()
	_ = os.Remove(filepath.Join(d.dir, doorFile)) // the next start would
	d.open.Wait()
}

func (d *door) accept() {
	places := make(chan struct{}, doorMost)
	for {
		conn, err := d.listener.Accept()
		if err != nil {
			return // closed
		}
		select {
		case places <- struct{}{}:
			d.open.Go(func() {
				defer func() { <-places }()
				defer conn.Close()
				d.serve(conn)
			})
		default:
			conn.Close()
		}
	}
}

func (d *door) serve(conn net.Conn) {
	_ = conn.SetDeadline(time.Now().Add(doorPatient))
	line, err := bufio.NewReader(io.LimitReader(conn, doorRequest)).ReadBytes('\n')
	var q request
	if err != nil || json.Unmarshal(line, &q) != nil || !q.Upgrade && !q.Drain && !q.Explain {
		_ = json.NewEncoder(conn).Encode(reply{Error: "this supervisor does not understand the request: is it of an older program?"})
		return
	}
	w := wish{request: q, replies: make(chan reply, 8)}
	select {
	case d.wishes <- w:
	case <-d.closed:
		return
	}
	for r := range w.replies { // the supervisor ends every wish, at the latest with itself
		_ = conn.SetDeadline(time.Now().Add(doorPatient))
		_ = json.NewEncoder(conn).Encode(r) // who has left misses only words
	}
}

// doorPath names the socket of a data directory so that a long name fits. done is called when the path is not needed any more.
func doorPath(dir string) (path string, done func(), err error) {
	path = filepath.Join(dir, doorFile)
	if len(path) < 100 { // of 108 bytes of an address
		return path, func() {}, nil
	}
	open, err := os.Open(dir)
	if err != nil {
		return "", nil, err
	}
	return fmt.Sprintf("/proc/self/fd/%d/%s", open.Fd(), doorFile), func() { open.Close() }, nil
}
