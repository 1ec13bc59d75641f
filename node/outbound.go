package node

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"

	"edged/internal/egress"
	"edged/sandbox/outbound"
)

// egressOptions reads --egress: public, none, or the name of a file of rules.
func egressOptions(value string) (egress.Options, error) {
	switch value {
	case "", "public":
		return egress.Options{Mode: egress.PublicOnly}, nil
	case "none":
		return egress.Options{Mode: egress.Nothing}, nil
	}
	text, err := os.ReadFile(value)
	if err != nil {
		return egress.Options{}, fmt.Errorf("neither public nor none, and no readable file: %w", err)
	}
	return egress.ParseRules(string(text))
}

// openOutbound makes what fetch uses. Whatever the rules say, the control and admin listeners stay out of reach.
func (n *Node) openOutbound() error {
	opt, err := egressOptions(n.opt.Egress)
	if err != nil {
		return err
	}
	local, err := localAddrs()
	if err != nil {
		return err
	}
	own := map[uint16]bool{}
	for _, name := range []string{"control", "admin"} {
		if ln := n.bound[name]; ln != nil {
			if tcp, ok := ln.Addr().(*net.TCPAddr); ok {
				own[tcp.AddrPort().Port()] = true
			}
		}
	}
	opt.Forbidden = func(to netip.AddrPort) bool {
		return own[to.Port()] && (to.Addr().IsLoopback() || to.Addr().IsUnspecified() || local[to.Addr()])
	}
	policy, err := egress.New(opt)
	if err != nil {
		return err
	}
	n.outbound, err = outbound.New(outbound.Options{Policy: policy})
	return err
}

// localAddrs are the addresses of this machine.
func localAddrs() (map[netip.Addr]bool, error) {
	list, err := net.InterfaceAddrs()
	if err != nil {
		return nil, errors.Join(errors.New("list the addresses of this machine"), err)
	}
	out := map[netip.Addr]bool{}
	for _, a := range list {
		if p, err := netip.ParsePrefix(a.String()); err == nil {
			out[p.Addr().Unmap()] = true
		}
	}
	return out, nil
}
