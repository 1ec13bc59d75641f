package kv

import (
	"context"
	"time"

	"edged/internal/fault"
	"edged/kv/gossip"
	"edged/kv/replica"
)

// openGossip joins the doorbell of the fleet.
func (s *Store) openGossip() (*gossip.Bell, error) {
	opt := *s.opt.Peers.Gossip
	opt.Name, opt.Epoch, opt.Log = s.opt.Node, uint64(s.ledger.epoch), s.opt.Log
	opt.Allowed = func(name string, epoch uint64) bool {
		m, ok := s.member(replica.Origin(epoch))
		return ok && m.Name == name
	}
	opt.Rang = s.rang
	opt.Refused = func(r gossip.Refusal, detail string) {
		s.refused(map[gossip.Refusal]string{gossip.Stranger: refusedEpoch, gossip.Key: refusedKey, gossip.Form: refusedForm}[r], "gossip: "+detail)
	}
	bell, err := gossip.Open(opt)
	if err != nil {
		return nil, fault.Wrap(fault.CodeOf(err), "kv.Run", err)
	}
	s.bell.Store(bell)
	return bell, nil
}

// GossipAddr returns the host:port of this node's doorbell, "" while it has none.
func (s *Store) GossipAddr() string {
	if b := s.bell.Load(); b != nil {
		return b.Addr()
	}
	return ""
}

// rang notes a head that gossip brought and wakes the session with that member if it sleeps.
func (s *Store) rang(h gossip.Head) {
	o := replica.Origin(h.Epoch)
	if _, ok := s.member(o); !ok {
		return
	}
	w := &s.seen
	w.mu.Lock()
	if w.heads[o].Seq < h.Seq {
		w.heads[o] = h
	}
	w.mu.Unlock()
	if bells := s.doorbells.Load(); bells != nil {
		select {
		case (*bells)[o] <- struct{}{}: // a nil channel is never ready
		default:
		}
	}
}

// runGossip tells the fleet this store's durable head, at most once per tick, and keeps the member list of gossip in step.
func (s *Store) runGossip(ctx context.Context, bell *gossip.Bell) {
	done := make(chan struct{})
	go func() { // ends with ctx; waited for below
		defer close(done)
		bell.Run(ctx)
	}()
	tick := time.NewTicker(bell.Tick())
	defer tick.Stop()
	var told uint64
	for ctx.Err() == nil {
		var addrs []string
		for _, m := range s.Members() {
			if m.Gossip != "" {
				addrs = append(addrs, m.Gossip)
			}
		}
		bell.SetPeers(addrs)
		if seq := s.durableSeq(ctx); seq > told {
			told = seq
			bell.Ring(gossip.Head{Seq: seq, Ms: s.opt.clock()})
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
		}
	}
	<-done
}

// durableSeq returns the last own sequence number after waiting until it is durable; 0 when ctx is done before.
func (s *Store) durableSeq(ctx context.Context) uint64 {
	s.ledger.mu.Lock()
	seq, staged := s.ledger.seq, s.ledger.staged
	s.ledger.mu.Unlock()
	if s.ledger.wait(ctx, staged) != nil {
		return 0
	}
	return seq
}
