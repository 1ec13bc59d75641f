package control

import (
	"errors"
	"maps"
	"net"
	"slices"
	"sync"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/raft"
)

// rpcTimeout bounds a message between voters; a snapshot has as much for each 256 KiB.
const rpcTimeout = 10 * time.Second

// transport is how voters reach each other; a lone one has nobody to reach.
func (o *Options) transport(lone *raft.InmemTransport, log hclog.Logger) interface {
	raft.Transport
	raft.WithClose
} {
	if o.Fleet == nil {
		return lone
	}
	return raft.NewNetworkTransportWithConfig(&raft.NetworkTransportConfig{
		Stream: &streams{node: o.NodeID, fleet: o.Fleet, open: map[net.Conn]struct{}{}}, MaxPool: 3, Timeout: rpcTimeout, Logger: log,
	})
}

// streams are the connections between voters, which end with the transport: raft itself leaves them open.
type streams struct {
	node  string
	fleet *FleetOptions

	mu     sync.Mutex
	open   map[net.Conn]struct{}
	closed bool
}

// Accept, Dial, Addr and Close are raft.StreamLayer's.
func (s *streams) Accept() (net.Conn, error) { return s.kept(s.fleet.Listener.Accept()) }

func (s *streams) Dial(addr raft.ServerAddress, timeout time.Duration) (net.Conn, error) {
	return s.kept(s.fleet.Dial(string(addr), timeout))
}

// Addr is this voter's address in the log.
func (s *streams) Addr() net.Addr { return memberAddr(s.node) }

func (s *streams) Close() error {
	s.mu.Lock()
	open := slices.Collect(maps.Keys(s.open))
	s.closed = true
	s.mu.Unlock()
	err := s.fleet.Listener.Close()
	for _, conn := range open {
		_ = conn.Close() // nobody is left to be told
	}
	return err
}

func (s *streams) kept(conn net.Conn, err error) (net.Conn, error) {
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil, errors.Join(net.ErrClosed, conn.Close())
	}
	out := &stream{conn, s}
	s.open[out] = struct{}{}
	return out, nil
}

type stream struct {
	net.Conn
	of *streams
}

// Close ends the stream and forgets it.
func (s *stream) Close() error {
	err := s.Conn.Close()
	s.of.mu.Lock()
	defer s.of.mu.Unlock()
	delete(s.of.open, s)
	return err
}

// memberAddr is a member's ID as the address of its streams.
type memberAddr string

// Network and String are net.Addr's.
func (memberAddr) Network() string  { return "edged" }
func (a memberAddr) String() string { return string(a) }
