package egress

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"syscall"
	"time"

	"edged/internal/fault"
)

// ErrDenied is the name of every refusal of this package.
var ErrDenied = fault.Name(fault.Denied, "egress_denied", 97)

var errAddress = ErrDenied.New("egress.Check", "the address is not one that outbound traffic may reach")

// Mode is what happens to an address that no rule speaks of.
type Mode uint8

// The modes.
const (
	PublicOnly Mode = iota // public addresses may be reached
	Nothing                // none may
	Anything               // all may: for an origin that the operator named and that TLS then proves
)

// Rule allows or denies a block of addresses on a range of ports. An IPv4 block also covers the mapped and NAT64 forms
// of its addresses.
type Rule struct {
	Allow              bool
	Block              netip.Prefix // masked or not
	FirstPort, EndPort uint16       // both included; both 0 means every port
}

// Options describes a policy.
type Options struct {
	Mode  Mode   // the zero value is PublicOnly
	Rules []Rule // the first that matches decides
	// Forbidden, if not nil, is asked first and cannot be overruled: the node's own control and admin listeners. It
	// must be safe for concurrent use.
	Forbidden func(netip.AddrPort) bool
}

// Policy judges addresses. Immutable; safe for concurrent use.
type Policy struct{ opt Options }

// New makes a policy. Every invalid rule is reported.
func New(opt Options) (*Policy, error) {
	var faults []error
	opt.Rules = append([]Rule(nil), opt.Rules...)
	for i, r := range opt.Rules {
		if !r.Block.IsValid() || r.FirstPort > r.EndPort {
			faults = append(faults, fault.Newf(fault.Invalid, "egress.New", "rule %d has no valid block or port range", i+1))
			continue
		}
		opt.Rules[i].Block = r.Block.Masked()
	}
	if opt.Mode > Anything {
		faults = append(faults, fault.New(fault.Invalid, "egress.New", "unknown mode"))
	}
	return &Policy{opt: opt}, errors.Join(faults...)
}

// Check returns nil if to may be connected to, else ErrDenied. It does not allocate.
func (p *Policy) Check(to netip.AddrPort) error {
	addr := inner(to.Addr())
	to = netip.AddrPortFrom(addr, to.Port())
	if !addr.IsValid() || to.Port() == 0 {
		return errAddress
	}
	if p.opt.Forbidden != nil && p.opt.Forbidden(to) {
		return errAddress
	}
	for i := range p.opt.Rules {
		r := &p.opt.Rules[i]
		if !r.Block.Contains(addr) {
			continue
		}
		if r.EndPort != 0 && (to.Port() < r.FirstPort || to.Port() > r.EndPort) {
			continue
		}
		if r.Allow {
			return nil
		}
		return errAddress
	}
	if p.opt.Mode == Anything || p.opt.Mode == PublicOnly && Public(addr) {
		return nil
	}
	return errAddress
}

// inner returns the IPv4 address that a mapped or NAT64 address leads to, any other address as it is. A zone stays, so
// that no block contains it.
func inner(a netip.Addr) netip.Addr {
	if a.Is4In6() && a.Zone() == "" {
		return a.Unmap()
	}
	if nat64.Contains(a) {
		b := a.As16()
		return netip.AddrFrom4([4]byte(b[12:]))
	}
	return a
}

// Control is a net.Dialer.ControlContext: it refuses a connection just before it is made, with the address that the
// kernel was given. Only TCP passes.
func (p *Policy) Control(_ context.Context, network, address string, _ syscall.RawConn) error {
	if network != "tcp4" && network != "tcp6" {
		return errAddress
	}
	to, err := netip.ParseAddrPort(address)
	if err != nil {
		return errAddress
	}
	return p.Check(to)
}

// Dialer returns a dialer that obeys the policy. timeout bounds resolving and connecting together, 0 means 10 s.
func (p *Policy) Dialer(timeout time.Duration) *net.Dialer {
	if timeout == 0 {
		timeout = 10 * time.Second
	}
	return &net.Dialer{Timeout: timeout, ControlContext: p.Control}
}
