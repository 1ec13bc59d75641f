package main

import (
	"encoding/json"
	"errors"
	"net"
	"os"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// What a supervisor and its child tell each other over their link, a local socket that keeps messages apart and carries descriptors. Either
// side passes over what it does not know: the two may be of different versions of the program.
const (
	sayListeners = "listeners" // both: these are kept open; the supervisor's first message, and a child's once it has them
	sayPrepared  = "prepared"  // child: all that needs no data directory is ready
	sayGo        = "go"        // supervisor: the data directory is yours
	sayOpened    = "opened"    // child: requests are accepted
	sayGiveWay   = "give way"  // supervisor: another process waits for the data directory
	sayClosing   = "closing"   // child: the listeners are about to be closed
	sayConn      = "conn"      // both: a connection that goes on in another process
	sayReleased  = "released"  // child: the data directory is free; this process carries TLS at most
	sayStopping  = "stopping"  // child: it stops for good, and nobody is to wait in its listeners
	sayFailed    = "failed"    // child: why it cannot start
	sayExplain   = "explain"   // supervisor: what holds you?
	sayHolding   = "holding"   // child: this does
)

// message is one packet of a link. Its descriptors come in the order of what they belong to.
type message struct {
	Say       string          `json:"say"`
	Wait      bool            `json:"wait,omitempty"`      // of the supervisor's sayListeners: the data directory is another's until sayGo
	Text      string          `json:"text,omitempty"`      // of sayFailed
	Version   string          `json:"version,omitempty"`   // of sayPrepared: the program's
	Listeners []linkedAddr    `json:"listeners,omitempty"` // one descriptor each
	Conn      *linkedConn     `json:"conn,omitempty"`      // one descriptor
	Holding   json.RawMessage `json:"holding,omitempty"`   // of sayHolding: a node.Holding
}

// linkedAddr is node.Listening without its socket.
type linkedAddr struct {
	Name string `json:"name"`
	Addr string `json:"addr"`
}

// linkedConn is router.Handed without its socket.
type linkedConn struct {
	Unread  []byte `json:"unread,omitempty"`
	Peer    string `json:"peer,omitempty"`
	Fresh   bool   `json:"fresh,omitempty"`
	Secure  bool   `json:"secure,omitempty"`
	Relayed bool   `json:"relayed,omitempty"`
	SNI     string `json:"sni,omitempty"`
}

// Bounds of a packet. The largest holds a connection with the longest head that the router reads, in base64.
const (
	maxPacket = 192 << 10
	maxFiles  = 64
	linkTime  = 5 * time.Second // for the other side to take a packet
)

var errLink = errors.New("the link to the other process does not work")

// link is one end. Sending is safe for concurrent use; one goroutine receives.
type link struct {
	conn *net.UnixConn

	mu   sync.Mutex // held while sending
	dead bool       // a packet could not be sent: the other side is gone, or stuck
}

// newLink takes over one end of a pair; file is closed.
func newLink(file *os.File) (*link, error) {
	defer file.Close()
	conn, err := net.FileConn(file)
	if err != nil {
		return nil, err
	}
	socket, ok := conn.(*net.UnixConn)
	if !ok {
		conn.Close()
		return nil, errLink
	}
	_ = socket.SetWriteBuffer(2 * maxPacket) // what the kernel does not allow shows when a packet is too long
	return &link{conn: socket}, nil
}

// send sends one packet with duplicates of the descriptors; the caller keeps its own.
func (l *link) send(m message, fds ...int) error {
	b, err := json.Marshal(m)
	if err != nil {
		return err
	}
	if len(b) > maxPacket || len(fds) > maxFiles {
		return errLink
	}
	var rights []byte
	if len(fds) > 0 {
		rights = unix.UnixRights(fds...)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.dead {
		return errLink
	}
	_ = l.conn.SetWriteDeadline(time.Now().Add(linkTime)) // the write fails where this does
	_, _, err = l.conn.WriteMsgUnix(b, rights, nil)
	l.dead = err != nil && !errors.Is(err, unix.EMSGSIZE)
	return err
}

// sendSocket sends a packet with the descriptor of one socket.
func (l *link) sendSocket(m message, socket any) error {
	s, ok := socket.(interface{ File() (*os.File, error) })
	if !ok {
		return errLink
	}
	file, err := s.File() // a duplicate
	if err != nil {
		return err
	}
	defer file.Close()
	return l.send(m, fdOf(file))
}

// receive waits for the next packet. The caller owns the files. Any error is the link's end.
func (l *link) receive(buffer []byte) (m message, files []*os.File, err error) {
	rights := make([]byte, unix.CmsgSpace(maxFiles*4))
	n, rn, _, _, err := l.conn.ReadMsgUnix(buffer, rights)
	if err != nil {
		return m, nil, err
	}
	packets, err := unix.ParseSocketControlMessage(rights[:rn])
	for _, p := range packets {
		fds, _ := unix.ParseUnixRights(&p)
		for _, fd := range fds {
			files = append(files, os.NewFile(uintptr(fd), "handed"))
		}
	}
	if err == nil && n == 0 {
		err = errLink // the other end is closed
	}
	if err == nil {
		err = json.Unmarshal(buffer[:n], &m)
	}
	if err != nil {
		closeFiles(files)
		return m, nil, err
	}
	return m, files, nil
}

func (l *link) close() {
	if l != nil {
		l.conn.Close()
	}
}

// fdOf is a file's descriptor, for as long as the file is open. Its own Fd could make a socket block, and with it every process that has it.
func fdOf(file *os.File) (fd int) {
	fd = -1
	if raw, err := file.SyscallConn(); err == nil {
		_ = raw.Control(func(n uintptr) { fd = int(n) }) // fails on a closed file, and -1 is refused like that
	}
	return fd
}

func closeFiles(files []*os.File) {
	for _, f := range files {
		f.Close()
	}
}
