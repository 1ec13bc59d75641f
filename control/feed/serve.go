package feed

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"math/rand/v2"
	"net/http"
	"strconv"
	"strings"
	"time"

	"edged/control/artifact"
	"edged/internal/fault"
)

// The paths of the peer protocol.
const (
	pathFeed    = "/plan/v1/feed"
	pathServing = "/plan/v1/serving"
	pathBlob    = "/blob/v1/"
)

const (
	heartbeat  = 5 * time.Second  // a feed with nothing to say says so this often, unless the follower asks for it more often
	quickBeat  = time.Second      // how often followers ask for it, and as often as it is given
	quickStall = 5 * quickBeat    // and how long an upstream may then be silent: a machine that vanishes is missed for no longer
	stall      = 15 * time.Second // who takes nothing, or says nothing, for this long is cut off
	beatSlots  = 4                // instants in a beat at which feeds beat: many share a waking of the process, and no burst has all of them
	maxStreams = 1024             // feeds at once
	maxBlobs   = 64               // files that are sent at once
	blobTime   = 2 * time.Minute  // for one file: 16 MiB at 140 KiB/s
	maxReport  = 1 << 10          // bytes of a report
)

// headerBeat says, in milliseconds, how often a feed beats that was asked to beat more often. An upstream that knows nothing of that says
// nothing, and has the stall time.
const headerBeat = "Edged-Feed-Beat"

// beatOf returns how often a follower wants to hear that there is nothing new; 0 if it does not say.
func beatOf(text string) time.Duration {
	ms, err := strconv.ParseUint(text, 10, 16)
	if err != nil || ms == 0 {
		return 0
	}
	return min(max(time.Duration(ms)*time.Millisecond, quickBeat), heartbeat)
}

// Handler serves the feed and takes reports. The caller puts it under "/plan/v1/" on the peer listener.
func (s *Server) Handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET "+pathFeed, s.serveFeed)
	mux.HandleFunc("POST "+pathServing, s.serveServing)
	return mux
}

func (s *Server) serveFeed(w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	var at position
	var err, err2, err3 error
	at.epoch, err = strconv.ParseUint(q.Get("epoch"), 10, 64)
	at.index, err2 = strconv.ParseUint(q.Get("from"), 10, 64)
	at.partial, err3 = strconv.ParseBool(q.Get("partial"))
	if errors.Join(err, err2, err3) != nil {
		http.Error(w, "epoch, from or partial is malformed", http.StatusBadRequest)
		return
	}
	epoch, ended, err := s.begin(at)
	if err != nil {
		w.Header().Set("Retry-After", "1")
		http.Error(w, err.Error(), http.StatusServiceUnavailable)
		return
	}
	defer s.end()
	w.Header().Set("Content-Type", "application/octet-stream")
	member := s.opt.Caller(r)
	filter := s.opt.Filter(member)
	st := &stream{s: s, w: w, rc: http.NewResponseController(w), filter: filter, ended: ended, at: at.index, beat: heartbeat}
	if beat := beatOf(q.Get("beat")); beat != 0 {
		st.beat = beat
		w.Header().Set(headerBeat, strconv.FormatInt(beat.Milliseconds(), 10))
	}
	st.known = at.epoch == epoch && at.partial == (filter != nil)
	err = st.run(r.Context(), epoch)
	s.opt.Log.Debug("feed ended", "member", member, "err", err)
}

// stream is one feed as it is sent. It holds one frame at a time: a slow follower costs its connection and no more.
type stream struct {
	s      *Server
	w      io.Writer
	rc     *http.ResponseController
	filter *Filter
	ended  <-chan struct{} // of the server when the feed began
	at     uint64          // index of the plan that the follower has by now
	known  bool            // at is one of this epoch and filter
	beat   time.Duration
}

// write gives the follower bytes, which it has to take within the stall time.
func (st *stream) write(b []byte) error {
	const most = 256 << 10 // so that a long whole is not cut off while it is being taken
	for len(b) > 0 {
		n := min(most, len(b))
		if err := st.rc.SetWriteDeadline(time.Now().Add(stall)); err != nil {
			return err
		}
		if _, err := st.w.Write(b[:n]); err != nil {
			return err
		}
		b = b[n:]
	}
	return nil
}

