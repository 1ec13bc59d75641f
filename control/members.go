package control

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"maps"
	"net"
	"strings"
	"time"

	"edged/control/form"
	"edged/control/rules"
	"edged/control/seal"
	"edged/control/state"
	"edged/internal/fault"
	"edged/internal/fleetwire"
	"edged/internal/pki"
)

// Bounds of what a member says of itself, so that all that is told of a fleet fits into one document.
const (
	maxNodeName   = 63
	maxLabels     = 8
	maxLabelName  = 32
	maxLabelValue = 64
	maxAddress    = 255
)

// gossipKeyBytes is the length of the key that gossip is encrypted with: AES-256.
const gossipKeyBytes = 32

// What the authority's secrets are sealed for.
var (
	authorityContext = []string{"fleet authority"}
	gossipContext    = []string{"fleet gossip key"}
)

// fleetCodes are the kinds of the refusals FL-1 to FL-5.
var fleetCodes = map[rules.Seed]fault.Code{
	rules.PermissionDenied: fault.Denied, rules.ResourceNotFound: fault.NotFound, rules.NameConflict: fault.Conflict, rules.Gone: fault.Conflict,
	rules.DependencyInUse: fault.Conflict,
}

func fleetRefusal(v *rules.Verdict) error {
	return fault.Newf(fleetCodes[v.Seed], "control.fleet", "%s: %s", v.Rule, v.Sentence)
}

// changeFleet makes a command about the fleet durable and waits for the plan that shows it, within Options.PlanWait. What would be
// refused is not written.
func (c *Control) changeFleet(ctx context.Context, cmd *state.Command) error {
	if !c.Ready() {
		return fault.New(fault.Unavailable, "control.fleet", "the control room is starting")
	}
	cmd.At = time.Now().UnixMilli()
	if v := c.state.JudgeFleet(cmd); v != nil {
		return fleetRefusal(v)
	}
	out, err := c.submit(cmd)
	if err != nil {
		return err
	}
	if out.Refusal != nil {
		return fleetRefusal(out.Refusal)
	}
	if out.Plan {
		c.plans.wait(ctx, c.machine.planned.Load(), c.opt.PlanWait)
	}
	return nil
}

// FoundFleet makes the control state of this node that of a fleet, with this node as its first member, in both roles. Invite and secret
// of the request are not looked at. It may be repeated by the founder, and by every member that lost its certificate but not its control
// state: the answer then is a fresh certificate. Errors: Invalid for a malformed request, Conflict if the fleet does not know this node.
func (c *Control) FoundFleet(ctx context.Context, in fleetwire.JoinRequest) (fleetwire.JoinAnswer, error) {
	if err := checkNode(&in); err != nil {
		return fleetwire.JoinAnswer{}, err
	}
	if c.state.Member(in.ID) != nil {
		leaf, err := c.Renew(ctx, in.ID, in.CSR)
		if err != nil {
			return fleetwire.JoinAnswer{}, err
		}
		return c.welcome(leaf)
	}
	now := time.Now()
	authority, err := pki.New(now)
	if err != nil {
		return fleetwire.JoinAnswer{}, err
	}
	leaf, err := authority.Sign(in.CSR, in.ID, now)
	if err != nil {
		return fleetwire.JoinAnswer{}, err
	}
	c.secrets.underWay.RLock() // until they are committed, no key that the secrets are sealed with may go
	defer c.secrets.underWay.RUnlock()
	sealed, err := c.sealAuthority(authority)
	if err != nil {
		return fleetwire.JoinAnswer{}, err
	}
	m := memberOf(&in, leaf.Serial)
	m.Control, m.Edge = true, true
	if err := c.changeFleet(ctx, &state.Command{Kind: state.FoundFleet, Fleet: &state.FleetChange{Authority: sealed, Member: m}}); err != nil {
		return fleetwire.JoinAnswer{}, err
	}
	return c.welcome(leaf.PEM)
}

func (c *Control) sealAuthority(a *pki.Authority) (*state.Authority, error) {
	key, err := a.KeyPEM()
	if err != nil {
		return nil, err
	}
	defer clear(key)
	box, err := c.secrets.ring.Seal(key, authorityContext...)
	if err != nil {
		return nil, err
	}
	gossip := make([]byte, gossipKeyBytes)
	_, _ = rand.Read(gossip) // never fails: it ends the program instead
	defer clear(gossip)
	gossipBox, err := c.secrets.ring.Seal(gossip, gossipContext...)
	return &state.Authority{Cert: string(a.CertPEM()), Key: box, Gossip: gossipBox}, err
}

