package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"edged/internal/fault"
)

// elsewhere says that the node on this machine cannot answer what a client command asks: it has no part in the control room of its fleet. nil
// if it has, if no node runs here, and if another was named.
func (t *target) elsewhere() error {
	l := t.listeners()
	if l.Role == "" {
		return nil
	}
	whom := "one with the role control"
	if s, err := askMember(context.Background(), l.Admin); err == nil && len(s.Voters) > 0 {
		whom = strings.Join(s.Voters, " or ")
	}
	return fault.Newf(fault.Unavailable, "edged", "the node here has the role %s and no part in the control room of its fleet: edged status, doctor and version speak of it; "+
		"all other commands are for a voter: name %s with --control-url, --ca-file and --token-file", l.Role, whom)
}

// memberStatus is what a node says of itself without the control room (package node).
type memberStatus struct {
	Node             string   `json:"node"`
	Name             string   `json:"name"`
	Roles            []string `json:"roles"`
	Program          string   `json:"program"`
	Level            int      `json:"level"`
	Members          int      `json:"members"`
	Voters           []string `json:"voters"`
	Removed          string   `json:"removed,omitempty"`
	Upstream         string   `json:"upstream,omitempty"`
	Follows          bool     `json:"follows"`
	Index            uint64   `json:"index"`
	ConfirmedSeconds *int64   `json:"confirmedSeconds"`
	CutOff           bool     `json:"cutOff"`
	Withheld         bool     `json:"withheld"`
	Workers          int      `json:"workers"`
	Broken           int      `json:"broken"`
	KV               *struct {
		Peers        int    `json:"peers"`
		Records      uint64 `json:"records"`
		BehindMillis int64  `json:"behindMillis"`
	} `json:"kv,omitempty"`
	Certificate string `json:"certificate,omitempty"`
}

// askMember asks the admin listener of a node on this machine.
func askMember(ctx context.Context, admin string) (s memberStatus, err error) {
	if admin == "" {
		return s, fault.New(fault.Unavailable, "edged", "its admin listener is off: start it with --admin")
	}
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+admin+"/status", nil)
	if err != nil {
		return s, err
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return s, err
	}
	defer res.Body.Close()
	if res.StatusCode != http.StatusOK {
		return s, fault.Newf(fault.Unavailable, "edged", "its admin listener answers %d", res.StatusCode)
	}
	return s, json.NewDecoder(io.LimitReader(res.Body, 1<<20)).Decode(&s)
}

// outHere reports whether the node on this machine is in its fleet no more, removed or with a certificate that has expired: no voter answers
// for it, and a control room that it has cannot answer alone.
func outHere(ctx context.Context, l listeners) bool {
	if l.Admin == "" {
		return false
	}
	s, err := askMember(ctx, l.Admin)
	return err == nil && (s.Removed != "" || s.expired(time.Now()))
}

// expired reports whether the member's certificate is good for nothing any more.
func (s *memberStatus) expired(now time.Time) bool {
	end, err := time.Parse(time.RFC3339, s.Certificate)
	return err == nil && now.After(end)
}

// edgeStatus is the status of a member that has no part in the control room.
type edgeStatus struct {
	memberStatus
	HTTP    string            `json:"http,omitempty"`
	HTTPS   string            `json:"https,omitempty"`
	Ready   bool              `json:"ready"`
	Reasons map[string]string `json:"reasons,omitempty"`
	Vitals  *vitals           `json:"vitals,omitempty"`
}

func readEdge(ctx context.Context, l listeners) (*edgeStatus, error) {
	m, err := askMember(ctx, l.Admin)
	if err != nil {
		return nil, err
	}
	var n nodeStatus
	n.askReady(ctx, "http://"+l.Admin+"/readyz")
	return &edgeStatus{m, l.HTTP, l.HTTPS, n.Ready != nil && *n.Ready, n.Reasons, askVitals(ctx, "http://"+l.Admin+"/metrics", time.Now())}, nil
}

func (s *edgeStatus) write(w io.Writer) error {
	n := nodeStatus{HTTP: s.HTTP, HTTPS: s.HTTPS, Ready: &s.Ready, Reasons: s.Reasons, Vitals: s.Vitals}
	n.writeHead(w)
	fmt.Fprintf(w, "member   %s (%s), %s, level %d\n", s.Name, s.Node, strings.Join(s.Roles, ","), s.Level)
	if s.Removed != "" {
		fmt.Fprintf(w, "fleet    this node was removed from it: %s\n", s.Removed)
	} else {
		fmt.Fprintf(w, "fleet    %d members\n", s.Members)
	}
	switch {
	case s.Removed != "":
	case s.Follows:
		fmt.Fprintf(w, "upstream %s\n", s.Upstream)
	case s.Upstream != "":
		fmt.Fprintf(w, "upstream none now, %s before\n", s.Upstream)
	default:
		fmt.Fprintln(w, "upstream none yet")
	}
	if s.Vitals != nil {
		s.Vitals.write(w)
	}
	age := "never known to be the newest"
	if c := s.ConfirmedSeconds; c != nil {
		age = fmt.Sprintf("known to be the newest %v ago", time.Duration(*c)*time.Second)
	}
	if s.Withheld {
		age += "; custom domains and versions with secrets are withheld"
	} else if s.CutOff {
		age += "; cut off"
	}
	fmt.Fprintf(w, "plan     %d, %s\n", s.Index, age)
	fmt.Fprintf(w, "workers  %d served, %d versions cannot run here\n", s.Workers, s.Broken)
	if k := s.KV; k != nil {
		behind := "level with them"
		if k.Records > 0 || k.BehindMillis > 0 {
			behind = fmt.Sprintf("%d records and %v behind at most", k.Records, time.Duration(k.BehindMillis)*time.Millisecond)
		}
		fmt.Fprintf(w, "kv       %d other members, %s\n", k.Peers, behind)
	}
	expired := s.expired(time.Now())
	if expired {
		fmt.Fprintf(w, "proof    certificate expired on %s\n", s.Certificate)
	} else if s.Certificate != "" {
		fmt.Fprintf(w, "proof    certificate until %s\n", s.Certificate)
	}
	voters := "a member with the role control"
	if len(s.Voters) > 0 {
		voters = strings.Join(s.Voters, " or ")
	}
	if s.Removed != "" {
		_, err := fmt.Fprintln(w, "\nthis node serves nothing any more; its machine can join again with an empty data directory and a new invite")
		return err
	}
	if expired {
		_, err := fmt.Fprintln(w, "\nno other member answers this node; why it is not ready says what to do")
		return err
	}
	_, err := fmt.Fprintf(w, "\nthis node has no part in the control room: deploy and all commands about Resources, stores and the fleet are for %s\n", voters)
	return err
}
