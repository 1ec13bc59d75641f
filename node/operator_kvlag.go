package node

import (
	"fmt"
	"strconv"
	"strings"

	"edged/control/operator"
	"edged/internal/fault"
	"edged/kv/replica"
)

// kvLag is how this node's store stands among the other members', as operators see it.
type kvLag struct {
	Alone       bool      `json:"alone"` // no members: nothing to be behind
	Epoch       string    `json:"epoch"`
	Resurrected uint64    `json:"resurrected"` // deletes that came back; must stay 0
	Peers       []kvPeer  `json:"peers"`
	Namespaces  []kvSpace `json:"namespaces"`
}

type kvPeer struct {
	Name         string `json:"name"`
	Epoch        string `json:"epoch"`
	Pulled       bool   `json:"pulled"` // this node reads that member's feed
	Known        bool   `json:"known"`  // it was heard of since the start
	Records      uint64 `json:"records"`
	BehindMillis int64  `json:"behindMillis"`
}

type kvSpace struct {
	UID        string             `json:"uid"`
	Records    int64              `json:"records"`
	Bytes      int64              `json:"bytes"`
	Newest     *string            `json:"newest"`
	Watermarks map[string]*string `json:"watermarks"` // newest write here, by the epoch of the store that wrote it
}

func (n *Node) kvLag(c *operator.Call) error {
	l := n.stores.kv.Lag()
	out := kvLag{Alone: l.Alone, Epoch: l.Epoch.String(), Resurrected: l.Resurrected, Peers: []kvPeer{}, Namespaces: []kvSpace{}}
	for _, p := range l.Peers {
		out.Peers = append(out.Peers, kvPeer{p.Name, p.Epoch.String(), p.Pulled, p.Known, p.Records, p.Behind.Milliseconds()})
	}
	for _, s := range l.Spaces {
		space := kvSpace{s.UID, s.Records, s.Bytes, stamp(s.Newest), map[string]*string{}}
		for origin, at := range s.Watermark {
			space.Watermarks[origin.String()] = stamp(at)
		}
		out.Namespaces = append(out.Namespaces, space)
	}
	return c.JSON(out)
}

// kvPosition says what a store that has all of this one's writes so far covers, for a wait on another node.
func (n *Node) kvPosition(c *operator.Call) error {
	origin, seq := n.stores.kv.Position()
	return c.JSON(map[string]string{"position": fmt.Sprintf("%s:%d", origin, seq)})
}

// kvWait answers once this node has all up to a position of another, or of itself.
func (n *Node) kvWait(c *operator.Call) error {
	epoch, text, ok := strings.Cut(c.Query.Get("until"), ":")
	origin, oerr := strconv.ParseUint(epoch, 16, 64)
	seq, serr := strconv.ParseUint(text, 10, 64)
	if !ok || oerr != nil || serr != nil || len(epoch) != 16 {
		return fault.New(fault.Invalid, "node.kv", "until must be a position, as edged kv position prints it")
	}
	if err := n.stores.kv.Wait(c.Context(), replica.Origin(origin), seq); err != nil {
		return err
	}
	return c.JSON(struct{}{})
}