// resealedAuthority returns what the authority keeps secret under the current key; nil if it is that already, or cannot be opened.
func (c *Control) resealedAuthority() (*state.Authority, error) {
	was := c.state.Fleet().Authority
	current := c.secrets.ring.Current()
	if was == nil || seal.Box(was.Key).KeyID() == current && seal.Box(was.Gossip).KeyID() == current {
		return nil, nil
	}
	key, err := c.secrets.ring.Reseal(was.Key, authorityContext...)
	if err != nil {
		return nil, nil
	}
	gossip, err := c.secrets.ring.Reseal(was.Gossip, gossipContext...)
	if err != nil {
		return nil, nil
	}
	return &state.Authority{Cert: was.Cert, Key: key, Gossip: gossip}, nil
}

// authority opens what signs the certificates of members. The error is a Conflict if there is no fleet, or the node key file is not
// the one that it was sealed with.
func (c *Control) authority() (*pki.Authority, error) {
	a := c.state.Fleet().Authority
	if a == nil {
		return nil, fleetRefusal(state.NoFleet())
	}
	key, err := c.secrets.ring.Open(a.Key, authorityContext...)
	if err != nil {
		return nil, err
	}
	defer clear(key)
	return pki.Parse([]byte(a.Cert), key)
}

// InviteOptions says what an invite grants.
type InviteOptions struct {
	Control, Edge bool              // the roles of who joins; one at least
	Labels        map[string]string // that it has whatever it says of itself
	Life          time.Duration     // one minute to thirty days
}

// Bounds of an invite's life.
const (
	shortestInvite = time.Minute
	longestInvite  = 30 * 24 * time.Hour
)

// Invite lets one node join the fleet, once, until expires. Text of the invite holds its secret, which is kept nowhere. Errors: Invalid,
// Conflict without a fleet or with too many invites.
func (c *Control) Invite(ctx context.Context, by state.Actor, opt InviteOptions) (invite fleetwire.Invite, expires time.Time, err error) {
	switch {
	case !opt.Control && !opt.Edge:
		return invite, expires, fault.New(fault.Invalid, "control.Invite", "an invite grants at least one of the roles control and edge")
	case opt.Life < shortestInvite || opt.Life > longestInvite:
		return invite, expires, fault.Newf(fault.Invalid, "control.Invite", "an invite is good for %s to %s", shortestInvite, longestInvite)
	}
	if err := checkLabels(opt.Labels); err != nil {
		return invite, expires, err
	}
	authority, err := c.authority()
	if err != nil {
		return invite, expires, err
	}
	invite = fleetwire.Invite{CA: authority.Fingerprint(), ID: "i-" + randomID(), Secret: rand.Text() + rand.Text()}
	expires = time.Now().Add(opt.Life).Truncate(time.Millisecond)
	err = c.changeFleet(ctx, &state.Command{Kind: state.InviteMember, Actor: by, Fleet: &state.FleetChange{Invite: &state.Invite{
		ID: invite.ID, Hash: state.TokenHash(invite.Secret), Control: opt.Control, Edge: opt.Edge, Labels: opt.Labels, Expires: expires.UnixMilli()}}})
	if err != nil {
		return fleetwire.Invite{}, time.Time{}, err
	}
	return invite, expires, nil
}

// Join makes a node that has an invite's secret a member and gives it what a member has: a certificate, the keys of secrets and of
// gossip, and whom to talk to. The same request may be sent again if its answer was lost. Errors: Denied for an invite that is not
// good, Invalid, Conflict for a node that may not be a member.
func (c *Control) Join(ctx context.Context, in fleetwire.JoinRequest) (fleetwire.JoinAnswer, error) {
	none := fleetwire.JoinAnswer{}
	if err := checkNode(&in); err != nil {
		return none, err
	}
	proof := sha256.Sum256(in.CSR)
	cmd := &state.Command{Kind: state.JoinFleet, At: time.Now().UnixMilli(), Fleet: &state.FleetChange{Invite: &state.Invite{ID: in.InviteID},
		Hash: state.TokenHash(in.Secret), Proof: proof[:], Member: memberOf(&in, "")}}
	if v := c.state.JudgeFleet(cmd); v != nil { // nothing is signed for who has no invite
		return none, fleetRefusal(v)
	}
	leaf, err := c.sign(in.CSR, in.ID)
	if err != nil {
		return none, err
	}
	cmd.Fleet.Member.Serial = leaf.Serial
	if err := c.changeFleet(ctx, cmd); err != nil {
		return none, err
	}
	c.opt.Log.Info("a node joined the fleet", "node", in.ID, "name", in.Name)
	return c.welcome(leaf.PEM)
}

