package control

import (
	"encoding/json"
	"errors"
	"net/http"

	"edged/internal/fault"
	"edged/internal/fleetwire"
)

// The paths of FleetHandler.
const (
	PathReport = "/fleet/v1/report" // POST MemberReport
	PathRing   = "/fleet/v1/ring"   // GET: the node key file of the leader, the newest
	PathKnown  = "/fleet/v1/known"  // GET: []fleetwire.Member, as far as the voter that is asked knows
	// PathSettings gives the flags of the voter that is asked which all should have alike: GET, text by name (FleetOptions.Settings).
	PathSettings = "/fleet/v1/settings"
	PathKept     = "/fleet/v1/kept" // GET: that of the voter that is asked, which may lack keys
)

// maxReport bounds a MemberReport, in bytes.
const maxReport = 64 << 10

// FleetHandler answers members of the fleet on the peer listener: PathReport takes what one says of itself, PathRing and PathKept give it
// the keys that secrets are sealed with. PathReport and PathRing are
// Unavailable where this node does not lead. caller names the member that a request comes from, "" for anybody else.
func (c *Control) FleetHandler(caller func(*http.Request) string) http.Handler {
	answer := func(do func(w http.ResponseWriter, r *http.Request, member string) error) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Cache-Control", "no-store")
			member := caller(r)
			if c.state.Member(member) == nil {
				fleetwire.WriteError(w, fault.New(fault.Denied, "control.fleet", "only members of the fleet are answered"))
				return
			}
			if err := do(w, r, member); err != nil {
				if code := fault.CodeOf(err); (code == fault.Internal || code == fault.Unavailable) && !errors.Is(err, errNoLeader) {
					c.opt.Log.Error("a member's call failed", "err", err, "node", member, "path", r.URL.Path, "do", "see the cause in err, and the log of the member for what it wanted")
				}
				fleetwire.WriteError(w, err)
			}
		}
	}
	mux := http.NewServeMux()
	mux.Handle("POST "+PathReport, answer(func(w http.ResponseWriter, r *http.Request, member string) error {
		if err := c.confirm(r.Context()); err != nil {
			return err
		}
		var in MemberReport
		if err := fleetwire.ReadJSON(r.Body, maxReport, &in); err != nil {
			return err
		}
		if err := c.Report(r.Context(), member, in); err != nil {
			return err
		}
		w.WriteHeader(http.StatusNoContent)
		return nil
	}))
	ring := func(w http.ResponseWriter, _ *http.Request, _ string) error {
		w.Header().Set("Content-Type", "application/octet-stream")
		_, _ = w.Write(c.secrets.ring.File()) // a member that left asks again
		return nil
	}
	mux.Handle("GET "+PathKnown, answer(func(w http.ResponseWriter, _ *http.Request, _ string) error {
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(c.known()) // a member that left asks again
		return nil
	}))
	mux.Handle("GET "+PathSettings, answer(func(w http.ResponseWriter, _ *http.Request, _ string) error {
		if c.opt.Fleet == nil || c.opt.Fleet.Settings == nil {
			return fault.New(fault.NotFound, "control.fleet", "this voter tells no settings")
		}
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(c.opt.Fleet.Settings()) // a member that left asks again
		return nil
	}))
	mux.Handle("GET "+PathKept, answer(ring))
	mux.Handle("GET "+PathRing, answer(func(w http.ResponseWriter, r *http.Request, member string) error {
		if err := c.confirm(r.Context()); err != nil {
			return err // two voters that took each other's keys would never have those of a rotation
		}
		return ring(w, r, member)
	}))
	return mux
}

// TakeRing makes the keys that another member sent, from its PathRing, those of this node, durably. Keys of its own that something
// in its control state is sealed with stay beside them. The errors are those of seal.Ring.Take.
func (c *Control) TakeRing(raw []byte) error {
	used := c.keysInUse()
	c.secrets.ring.Use(c.markedKey())
	return c.secrets.ring.Take(raw, func(id string) bool { return used[id] })
}
