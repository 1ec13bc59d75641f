package gossip

import (
	"encoding/binary"
	"fmt"

	"github.com/hashicorp/memberlist"
)

// guard is what memberlist asks and tells. memberlist calls it from its own goroutines.
type guard struct {
	opt  Options
	meta []byte // this store's epoch
	bell *Bell
}

// allowed reports whether a node may take part: this very node, or one whose name and epoch the store knows.
func (g *guard) allowed(n *memberlist.Node) error {
	if len(n.Meta) != 8 {
		err := fmt.Errorf("node %.64q does not tell its epoch", n.Name)
		g.opt.Refused(Form, err.Error())
		return err
	}
	epoch := binary.BigEndian.Uint64(n.Meta)
	switch {
	case n.Name == g.opt.Name && epoch == g.opt.Epoch, g.opt.Allowed(n.Name, epoch):
		return nil
	}
	err := fmt.Errorf("node %.64q with epoch %016x is not a member", n.Name, epoch)
	g.opt.Refused(Stranger, err.Error())
	return err
}

// NotifyAlive implements memberlist.AliveDelegate.
func (g *guard) NotifyAlive(n *memberlist.Node) error { return g.allowed(n) }

// NodeMeta implements memberlist.Delegate.
func (g *guard) NodeMeta(int) []byte { return g.meta }

// NotifyMsg implements memberlist.Delegate.
func (g *guard) NotifyMsg(b []byte) {
	h, err := parseHead(b)
	if err != nil {
		g.opt.Refused(Form, err.Error())
		return
	}
	if h.Epoch == g.opt.Epoch || !g.bell.ready.Load() || !g.bell.newer(h) {
		return
	}
	g.opt.Rang(h)
	g.bell.spread(h) // so that it reaches those that its node does not
}

// GetBroadcasts implements memberlist.Delegate.
func (g *guard) GetBroadcasts(overhead, limit int) [][]byte {
	if !g.bell.ready.Load() {
		return nil
	}
	return g.bell.queue.GetBroadcasts(overhead, limit)
}

// LocalState implements memberlist.Delegate: heads travel in packets only.
func (g *guard) LocalState(bool) []byte { return nil }

// MergeRemoteState implements memberlist.Delegate.
func (g *guard) MergeRemoteState([]byte, bool) {}

// broadcast is one head in the queue; a newer one of the same node takes its place.
type broadcast struct {
	epoch uint64
	msg   []byte
}

// Invalidates implements memberlist.Broadcast.
func (b *broadcast) Invalidates(other memberlist.Broadcast) bool {
	o, ok := other.(*broadcast)
	return ok && o.epoch == b.epoch
}

// Name implements memberlist.NamedBroadcast.
func (b *broadcast) Name() string { return fmt.Sprintf("%016x", b.epoch) }

// Message implements memberlist.Broadcast.
func (b *broadcast) Message() []byte { return b.msg }

// Finished implements memberlist.Broadcast.
func (b *broadcast) Finished() {}
