package kv

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"

	"edged/internal/fault"
	"edged/kv/replica"
)

// The paths of the peer protocol, below the node's peer listener.
const (
	pathFeed   = "/kv/v1/feed"
	pathBlob   = "/kv/v1/blob/"
	pathVector = "/kv/v1/vector"
	pathAudit  = "/kv/v1/audit"
)

const (
	heartbeat    = 5 * time.Second      // a feed with nothing to say says so this often
	stall        = 30 * time.Second     // a peer that takes nothing, or says nothing, for this long is cut off
	coalesce     = 4 * time.Millisecond // at least this long between two units at the end of a feed
	maxVectorLen = 4 + 16*replica.MaxOrigins
)

// Handler serves this store's feed, vector and value files to the other members. The caller puts it under "/kv/v1/" on a
// listener with mutual TLS. Only members of the list are answered, each under its own name and epoch.
func (s *Store) Handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("POST "+pathFeed, s.guarded(s.serveFeed))
	mux.HandleFunc("GET "+pathBlob+"{digest}", s.guarded(s.serveBlob))
	mux.HandleFunc("GET "+pathVector, s.guarded(s.serveVector))
	mux.HandleFunc("GET "+pathAudit, s.guarded(s.serveAudit))
	return mux
}

// The headers by which two stores name the epochs they talk as and to.
const (
	headerFrom = "Edged-Kv-From"
	headerTo   = "Edged-Kv-To"
)

// guarded answers members only, and only when they mean this very store.
func (s *Store) guarded(h func(http.ResponseWriter, *http.Request, replica.Origin)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		from, err := strconv.ParseUint(r.Header.Get(headerFrom), 16, 64)
		to, err2 := strconv.ParseUint(r.Header.Get(headerTo), 16, 64)
		if s.opt.Peers == nil || errors.Join(err, err2) != nil {
			s.refuse(w, refusedForm, "no epochs are named", http.StatusBadRequest)
			return
		}
		name, err := s.opt.Peers.Name(r)
		peer := replica.Origin(from)
		m, listed := s.member(peer)
		switch {
		case err != nil || listed && m.Name != name:
			s.refuse(w, refusedName, "the certificate is not that of the member with this epoch", http.StatusForbidden)
		case s.mayTalk(peer) != nil:
			s.refuse(w, refusedEpoch, s.mayTalk(peer).Error(), http.StatusForbidden)
		case replica.Origin(to) != s.ledger.epoch:
			s.refuse(w, refusedEpoch, "this store has another epoch", http.StatusConflict)
		default:
			s.serving.Add(1)
			defer s.serving.Add(-1)
			h(w, r, peer)
		}
	}
}

func (s *Store) refuse(w http.ResponseWriter, reason, text string, status int) {
	s.refused(reason, text)
	http.Error(w, text, status)
}

func (s *Store) serveFeed(w http.ResponseWriter, r *http.Request, peer replica.Origin) {
	from, err := strconv.ParseUint(r.URL.Query().Get("from"), 10, 64)
	body, rerr := io.ReadAll(io.LimitReader(r.Body, maxVectorLen+1))
	vector, verr := replica.ParseVector(body)
	if errors.Join(err, rerr, verr) != nil {
		s.refuse(w, refusedForm, "position or vector is malformed", http.StatusBadRequest)
		return
	}
	w.Header().Set("Content-Type", "application/octet-stream")
	err = s.feed(r.Context(), feedWriter{w, http.NewResponseController(w)}, replica.NewFeeder(peer, from, vector), peer)
	s.opt.Log.Debug("feed ended", "peer", peer, "err", err)
}

// feedWriter writes to a peer that must keep reading.
type feedWriter struct {
	w  http.ResponseWriter
	rc *http.ResponseController
}

func (w feedWriter) write(b []byte, flush bool) error {
	if err := w.rc.SetWriteDeadline(time.Now().Add(stall)); err != nil {
		return err
	}
	if _, err := w.w.Write(b); err != nil || !flush {
		return err
	}
	return w.rc.Flush()
}

