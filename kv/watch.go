package kv

import (
	"context"
	"errors"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"edged/internal/fault"
	"edged/kv/gossip"
	"edged/kv/replica"
)

// watch is what is known of the other members: for lag, for waiting, for tombstones.
type watch struct {
	mu    sync.Mutex
	level map[replica.Origin]time.Time // when this store last had all that a member had
	heads map[replica.Origin]gossip.Head
	moved chan struct{} // closed when a vector may have grown; nil while nobody waits
}

// level notes that this store has all that a member had.
func (s *Store) level(m Member, mark replica.Mark) {
	w := &s.seen
	w.mu.Lock()
	defer w.mu.Unlock()
	w.level[m.Epoch] = time.Now()
	if h := w.heads[m.Epoch]; h.Seq < mark.Vector[m.Epoch] {
		w.heads[m.Epoch] = gossip.Head{Epoch: uint64(m.Epoch), Seq: mark.Vector[m.Epoch], Ms: mark.Now}
	}
	if w.moved != nil {
		close(w.moved)
		w.moved = nil
	}
}

// PeerLag says how far behind a member this store is.
type PeerLag struct {
	Name    string
	Epoch   replica.Origin
	Pulled  bool          // this node reads that member's feed
	Records uint64        // known to be written there and not here
	Behind  time.Duration // since this store last had all that the member had; 0 while it is level
	Known   bool          // false until the member was heard of since start
}

// SpaceLag says what of a namespace is here.
type SpaceLag struct {
	UID       string
	Records   int64 // live, or expired and not swept yet
	Bytes     int64
	Newest    time.Time                    // of the newest write that is here
	Watermark map[replica.Origin]time.Time // the same by epoch of the store that wrote it, since start
}

// Lag is how this store stands among the others.
type Lag struct {
	Alone       bool // no members: nothing to be behind
	Epoch       replica.Origin
	Vector      replica.Vector
	Peers       []PeerLag
	Spaces      []SpaceLag
	Resurrected uint64 // must stay 0
}

const levelFor = 3 * heartbeat // a member that was level this short ago, with nothing known to be missing, still is

// Lag returns how this store stands among the others.
func (s *Store) Lag() Lag {
	v, _ := s.ledger.covers()
	members := s.Members()
	l := Lag{Alone: len(members) == 0, Epoch: s.ledger.epoch, Vector: v, Resurrected: s.ledger.returned.Load()}
	for _, m := range members {
		l.Peers = append(l.Peers, s.peerLag(m, v))
	}
	s.ledger.spaces.Range(func(_, x any) bool {
		if sp := x.(*space); sp.is() == stateLive {
			l.Spaces = append(l.Spaces, sp.lag())
		}
		return true
	})
	slices.SortFunc(l.Spaces, func(a, b SpaceLag) int { return strings.Compare(a.UID, b.UID) })
	return l
}

func (s *space) lag() SpaceLag {
	out := SpaceLag{UID: s.uid, Records: s.records.Load(), Bytes: s.bytes.Load(), Watermark: map[replica.Origin]time.Time{}}
	if h := replica.HLC(s.newest.Load()); h != 0 {
		out.Newest = h.Time()
	}
	for o, h := range s.watermarks() {
		out.Watermark[o] = h.Time()
	}
	return out
}

func (s *Store) peerLag(m Member, v replica.Vector) PeerLag {
	w := &s.seen
	w.mu.Lock()
	defer w.mu.Unlock()
	out := PeerLag{Name: m.Name, Epoch: m.Epoch}
	if bells := s.doorbells.Load(); bells != nil {
		out.Pulled = (*bells)[m.Epoch] != nil
	}
	head, level := w.heads[m.Epoch], w.level[m.Epoch]
	if out.Known = head.Epoch != 0 || !level.IsZero(); !out.Known {
		return out
	}
	if mine := v[m.Epoch]; head.Seq > mine {
		out.Records = head.Seq - mine
	}
	since := time.Since(level)
	if level.IsZero() {
		since = time.Since(time.UnixMilli(head.Ms))
	}
	if out.Records > 0 || out.Pulled && since > levelFor {
		out.Behind = since
	}
	return out
}

// Position returns what a store that has all of this one's writes so far covers, for Wait on another node.
func (s *Store) Position() (replica.Origin, uint64) {
	_, seq := s.ledger.covers()
	return s.ledger.epoch, seq
}

// Wait blocks until this store has all that origin wrote up to seq, or ctx is done.
func (s *Store) Wait(ctx context.Context, origin replica.Origin, seq uint64) error {
	w := &s.seen
	for {
		w.mu.Lock()
		if w.moved == nil {
			w.moved = make(chan struct{})
		}
		moved := w.moved
		w.mu.Unlock()
		if v, _ := s.ledger.covers(); v.Covers(origin, seq) {
			return nil
		}
		select {
		case <-moved:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

const (
	askEvery   = time.Minute
	auditEvery = time.Hour
)

// runWatch keeps gauges current, asks members that are not pulled from for their vectors, and compares digests.
func (s *Store) runWatch(ctx context.Context) {
	gauge := time.NewTicker(heartbeat)
	defer gauge.Stop()
	ask := time.NewTicker(askEvery)
	defer ask.Stop()
	audit := time.NewTicker(auditEvery)
	defer audit.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-gauge.C:
			s.showLag()
		case <-ask.C:
			s.askVectors(ctx)
		case <-audit.C:
			s.auditAll(ctx)
		}
	}
}

func (s *Store) showLag() {
	var records uint64
	var behind time.Duration
	live := 0
	for _, p := range s.Lag().Peers {
		records, behind = max(records, p.Records), max(behind, p.Behind)
		if p.Known && p.Behind == 0 {
			live++
		}
	}
	s.opt.Metrics.lagRecs.Set(float64(records))
	s.opt.Metrics.lagTime.Set(behind.Seconds())
	s.opt.Metrics.live.Set(float64(live))
}

// askVectors asks members whose feed is not read here for their vectors, which tombstones wait for.
func (s *Store) askVectors(ctx context.Context) {
	bells := s.doorbells.Load()
	for _, m := range s.Members() {
		if bells != nil && (*bells)[m.Epoch] != nil {
			continue
		}
		if v, err := s.askVector(ctx, m); err == nil {
			s.advertised(m.Epoch, v)
		} else {
			s.opt.Log.Debug("member does not tell its vector", "peer", m.Name, "err", err)
		}
	}
}

func (s *Store) askVector(ctx context.Context, m Member) (replica.Vector, error) {
	b, err := s.ask(ctx, m, pathVector, maxVectorLen)
	if err != nil {
		return nil, err
	}
	return replica.ParseVector(b)
}

// ask gets a small answer from a member.
func (s *Store) ask(ctx context.Context, m Member, path string, most int64) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, stall)
	defer cancel()
	req, err := s.request(ctx, m, "GET", path, nil)
	if err != nil {
		return nil, err
	}
	resp, err := s.send(req, http.StatusOK)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(io.LimitReader(resp.Body, most+1))
	if err == nil && int64(len(b)) > most {
		err = errors.New("the answer is too long")
	}
	return b, fault.Wrap(fault.Unavailable, "kv.ask", err)
}
