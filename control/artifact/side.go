package artifact

import (
	"encoding/json"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"

	"edged/control/rfc9457"
	"edged/internal/fault"
)

// SidePath is where the side channel lives; the digest follows (node-surface §4).
const SidePath = "/artifacts/sha256/"

// uploadTimeout bounds one upload: 16 MiB at about 60 KiB/s.
const uploadTimeout = 5 * time.Minute

var errNotHeld = fault.New(fault.NotFound, "artifact.side", "no such artifact")

// Caller is who asks, as authentication found it.
type Caller struct {
	Tenant   string
	MayWrite bool
}

// Serve answers PUT, HEAD and GET below SidePath for a caller. The tenant's answer never depends on what other tenants hold.
func (s *Store) Serve(w http.ResponseWriter, r *http.Request, caller Caller) {
	w.Header().Set("Cache-Control", "no-store")
	rest, below := strings.CutPrefix(r.URL.EscapedPath(), SidePath)
	digest, valid := ParseDigest(rest)
	if !below || !valid {
		refuse(w, errNotHeld)
		return
	}
	switch r.Method {
	case http.MethodPut:
		s.servePut(w, r, caller, digest)
	case http.MethodGet, http.MethodHead:
		s.serveGet(w, r, caller, digest)
	default:
		w.Header().Set("Allow", "GET, HEAD, PUT")
		problem(w, http.StatusMethodNotAllowed, "method_not_allowed", "artifacts take GET, HEAD and PUT")
	}
}

func (s *Store) servePut(w http.ResponseWriter, r *http.Request, caller Caller, digest Digest) {
	// Not every writer can bound its reads (a test's recorder cannot); a server's connection can.
	_ = http.NewResponseController(w).SetReadDeadline(time.Now().Add(uploadTimeout))
	if !caller.MayWrite {
		drain(r)
		problem(w, http.StatusForbidden, "forbidden", "the token's role may not store artifacts")
		return
	}
	if coding := r.Header.Get("Content-Encoding"); coding != "" && !strings.EqualFold(coding, "identity") {
		drain(r)
		problem(w, http.StatusUnsupportedMediaType, "unsupported_media_type", "artifacts are stored without a content encoding")
		return
	}
	if r.ContentLength > MaxBlobBytes {
		drain(r)
		refuse(w, errBlobTooLarge)
		return
	}
	fresh, err := s.Put(r.Context(), caller.Tenant, digest, r.Body)
	if err == nil && s.opt.Spread != nil {
		err = s.opt.Spread(r.Context(), caller.Tenant, digest)
	}
	if err != nil {
		s.logUnforeseen("artifact upload", err)
		drain(r)
		refuse(w, err)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	status := http.StatusOK
	if fresh {
		status = http.StatusCreated
	}
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(map[string]string{"sha256": digest.String()}) // the client left: nothing to tell it
}

// drain reads what is left of a refused upload, so that a client that sends all of it first gets to read the answer. What
// is far too long is not waited for, nor what the client holds back until it is asked for.
func drain(r *http.Request) {
	if r.ContentLength <= 2*MaxBlobBytes && r.Header.Get("Expect") == "" {
		_, _ = io.CopyN(io.Discard, r.Body, 2*MaxBlobBytes) // whatever became of it, the answer is the same
	}
}

func (s *Store) serveGet(w http.ResponseWriter, r *http.Request, caller Caller, digest Digest) {
	held, err := s.holdsAnywhere(r.Context(), caller.Tenant, digest)
	if err == nil && !held {
		err = errNotHeld
	}
	var blob *Blob
	if err == nil {
		blob, err = s.Open(digest)
	}
	if err != nil {
		s.logUnforeseen("artifact read", err)
		refuse(w, err)
		return
	}
	defer blob.Close()
	h := w.Header()
	h.Set("Content-Type", "application/octet-stream")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Etag", strconv.Quote(digest.String()))
	http.ServeContent(w, r, "", time.Time{}, blob)
}

func (s *Store) logUnforeseen(what string, err error) {
	if c := fault.CodeOf(err); c == fault.Internal || c == fault.Unavailable {
		s.opt.Log.Error("a request for artifacts failed", "what", what, "err", err, "do", fault.CheckDisk)
	}
}

// refuse answers with an error of this package.
func refuse(w http.ResponseWriter, err error) {
	detail := fault.Detail(err)
	switch code := fault.CodeOf(err); {
	case fault.NamedOf(err) == ErrDigest:
		problem(w, http.StatusUnprocessableEntity, "digest_mismatch", detail)
	case fault.NamedOf(err) == ErrQuota:
		problem(w, http.StatusConflict, ErrQuota.Error(), detail)
	case code == fault.NotFound:
		problem(w, http.StatusNotFound, "not_found", "no such artifact")
	case code == fault.TooLarge:
		w.Header().Set("Connection", "close") // the rest of the body is not read
		problem(w, http.StatusRequestEntityTooLarge, "request_too_large", detail)
	case code == fault.Canceled:
		problem(w, http.StatusBadRequest, "invalid_request", "the body did not arrive whole")
	case code == fault.Unavailable:
		w.Header().Set("Retry-After", "5")
		problem(w, http.StatusServiceUnavailable, "temporarily_unavailable", detail)
	default:
		problem(w, http.StatusInternalServerError, "internal_error", "")
	}
}

// problem answers with a Problem (host-api §11).
func problem(w http.ResponseWriter, status int, code, detail string) {
	rfc9457.Problem{Status: status, Code: code, Detail: detail}.Write(w)
}