func (st *stream) run(ctx context.Context, epoch uint64) error {
	if err := st.write(appendHello(nil, epoch, st.filter != nil)); err != nil {
		return err
	}
	slot := st.beat / beatSlots * rand.N[time.Duration](beatSlots)
	beat := time.NewTimer(st.untilBeat(slot))
	defer beat.Stop()
	for {
		age := st.s.age() // first: what is found after it is at least as new
		next := st.s.after(st.at)
		select {
		case <-st.ended: // asked after the look: what was found may belong to another epoch
			return errAnew
		default:
		}
		if err := st.send(next); err != nil {
			return err
		}
		if next.whole || !st.known || len(next.entries) > 0 {
			st.known = true
			continue
		}
		if err := errors.Join(st.write(appendBeat(nil, next.newest, age)), st.rc.Flush()); err != nil {
			return err
		}
		select {
		case <-next.moved:
		case <-beat.C:
			beat.Reset(st.untilBeat(slot))
		case <-st.ended:
			return errAnew
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// untilBeat returns the time until the next beat in a slot.
func (st *stream) untilBeat(slot time.Duration) time.Duration {
	now := time.Now().Add(-slot)
	return now.Truncate(st.beat).Add(st.beat).Sub(now)
}

func (st *stream) send(next step) error {
	if next.whole || !st.known {
		return st.sendWhole()
	}
	for _, e := range next.entries {
		frames := e.frames
		if d := e.delta; st.filter != nil && len(d.Crons.Put)+len(d.Consumers.Put) > 0 {
			var err error
			if frames, err = appendChange(nil, e.prev, st.filter.pass(d)); err != nil {
				return err
			}
		}
		if err := st.write(frames); err != nil {
			return err
		}
		st.at = e.index
	}
	return nil
}

func (st *stream) sendWhole() error {
	snap, err := st.s.snapshot()
	if err == nil && snap.ended != st.ended {
		err = errAnew
	}
	if err != nil {
		return err
	}
	tail, err := snap.tail(st.filter)
	if err != nil {
		return err
	}
	st.s.opt.Metrics.wholes.Inc()
	st.at = snap.index
	return errors.Join(st.write(snap.frames), st.write(tail))
}

// Program is what a member says of the program that it runs.
type Program struct {
	Version string `json:"version,omitempty"` // for people, at most 64 bytes
	Level   int    `json:"level,omitempty"`   // of the control log's commands (state.Level); 0 from programs that announce none
}

const maxVersion = 64

// report is what a member says that it serves, and with which program. A program that knows less of it passes the rest over.
type report struct {
	Epoch uint64 `json:"epoch"`
	Index uint64 `json:"index"`
	Program
}

func (s *Server) serveServing(w http.ResponseWriter, r *http.Request) {
	var rep report
	body, err := io.ReadAll(io.LimitReader(r.Body, maxReport))
	if err == nil {
		err = json.Unmarshal(body, &rep)
	}
	if err == nil && (len(rep.Version) > maxVersion || strings.ContainsFunc(rep.Version, func(r rune) bool { return r <= ' ' || r >= 0x7f })) {
		rep.Version = "" // it goes to a terminal
	}
	member := s.opt.Caller(r)
	if err != nil || member == "" {
		http.Error(w, "the report is malformed or of nobody", http.StatusBadRequest)
		return
	}
	if !s.serving.note(member, rep, time.Now()) {
		http.Error(w, "too many members report", http.StatusTooManyRequests)
		return
	}
	w.WriteHeader(http.StatusNoContent)
}

// Blobs serves the files of a node by their digest to any member. The caller puts it under "/blob/v1/" on the peer listener.
func Blobs(files *artifact.Store) http.Handler {
	places := make(chan struct{}, maxBlobs)
	mux := http.NewServeMux()
	mux.HandleFunc("GET "+pathBlob+"{digest}", func(w http.ResponseWriter, r *http.Request) {
		digest, ok := artifact.ParseDigest(r.PathValue("digest"))
		if !ok {
			http.Error(w, "the digest is malformed", http.StatusBadRequest)
			return
		}
		select {
		case places <- struct{}{}:
			defer func() { <-places }()
		default:
			w.Header().Set("Retry-After", "1")
			http.Error(w, "as many files are being sent as may be", http.StatusServiceUnavailable)
			return
		}
		blob, err := files.Open(digest)
		if err != nil {
			http.Error(w, fault.CodeOf(err).String(), fault.CodeOf(err).HTTPStatus())
			return
		}
		defer blob.Close()
		_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(blobTime)) // a recorder has none
		w.Header().Set("Content-Type", "application/octet-stream")
		http.ServeContent(w, r, "", time.Time{}, blob)
	})
	return mux
}
