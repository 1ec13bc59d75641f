package doctor

import (
	"errors"
	"fmt"
	"log/slog"
	"net"
	"syscall"
	"time"
)

// doors judges the addresses of the configuration.
func doors(f Facts) []Finding {
	var out []Finding
	for _, d := range f.Doors {
		out = append(out, door(f, d))
	}
	return out
}

func door(f Facts, d doorFacts) Finding {
	check := "port." + d.Flag
	bound := f.Node.Bound[d.Flag]
	switch {
	case f.Node.PID != 0 && sameDoor(bound, d.Addr):
		return fine(check, "--%s %s is held by this node", d.Flag, bound)
	case d.Err == nil && f.Node.PID != 0:
		return Finding{check, Note, fmt.Sprintf("--%s is %s, and the running node has %s", d.Flag, d.Addr, orUnknown(bound)),
			"it was started with another configuration than this one", "give this command the flags of the node, or restart the node"}
	case d.Err == nil:
		return fine(check, "--%s %s is free", d.Flag, d.Addr)
	case errors.Is(d.Err, syscall.EADDRINUSE) && f.Node.Locked && f.Node.PID == 0:
		return Finding{check, Note, fmt.Sprintf("--%s %s is taken, maybe by the node that starts or stops", d.Flag, d.Addr), "if another process has it, the node does not start",
			"look again in a moment"}
	case errors.Is(d.Err, syscall.EADDRINUSE):
		return Finding{check, Stops, fmt.Sprintf("--%s %s is taken by another process", d.Flag, d.Addr), "the node does not start",
			"stop that one (ss -ltnp shows it), or name another address"}
	case errors.Is(d.Err, syscall.EACCES):
		return Finding{check, Stops, fmt.Sprintf("--%s %s: this user may not listen there", d.Flag, d.Addr), "the node does not start",
			"take a port from 1024, or give the program CAP_NET_BIND_SERVICE"}
	case errors.Is(d.Err, syscall.EADDRNOTAVAIL):
		return Finding{check, Stops, fmt.Sprintf("--%s %s: this machine has no such address", d.Flag, d.Addr), "the node does not start", "name an address of this machine (ip addr shows them)"}
	}
	return Finding{check, Stops, fmt.Sprintf("--%s %s: %v", d.Flag, d.Addr, d.Err), "the node does not start", "name another address"}
}

// sameDoor reports whether a bound address is what the configuration asks for; port 0 asks for any.
func sameDoor(bound, asked string) bool {
	bh, bp, berr := net.SplitHostPort(bound)
	ah, ap, aerr := net.SplitHostPort(asked)
	if berr != nil || aerr != nil || ap != "0" && ap != bp {
		return false
	}
	a, b := net.ParseIP(ah), net.ParseIP(bh)
	return a == nil || b == nil || a.Equal(b) || a.IsUnspecified() && b.IsUnspecified()
}

// How long before its end a certificate of the node's own authority is spoken of.
const (
	caSoon = 30 * 24 * time.Hour
	caYear = 365 * 24 * time.Hour
)

// certificates judges the local authority and the operator's certificates.
func certificates(f Facts) []Finding {
	out := authority(f)
	c := f.Certs
	if c.DirErr != nil {
		return append(out, Finding{"tls.dir", Stops, c.DirErr.Error(), "the node does not start", "name a directory that it can read as --tls-dir"})
	}
	usable := 0
	for _, s := range c.Dir {
		switch {
		case s.Level >= slog.LevelError:
			out = append(out, Finding{"tls.dir." + s.File, Danger, fmt.Sprintf("%s/%s.pem cannot be used: %s", c.DirPath, s.File, s.Why),
				"its names get a certificate of the local authority, which browsers do not trust", "put a valid chain and its key there; the node reads it within ten seconds"})
		case s.Level >= slog.LevelWarn:
			out = append(out, Finding{"tls.soon." + s.File, Danger, fmt.Sprintf("%s/%s.pem expires on %s", c.DirPath, s.File, s.Why),
				"after that clients refuse its names", "renew it; the node reads the new files within ten seconds"})
		default:
			usable++
		}
	}
	if c.DirPath != "" {
		out = append(out, fine("tls.dir", "%s has %d usable certificates", c.DirPath, usable))
	}
	return out
}

func authority(f Facts) []Finding {
	c := f.Certs
	switch {
	case c.CAErr != nil:
		return []Finding{{"tls.ca", Stops, fmt.Sprintf("the local authority in %s cannot be used: %v", c.CADir, c.CAErr), "the node does not start",
			"put ca.pem and ca.key back as they were, or remove both for a new authority that clients have to trust anew"}}
	case c.CA == nil:
		return []Finding{fine("tls.ca", "no local authority yet; the first start makes one in %s", c.CADir)}
	}
	var out []Finding
	left, until := c.CA.NotAfter.Sub(f.Now), c.CA.NotAfter.UTC().Format(time.DateOnly)
	const renew = "stop the node, remove ca.pem and ca.key, start it, and hand the new ca.pem to clients"
	switch {
	case left <= 0:
		out = append(out, Finding{"tls.ca", Stops, "the local authority expired on " + until, "the node does not start", renew})
	case left < caSoon:
		out = append(out, Finding{"tls.ca", Danger, "the local authority expires on " + until, "then the node does not start and clients refuse its certificates", renew})
	case left < caYear:
		out = append(out, Finding{"tls.ca", Note, "the local authority expires on " + until, "then the node does not start and clients refuse its certificates", renew})
	default:
		out = append(out, fine("tls.ca", "the local authority is good until %s", until))
	}
	if c.KeyMode&0o077 != 0 {
		out = append(out, Finding{"tls.key", Danger, fmt.Sprintf("%s/ca.key has mode %04o", c.CADir, c.KeyMode), "other users of this machine can sign certificates that clients trust",
			"chmod 600 it; if others were on this machine, make a new authority"})
	}
	return out
}
