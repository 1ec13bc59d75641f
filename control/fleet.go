package control

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"time"

	"edged/control/feed"
	"edged/internal/fault"
)

// FleetOptions connects a control room that shares its log with others. Members are named by the IDs of their nodes (Options.NodeID),
// which are also the addresses in the log's list of voters: a log that one node has written alone needs no change to be shared.
type FleetOptions struct {
	// Joined says that another node has founded the log: this one has none until it is added as a voter, and makes no bootstrap token.
	Joined bool
	// HadLog says that this node has had the log before. One that is not there is then lost, and nothing is made in its place: a voter that
	// begins again could undo what most voters have decided, and a founder would begin another history under the same name.
	HadLog bool
	// Listener gives the streams that other voters open; only members that may vote get through. Control closes it.
	Listener net.Listener
	// Dial opens such a stream to a member.
	Dial func(member string, timeout time.Duration) (net.Conn, error)
	// Client reaches the peer listener of a member at https://MEMBER.node.edged and proves that it is that member's.
	Client *http.Client
	// Caller names the member that sent a request to PeerHandler, "" for anybody else.
	Caller func(*http.Request) string
	// Serving lists the members that may run workers, in any order.
	Serving func() []string
	// Origins are the control origins of other voters, at which artifacts may have been uploaded too. nil: all share this node's.
	Origins func() []string
	// Program is what this node announces of itself; Announced is what the members said of theirs within the last minute. nil: nobody
	// says so, and nothing that needs more than the first level is ever used.
	Program   feed.Program
	Announced func() map[string]feed.Program
	// Served tells the index of the plan that each member last said it serves. nil: nobody says so.
	Served func() map[string]uint64
	// Keys brings the node key file up to date: from the leader; on the leader itself from all other voters, keeping its own that are in
	// use. nil leaves it as it is.
	Keys func(ctx context.Context) error

	// Settings are this node's flags that members compare with their own, as text by name, without secrets. nil: they are not told.
	Settings func() map[string]string

	heartbeat time.Duration // 0 means 1 s; tests have less patience
}

func (f *FleetOptions) check(nodeID string) error {
	if f == nil {
		return nil
	}
	if nodeID == "" || f.Listener == nil || f.Dial == nil || f.Client == nil || f.Client.Transport == nil || f.Caller == nil || f.Serving == nil {
		return errors.New("control: Fleet needs a node ID and all of Listener, Dial, Client with its Transport, Caller and Serving")
	}
	return nil
}

// Bounds of what members say to each other.
const (
	maxPeerBody = 1 << 20
	// askTimeout bounds a question that a member answers from memory.
	askTimeout = 5 * time.Second
	// workTimeout bounds one attempt at work that a member does for another; the work itself may be asked for again.
	workTimeout = 2 * time.Minute
)

// peerRoot is where members talk to each other's control rooms; version 1.
const peerRoot = "/control/v1/"

func peerURL(member, path string) string { return "https://" + member + ".node.edged" + path }

// peerRefusal is how a member tells another what went wrong.
type peerRefusal struct {
	Code   string `json:"code"` // of package fault
	Detail string `json:"detail"`
}

// ask posts in to a member and reads its answer into out. The error is Unavailable if the member cannot be reached or does not know
// the question, else what the member says.
func (f *FleetOptions) ask(ctx context.Context, member, what string, in, out any) error {
	const op = "control.ask"
	body, err := json.Marshal(in)
	if err != nil {
		return fault.Wrap(fault.Internal, op, err)
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, peerURL(member, peerRoot+what), bytes.NewReader(body))
	if err != nil {
		return fault.Wrap(fault.Internal, op, err)
	}
	req.Header.Set("Content-Type", "application/json")
	resp, err := f.Client.Do(req)
	if err != nil {
		return unreachable(op, member, err)
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(io.LimitReader(resp.Body, maxPeerBody+1))
	switch {
	case err != nil:
		return unreachable(op, member, err)
	case len(answer) > maxPeerBody:
		return fault.Newf(fault.Unavailable, op, "node %s answers %s with more than %d bytes", member, what, maxPeerBody)
	case resp.StatusCode != http.StatusOK:
		var no peerRefusal
		if json.Unmarshal(answer, &no) != nil || no.Code == "" {
			if resp.StatusCode == http.StatusNotFound {
				return fault.Newf(fault.Unavailable, op, "node %s does not know the question %s: it runs another version of edged, or has no part in the control room", member, what)
			}
			return fault.Newf(fault.Unavailable, op, "node %s answers %s with status %d", member, what, resp.StatusCode)
		}
		return fault.Newf(codeNamed(no.Code), op, "node %s: %.512s", member, no.Detail)
	}
	if err := json.Unmarshal(answer, out); err != nil {
		return fault.Wrap(fault.Unavailable, op, fmt.Errorf("answer of %s: %w", member, err))
	}
	return nil
}

func unreachable(op, member string, cause error) error {
	return because(fault.Newf(fault.Unavailable, op, "node %s cannot be reached now", member), cause)
}

// because keeps, for the log, what led to an error whose sentence the caller may read.
func because(told, cause error) error { return fmt.Errorf("%w: %w", told, cause) }

// codeNamed is the code with a name; Unavailable for one that this program does not know.
func codeNamed(name string) fault.Code {
	for _, c := range fault.Codes() {
		if c.String() == name {
			return c
		}
	}
	return fault.Unavailable
}

// reply reads a member's question into in, bounded, and answers with what do returns.
func reply[In any](w http.ResponseWriter, r *http.Request, do func(ctx context.Context, in *In) (any, error)) {
	w.Header().Set("Cache-Control", "no-store")
	if r.Method != http.MethodPost {
		w.Header().Set("Allow", http.MethodPost)
		w.WriteHeader(http.StatusMethodNotAllowed)
		return
	}
	in := new(In)
	var out any
	err := json.NewDecoder(http.MaxBytesReader(w, r.Body, maxPeerBody)).Decode(in)
	if err != nil {
		err = fault.New(fault.Invalid, "control.peer", "the question is malformed or too large")
	} else {
		out, err = do(r.Context(), in)
	}
	w.Header().Set("Content-Type", "application/json")
	if err != nil {
		w.WriteHeader(fault.CodeOf(err).HTTPStatus())
		out = peerRefusal{fault.CodeOf(err).String(), fault.Detail(err)}
	}
	_ = json.NewEncoder(w).Encode(out) // a member that left asks again
}