// feed sends units until the peer goes, stalls, or stops being a member. One unit is in memory, and no snapshot is held while
// it is written: a slow peer costs nothing but its connection.
func (s *Store) feed(ctx context.Context, w feedWriter, f *replica.Feeder, peer replica.Origin) error {
	beat := time.NewTicker(heartbeat)
	defer beat.Stop()
	pace := time.NewTimer(0)
	defer pace.Stop()
	var buf []byte
	for {
		live, shown, b, err := s.nextUnit(ctx, f, peer, buf[:0])
		if err != nil {
			return err
		}
		if buf = b; cap(buf) > 2*replica.MaxChunkBytes {
			buf = nil
		}
		if err := w.write(b, live); err != nil {
			return err
		}
		if !live {
			continue
		}
		select { // what comes at once goes as one
		case <-pace.C:
		case <-ctx.Done():
			return ctx.Err()
		}
		pace.Reset(coalesce)
		if moved := s.ledger.waiter(shown + 1); moved != nil {
			select {
			case <-moved:
			case <-beat.C:
			case <-ctx.Done():
				return ctx.Err()
			}
		}
	}
}

// nextUnit appends the next unit, from a view that is durable. shown is what the view showed.
func (s *Store) nextUnit(ctx context.Context, f *replica.Feeder, peer replica.Origin, dst []byte) (live bool, shown uint64, b []byte, err error) {
	if err := s.mayTalk(peer); err != nil {
		return false, 0, nil, err
	}
	v := s.ledger.view()
	defer v.snap.Close()
	if err := s.ledger.wait(ctx, v.staged); err != nil {
		return false, 0, nil, err
	}
	s.coverMu.Lock()
	f.Learn(s.coverage.Has(peer))
	s.coverMu.Unlock()
	b, sent, live, err := s.ledger.feedUnit(v, f, dst, replica.MaxChunkRecords)
	s.opt.Metrics.served.Add(float64(sent))
	return live, v.staged, b, err
}

// serveVector answers with this store's durable vector.
func (s *Store) serveVector(w http.ResponseWriter, r *http.Request, _ replica.Origin) {
	v, err := s.durableVector(r.Context())
	if err != nil {
		http.Error(w, fault.CodeOf(err).String(), fault.CodeOf(err).HTTPStatus())
		return
	}
	w.Write(v.Append(nil))
}

func (s *Store) durableVector(ctx context.Context) (replica.Vector, error) {
	s.ledger.mu.Lock()
	v, staged := s.ledger.vector.Clone(), s.ledger.staged
	s.ledger.mu.Unlock()
	return v, s.ledger.wait(ctx, staged)
}

// serveBlob sends a value file, from a byte on if the peer has the beginning.
func (s *Store) serveBlob(w http.ResponseWriter, r *http.Request, _ replica.Origin) {
	raw, err := hex.DecodeString(r.PathValue("digest"))
	from, ferr := rangeStart(r.Header.Get("Range"))
	if err != nil || len(raw) != replica.DigestBytes || ferr != nil {
		s.refuse(w, refusedForm, "digest or range is malformed", http.StatusBadRequest)
		return
	}
	f, err := s.opt.FS.Open(s.blobs.path(digest(raw)))
	if err != nil {
		http.Error(w, "no such value", http.StatusNotFound)
		return
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil || from > info.Size() {
		http.Error(w, "no such range", http.StatusRequestedRangeNotSatisfiable)
		return
	}
	w.Header().Set("Content-Length", strconv.FormatInt(info.Size()-from, 10))
	if from > 0 {
		w.WriteHeader(http.StatusPartialContent)
	}
	out := feedWriter{w, http.NewResponseController(w)}
	part := io.NewSectionReader(f, from, info.Size()-from)
	buf := make([]byte, 64<<10)
	for {
		n, err := part.Read(buf)
		if n > 0 && out.write(buf[:n], false) != nil {
			return
		}
		if err != nil {
			return // the end, or a broken file: the peer checks length and digest
		}
	}
}

// rangeStart reads "bytes=N-"; "" is 0.
func rangeStart(h string) (int64, error) {
	if h == "" {
		return 0, nil
	}
	n, ok := strings.CutPrefix(h, "bytes=")
	n, ok2 := strings.CutSuffix(n, "-")
	if !ok || !ok2 {
		return 0, fmt.Errorf("range %.20q", h)
	}
	from, err := strconv.ParseUint(n, 10, 40)
	return int64(from), err
}