// Admit is Join on any voter: one that does not lead hands the request on to the leader.
func (c *Control) Admit(ctx context.Context, in fleetwire.JoinRequest) (out fleetwire.JoinAnswer, err error) {
	leader := c.leader()
	switch {
	case c.confirm(ctx) == nil:
		return c.Join(ctx, in)
	case c.opt.Fleet == nil || leader == "" || leader == c.opt.NodeID:
		return out, errNoLeader
	}
	err = c.opt.Fleet.ask(ctx, leader, "admit", in, &out)
	return out, err
}

func (c *Control) sign(csr []byte, node string) (pki.Leaf, error) {
	authority, err := c.authority()
	if err != nil {
		return pki.Leaf{}, err
	}
	return authority.Sign(csr, node, time.Now())
}

// welcome is what a member gets with its certificate.
func (c *Control) welcome(leaf []byte) (fleetwire.JoinAnswer, error) {
	f := c.state.Fleet()
	gossip, err := c.secrets.ring.Open(f.Authority.Gossip, gossipContext...)
	if err != nil {
		return fleetwire.JoinAnswer{}, err
	}
	defer clear(gossip)
	out := fleetwire.JoinAnswer{CertPEM: leaf, CAPEM: []byte(f.Authority.Cert), RingFile: c.secrets.ring.File(),
		GossipKey: base64.StdEncoding.EncodeToString(gossip), Members: c.known()}
	return out, nil
}

// known are the members, as one has to know them who has no plan.
func (c *Control) known() (out []fleetwire.Member) {
	for _, m := range c.state.Fleet().Members {
		out = append(out, fleetwire.Member{ID: m.ID, Control: m.Control, Edge: m.Edge, Peer: m.Peer, Gossip: m.Gossip})
	}
	return out
}

// Renew gives a member a certificate for the key in its request. Errors: NotFound for who is no member, Invalid.
func (c *Control) Renew(ctx context.Context, member string, csr []byte) ([]byte, error) {
	change := &state.FleetChange{Member: &state.Member{ID: member}}
	if v := c.state.JudgeFleet(&state.Command{Kind: state.ReportMember, Fleet: change}); v != nil {
		return nil, fleetRefusal(v)
	}
	leaf, err := c.sign(csr, member)
	if err != nil {
		return nil, err
	}
	change.Member.Serial = leaf.Serial
	return leaf.PEM, c.changeFleet(ctx, &state.Command{Kind: state.ReportMember, Fleet: change})
}

// MemberReport is what a member says of itself when it has started.
type MemberReport struct {
	Peer    string            `json:"peer"`             // host:port of its peer listener, as others reach it
	Gossip  string            `json:"gossip,omitempty"` // host:port, "" if off
	Origin  string            `json:"origin,omitempty"` // of its control listener, like https://host:port
	KVEpoch uint64            `json:"kvEpoch,string"`
	Labels  map[string]string `json:"labels,omitempty"` // all of its own; those of its invite stay
}

// Report takes over what a member says of itself. Nothing is written if that is known. Errors: NotFound for who is no member, Invalid.
func (c *Control) Report(ctx context.Context, member string, in MemberReport) error {
	m := &state.Member{ID: member, Peer: in.Peer, Gossip: in.Gossip, Origin: in.Origin, KVEpoch: in.KVEpoch, Labels: in.Labels}
	if err := checkPlace(m.Peer, m.Gossip, m.Labels); err != nil {
		return err
	}
	if in.Origin != "" && !isOrigin(in.Origin) {
		return badNode("the node's control origin must be https://host:port")
	}
	if c.state.Says(m) {
		return nil
	}
	return c.changeFleet(ctx, &state.Command{Kind: state.ReportMember, Fleet: &state.FleetChange{Member: m}})
}

