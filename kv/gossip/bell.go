package gossip

import (
	"context"
	"encoding/binary"
	"log"
	"log/slog"
	"net"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hashicorp/memberlist"

	"edged/internal/fault"
)

// Options say who this node is on the doorbell. Package kv fills in all below Tick.
type Options struct {
	Bind    string        // host:port to listen on, UDP and TCP; port 0 takes a free one
	KeyFile string        // required; see Bell
	Tick    time.Duration // between rounds of gossip, 0 means 50 ms

	Name    string
	Epoch   uint64
	Allowed func(name string, epoch uint64) bool // may this node take part; any goroutine
	Rang    func(Head)                           // a newer head arrived; any goroutine, must not block
	Refused func(r Refusal, detail string)       // something was refused; any goroutine, must not block
	Log     *slog.Logger
}

// Bell is this node's end of the doorbell. All methods are safe for concurrent use.
//
// The key file holds one key a line, base64 of 32 random bytes; the first encrypts, all decrypt, so that a key can be changed by
// adding the new one everywhere, moving it to the front everywhere, and removing the old one.
type Bell struct {
	opt   Options
	list  *memberlist.Memberlist
	queue memberlist.TransmitLimitedQueue
	ready atomic.Bool // list is set: memberlist calls back before Create returns

	mu    sync.Mutex
	heads map[uint64]uint64 // newest sequence per epoch that was heard
	peers []string
}

// Open reads the key and starts to listen; Run joins the others and Close (by Run's end) leaves. Errors: Invalid for options,
// Unavailable when the port is taken.
func Open(opt Options) (*Bell, error) {
	if opt.Tick == 0 {
		opt.Tick = 50 * time.Millisecond
	}
	keys, err := readKeys(opt.KeyFile)
	if err != nil {
		return nil, err
	}
	host, portText, err := net.SplitHostPort(opt.Bind)
	port, perr := strconv.ParseUint(portText, 10, 16)
	if err != nil || perr != nil {
		return nil, fault.Newf(fault.Invalid, "gossip.Open", "gossip address %q is not host:port", opt.Bind)
	}
	b := &Bell{opt: opt, heads: map[uint64]uint64{}}
	g := &guard{opt: opt, bell: b, meta: binary.BigEndian.AppendUint64(nil, opt.Epoch)}
	c := memberlist.DefaultLANConfig()
	c.Name = opt.Name
	c.BindAddr, c.BindPort, c.AdvertisePort = host, int(port), int(port)
	c.GossipInterval = opt.Tick
	c.Keyring, err = memberlist.NewKeyring(keys, keys[0])
	if err != nil {
		return nil, fault.Wrap(fault.Invalid, "gossip.Open", err)
	}
	c.Delegate, c.Alive = g, g
	c.DeadNodeReclaimTime = 10 * time.Second // a node that comes back with another address
	c.Logger = log.New(logWriter{opt}, "", 0)
	b.queue.NumNodes = func() int { return b.list.NumMembers() }
	b.queue.RetransmitMult = c.RetransmitMult
	if b.list, err = memberlist.Create(c); err != nil {
		return nil, fault.Wrap(fault.Unavailable, "gossip.Open", err)
	}
	b.ready.Store(true)
	return b, nil
}

// Addr returns the host:port that others join.
func (b *Bell) Addr() string { return b.list.LocalNode().Address() }

// Tick returns the time between rounds of gossip.
func (b *Bell) Tick() time.Duration { return b.opt.Tick }

// Nodes returns how many nodes take part as far as this one knows, itself included.
func (b *Bell) Nodes() int { return b.list.NumMembers() }

// SetPeers replaces the addresses that Run joins.
func (b *Bell) SetPeers(addrs []string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.peers = slices.Clone(addrs)
}

// Ring tells the fleet this store's head, in place of the one that was told before.
func (b *Bell) Ring(h Head) {
	h.Epoch = b.opt.Epoch
	b.spread(h)
}

func (b *Bell) spread(h Head) { b.queue.QueueBroadcast(&broadcast{h.Epoch, h.append(nil)}) }

// newer reports whether a head is the newest of its store, and notes it.
func (b *Bell) newer(h Head) bool {
	if !b.known(h.Epoch) {
		return false
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.heads[h.Epoch] >= h.Seq {
		return false
	}
	b.heads[h.Epoch] = h.Seq
	return true
}

// known keeps the table of heads as small as the list of members.
func (b *Bell) known(epoch uint64) bool {
	for _, n := range b.list.Members() {
		if len(n.Meta) == 8 && binary.BigEndian.Uint64(n.Meta) == epoch {
			return b.opt.Allowed(n.Name, epoch)
		}
	}
	return false
}

// rejoin is the time between tries to reach members that gossip has given up on: memberlist never tries them again by itself.
const rejoin = time.Second

// Run joins the peers, again and again while some are missing, until ctx is done. Then it leaves and closes.
func (b *Bell) Run(ctx context.Context) {
	tick := time.NewTicker(rejoin)
	defer tick.Stop()
	for {
		b.mu.Lock()
		peers := b.peers
		b.mu.Unlock()
		if missing := b.missing(peers); len(missing) > 0 {
			if _, err := b.list.Join(missing); err != nil {
				b.opt.Log.Debug("gossip does not reach all members", "err", err)
			}
		}
		select {
		case <-ctx.Done():
			b.list.Leave(time.Second)
			b.list.Shutdown()
			return
		case <-tick.C:
		}
	}
}

// missing returns the addresses that no node of the list has.
func (b *Bell) missing(peers []string) []string {
	have := map[string]bool{}
	for _, n := range b.list.Members() {
		have[n.Address()] = true
	}
	return slices.DeleteFunc(slices.Clone(peers), func(p string) bool { return have[p] })
}
