package certs

import (
	"crypto/tls"
	"net"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"edged/internal/fault"
)

// NamesOptions says which names get leaves.
type NamesOptions struct {
	// Allowed reports whether the node answers for a name (lower-case, no trailing dot). It is asked in every handshake,
	// so it must be quick, safe for concurrent use and current. Required.
	Allowed func(name string) bool
	// Default is the name whose leaf answers a handshake without a name, or with one that is not allowed: the endpoint
	// domain. Such a client sees a certificate that does not fit, or the router's refusal. Required.
	Default string
	// DefaultIPs are the addresses of the listener; the default leaf covers them too.
	DefaultIPs []net.IP
	// Operator has certificates of the operator's, which go before leaves of our own; nil has none.
	Operator  *Dir
	MaxLeaves int // kept in memory, 0 means 4096 (about 4 KiB each)
}

// Names has a leaf for every allowed name, made in the first handshake that asks for it. Safe for concurrent use.
type Names struct {
	authority *Authority
	opt       NamesOptions
	fallback  *Hosts

	leaves sync.Map     // name → *entry; reads take no lock
	clock  atomic.Int64 // counts handshakes coarsely: the age of an entry's last use

	mu     sync.Mutex // guards the fields below and every change of leaves
	count  int
	making map[string]func() (*tls.Certificate, error) // by name; the first to call it does the work
}

// entry is one kept leaf.
type entry struct {
	cert *tls.Certificate
	used atomic.Int64 // clock of the last handshake
}

// Names makes the store of leaves for the public listener.
func (a *Authority) Names(opt NamesOptions) (*Names, error) {
	if opt.Allowed == nil {
		return nil, fault.New(fault.Invalid, "certs.Names", "Allowed is missing")
	}
	if opt.MaxLeaves == 0 {
		opt.MaxLeaves = 4096
	}
	if opt.MaxLeaves < 0 {
		return nil, fault.New(fault.Invalid, "certs.Names", "MaxLeaves is negative")
	}
	hosts := []string{opt.Default}
	for _, ip := range opt.DefaultIPs {
		hosts = append(hosts, ip.String())
	}
	fallback, err := a.Hosts(hosts...)
	if err != nil {
		return nil, err
	}
	return &Names{authority: a, opt: opt, fallback: fallback, making: map[string]func() (*tls.Certificate, error){}}, nil
}

// GetCertificate is for a tls.Config. A handshake whose leaf is at hand takes no lock.
func (n *Names) GetCertificate(hello *tls.ClientHelloInfo) (*tls.Certificate, error) {
	name := canonical(hello.ServerName)
	if name == "" || !n.opt.Allowed(name) || !validName(name) {
		return n.fallback.GetCertificate(hello)
	}
	if c := n.opt.Operator.For(name); c != nil {
		return c, nil
	}
	now := time.Now()
	var old *tls.Certificate
	if v, ok := n.leaves.Load(name); ok {
		e := v.(*entry)
		e.used.Store(n.clock.Add(1))
		if !n.authority.due(e.cert, now) {
			return e.cert, nil
		}
		old = e.cert
	}
	cert, err := n.make(name, now)
	if err != nil && old != nil && now.Before(old.Leaf.NotAfter) {
		return old, nil // still good; the next handshake tries again
	}
	return cert, err
}

// canonical returns the name as the host table has it, without allocating when it is already.
func canonical(name string) string { return strings.ToLower(strings.TrimSuffix(name, ".")) }

// make makes a leaf once for all handshakes that ask for it at the same time.
func (n *Names) make(name string, now time.Time) (*tls.Certificate, error) {
	n.mu.Lock()
	leaf, underWay := n.making[name]
	if !underWay {
		if v, ok := n.leaves.Load(name); ok && !n.authority.due(v.(*entry).cert, now) {
			n.mu.Unlock() // another handshake has just made it
			return v.(*entry).cert, nil
		}
		leaf = sync.OnceValues(func() (*tls.Certificate, error) {
			cert, err := n.authority.leaf([]string{name}, now)
			n.mu.Lock()
			defer n.mu.Unlock()
			delete(n.making, name)
			if err == nil {
				n.keepLocked(name, cert)
			}
			return cert, err
		})
		n.making[name] = leaf
	}
	n.mu.Unlock()
	return leaf()
}

func (n *Names) keepLocked(name string, cert *tls.Certificate) {
	e := &entry{cert: cert}
	e.used.Store(n.clock.Add(1))
	if _, had := n.leaves.Swap(name, e); !had {
		n.count++
	}
	if n.count > n.opt.MaxLeaves {
		n.evictLocked()
	}
}

// evictLocked drops the eighth of the leaves that was not used for the longest time, so that its cost, a walk over all
// of them, comes once in many new names.
func (n *Names) evictLocked() {
	type aged struct {
		name string
		used int64
	}
	all := make([]aged, 0, n.count)
	n.leaves.Range(func(name, v any) bool {
		all = append(all, aged{name.(string), v.(*entry).used.Load()})
		return true
	})
	slices.SortFunc(all, func(a, b aged) int { return int(a.used - b.used) })
	for _, a := range all[:len(all)/8+1] {
		n.leaves.Delete(a.name)
		n.count--
	}
}