// Drain takes a member out of service, or with on false back into it. Errors: NotFound, Conflict without a fleet.
func (c *Control) Drain(ctx context.Context, by state.Actor, member string, on bool) error {
	return c.changeFleet(ctx, &state.Command{Kind: state.DrainMember, Actor: by, Fleet: &state.FleetChange{Member: &state.Member{ID: member, Draining: on}}})
}

// Remove ends a membership for ever: the node's certificates are good for nothing any more, and its ID never joins again. loseData says
// that it may be the home of databases, buckets and queues. Errors: NotFound; Conflict for the last member with the role control, for a
// home of data, and without a fleet; Unavailable for the leader itself, which hands leadership to another voter and leaves the rest to that
// one: what comes after the loss of its vote it could not write.
func (c *Control) Remove(ctx context.Context, by state.Actor, member string, loseData bool) error {
	cmd := &state.Command{Kind: state.RemoveMember, Actor: by, Fleet: &state.FleetChange{Member: &state.Member{ID: member}, LoseData: loseData}}
	if v := c.state.JudgeFleet(cmd); v != nil {
		return fleetRefusal(v)
	}
	if c.opt.Fleet != nil {
		if member == c.opt.NodeID {
			if err := c.HandOver(); err != nil {
				return err
			}
			return fault.New(fault.Unavailable, "control.Remove", "nothing was removed yet: this node led the control room and has handed that to another; repeat it there")
		}
		if err := c.RemoveVoter(ctx, member); err != nil {
			return err
		}
	}
	return c.changeFleet(ctx, cmd)
}

// Removed reports whether a node was removed from the fleet, as far as this one knows: what it knows of that stays true.
func (c *Control) Removed(member string) bool { return c.state.Removed(member) }

func memberOf(in *fleetwire.JoinRequest, serial string) *state.Member {
	return &state.Member{ID: in.ID, Name: in.Name, Labels: maps.Clone(in.Labels), Peer: in.Peer, Gossip: in.Gossip, KVEpoch: in.KVEpoch, Serial: serial}
}

// checkNode judges what a node says of itself by itself.
func checkNode(in *fleetwire.JoinRequest) error {
	switch {
	case !pki.ValidNode(in.ID):
		return badNode("the node's ID is malformed")
	case !form.IsName(in.Name) || len(in.Name) > maxNodeName:
		return badNode("the node's name must be 1 to 63 letters, digits, dots, hyphens and underscores, and begin with a letter or digit")
	}
	return checkPlace(in.Peer, in.Gossip, in.Labels)
}

func badNode(why string) error { return fault.New(fault.Invalid, "control.fleet", why) }

func checkPlace(peer, gossip string, labels map[string]string) error {
	switch {
	case !isAddress(peer):
		return badNode("the node's peer address must be host:port")
	case gossip != "" && !isAddress(gossip):
		return badNode("the node's gossip address must be host:port")
	}
	return checkLabels(labels)
}

func isAddress(s string) bool {
	host, port, err := net.SplitHostPort(s)
	return err == nil && len(s) <= maxAddress && host != "" && port != "" && len(port) <= 5 && strings.Trim(port, "0123456789") == "" && plain(s)
}

// isOrigin reports whether s is an https origin without a path.
func isOrigin(s string) bool {
	host, ok := strings.CutPrefix(s, "https://")
	return ok && host != "" && len(s) <= maxAddress && plain(s) && !strings.ContainsAny(host, "/?#@")
}

// plain reports whether s is visible ASCII, fit for a line of output.
func plain(s string) bool {
	return !strings.ContainsFunc(s, func(r rune) bool { return r <= ' ' || r >= 0x7f })
}

func checkLabels(labels map[string]string) error {
	if len(labels) > maxLabels {
		return fault.Newf(fault.Invalid, "control.fleet", "a node may have %d labels", maxLabels)
	}
	for name, value := range labels {
		if !form.IsName(name) || len(name) > maxLabelName || len(value) > maxLabelValue || !plain(value) {
			return fault.Newf(fault.Invalid, "control.fleet", "a label is a name of up to %d letters, digits, dots, hyphens and underscores and a value of up to %d visible ASCII characters",
				maxLabelName, maxLabelValue)
		}
	}
	return nil
}
