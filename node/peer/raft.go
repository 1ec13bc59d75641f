package peer

import (
	"context"
	"net"
	"time"

	"edged/internal/fault"
)

// RaftConn is a stream between two members. Closing the connection of a removed member is Recheck's.
type RaftConn struct {
	net.Conn
	Member string // who is at the other end
}

// RaftListener gives raft the streams that other members open; every connection of Accept is a *RaftConn. Its Close ends
// Accept and has later streams refused; Run closes it at its end.
type RaftListener struct{ *handoff }

// RaftListener takes raft's streams from now on. A later call takes them from the listener of an earlier one, which is
// closed. Before the first call streams are refused. Its address is this member's ID, by which DialRaft finds it.
func (p *Peers) RaftListener() *RaftListener {
	l := &RaftListener{newHandoff(memberAddr(p.opt.Node))}
	if old := p.raft.Swap(l); old != nil {
		old.Close()
	}
	return l
}

func (p *Peers) offerRaft(ctx context.Context, c *RaftConn) error {
	l := p.raft.Load()
	if l == nil {
		return fault.New(fault.Unavailable, "peer.raft", "this member takes no raft streams")
	}
	return l.offer(ctx, c)
}

// DialRaft opens a stream to a member, of type *RaftConn, within timeout. The errors are those of Client.
func (p *Peers) DialRaft(member string, timeout time.Duration) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(context.Background(), timeout) // raft's interface has no context
	defer cancel()
	c, err := p.dial(ctx, member, protoRaft)
	if err != nil {
		return nil, err
	}
	return &RaftConn{Conn: c, Member: member}, nil
}

// memberAddr is a member's ID as the address of its raft streams.
type memberAddr string

// Network returns the protocol.
func (memberAddr) Network() string { return protoRaft }

// String returns the member's ID.
func (a memberAddr) String() string { return string(a) }
