package main

import (
	"context"
	"encoding/json"
	"net"
	"net/netip"
	"os"
	"strconv"
	"sync"
	"time"

	"edged/internal/fault"
	"edged/node"
	"edged/router"
)

// heart is a serving process's side of its supervisor.
type heart struct {
	pipe *os.File
	link *link // nil where there are none

	listeners []node.Listening // that the supervisor keeps open
	waits     bool             // for what follows
	mayBegin  chan struct{}    // closed when the data directory is this process's
	begin     sync.Once

	mu     sync.Mutex // guards the fields below
	node   *node.Node // nil until it can take connections
	early  []router.Handed
	yields bool // told to give way, perhaps before there was a node
	over   bool // nobody takes connections any more
}

// isSupervised reports whether this process was started by a supervisor; a variable that was merely inherited does not count.
func isSupervised() bool {
	pid, err := strconv.Atoi(os.Getenv(supervisorEnv))
	return err == nil && pid == os.Getppid()
}

// followSupervisor begins to send heartbeats and to take orders. What it starts ends with the process.
func followSupervisor(stop *stopper) (*heart, error) {
	insistOnParent(func() { os.Exit(exitFailed) })
	orders := os.NewFile(ordersFD, "orders")
	h := &heart{pipe: os.NewFile(heartFD, "heart"), mayBegin: make(chan struct{})}
	go func() {
		one := make([]byte, 1)
		for {
			if n, err := orders.Read(one); err != nil || n == 0 {
				os.Exit(exitFailed) // the supervisor is gone, and nobody else would watch
			}
			stop.pass()
		}
	}()
	go func() {
		for tick := time.NewTicker(beatEvery); ; <-tick.C {
			h.write(beatByte)
		}
	}()
	if os.Getenv(linkEnv) == "" {
		close(h.mayBegin)
		return h, nil
	}
	if err := h.joinLink(); err != nil {
		return nil, fault.Wrap(fault.Internal, "supervisor", err)
	}
	return h, nil
}

// joinLink takes the supervisor's first message and has the others followed.
func (h *heart) joinLink() (err error) {
	if h.link, err = newLink(os.NewFile(linkFD, "link")); err != nil {
		return err
	}
	buffer := make([]byte, maxPacket)
	m, files, err := h.link.receive(buffer)
	if err != nil {
		return err
	}
	h.waits = m.Wait
	var inherited []kept
	for i, file := range files {
		if i < len(m.Listeners) {
			inherited = append(inherited, kept{m.Listeners[i], file})
		}
	}
	if h.listeners, err = listening(inherited); err != nil {
		return err
	}
	go func() {
		for {
			m, files, err := h.link.receive(buffer)
			if err != nil {
				return // the end of the orders says the same
			}
			h.hear(m, files)
		}
	}()
	return nil
}

// hear acts on what the supervisor says.
func (h *heart) hear(m message, files []*os.File) {
	defer closeFiles(files)
	switch m.Say {
	case sayGo:
		h.begin.Do(func() { close(h.mayBegin) })
	case sayGiveWay:
		h.mu.Lock()
		defer h.mu.Unlock()
		if h.yields = true; h.node != nil {
			h.giveWayLocked()
		}
	case sayExplain:
		h.explain()
	case sayConn:
		if m.Conn == nil || len(files) != 1 {
			return
		}
		conn, err := net.FileConn(files[0])
		if err != nil {
			return // its client sees the end when the last descriptor is closed
		}
		peer, _ := netip.ParseAddr(m.Conn.Peer)
		h.adopt(router.Handed{Conn: conn, Unread: m.Conn.Unread, Peer: peer, Fresh: m.Conn.Fresh, Secure: m.Conn.Secure,
			Relayed: m.Conn.Relayed, SNI: m.Conn.SNI})
	}
}

// explain tells what holds the node.
func (h *heart) explain() {
	h.mu.Lock()
	n := h.node
	h.mu.Unlock()
	held := node.Holding{State: "starting"}
	if n != nil {
		held = n.Holding()
	}
	if b, err := json.Marshal(held); err == nil { // plain data
		h.say(message{Say: sayHolding, Holding: b})
	}
}

func (h *heart) adopt(in router.Handed) {
	h.mu.Lock()
	defer h.mu.Unlock()
	switch {
	case h.node != nil:
		h.node.Adopt(in)
	case h.over:
		in.Conn.Close()
	default:
		h.early = append(h.early, in)
	}
}

// attach gives the node what came before it was there, and what is to come.
func (h *heart) attach(n *node.Node) {
	if h == nil {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.node = n
	for _, in := range h.early {
		n.Adopt(in)
	}
	if h.early = nil; h.yields {
		h.giveWayLocked()
	}
}

func (h *heart) giveWayLocked() {
	h.node.GiveWay(node.Way{Take: h.hand, Closing: func() { h.say(message{Say: sayClosing}) }})
}

// hand gives a connection to the supervisor, which duplicates it for the next process.
func (h *heart) hand(out router.Handed) bool {
	m := message{Say: sayConn, Conn: &linkedConn{Unread: out.Unread, Fresh: out.Fresh, Secure: out.Secure, Relayed: out.Relayed, SNI: out.SNI}}
	if out.Peer.IsValid() {
		m.Conn.Peer = out.Peer.String()
	}
	return h.link.sendSocket(m, out.Conn) == nil
}

// succession is what the node has to do with the processes before and after it.
func (h *heart) succession(ctx context.Context) node.Succession {
	if h == nil || h.link == nil {
		return node.Succession{}
	}
	s := node.Succession{Inherited: h.listeners, Bound: h.bound, Opened: func() { h.say(message{Say: sayOpened}) }}
	if h.waits {
		s.Await = func() error {
			h.say(message{Say: sayPrepared, Version: version})
			select {
			case <-h.mayBegin:
				return nil
			case <-ctx.Done():
				return node.ErrStopped
			}
		}
	}
	return s
}

// bound gives the supervisor duplicates of the node's listeners.
func (h *heart) bound(list []node.Listening) {
	m := message{Say: sayListeners}
	var fds []int
	var files []*os.File
	defer func() { closeFiles(files) }()
	for _, l := range list {
		tcp, ok := l.Listener.(*net.TCPListener)
		if !ok {
			continue
		}
		file, err := tcp.File()
		if err != nil {
			continue // not kept open between two processes: worse, not wrong
		}
		files, fds = append(files, file), append(fds, fdOf(file))
		m.Listeners = append(m.Listeners, linkedAddr{l.Name, l.Addr})
	}
	_ = h.link.send(m, fds...) // a supervisor that is gone shows at once
}

// failed tells why this process ends, if it has a reason.
func (h *heart) failed(err error) {
	if h != nil && err != nil {
		text := err.Error()
		h.say(message{Say: sayFailed, Text: text[:min(len(text), 4<<10)]})
	}
}

// stopping tells that nobody is to wait in the listeners any more.
func (h *heart) stopping() {
	if h != nil {
		h.say(message{Say: sayStopping})
	}
}

// released tells that the data directory is free, and waits for what only this process can carry, for at most limit.
func (h *heart) released(ctx context.Context, n *node.Node, limit time.Duration) {
	if h == nil {
		return
	}
	h.say(message{Say: sayReleased})
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	n.Rest(ctx)
}

// ready tells that the node serves.
func (h *heart) ready() {
	if h != nil {
		h.write(readyByte)
	}
}

func (h *heart) write(b byte) { _, _ = h.pipe.Write([]byte{b}) } // the end of the orders tells when nobody listens

func (h *heart) say(m message) {
	if h.link != nil {
		_ = h.link.send(m) // as above
	}
}
