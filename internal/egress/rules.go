package egress

import (
	"errors"
	"net/netip"
	"strconv"
	"strings"

	"edged/internal/fault"
)

// maxRules bounds a file of rules: they are tried one after the other for every connection.
const maxRules = 1000

// ParseRules reads a file of rules into Mode and Rules of the result. Each line is
//
//	allow|deny ADDRESS[/BITS] [PORT[-PORT]]
//	default public|none
//
// tried from top to bottom; # starts a comment. Without a default line it is public. All faults are reported, each with
// its line.
func ParseRules(text string) (Options, error) {
	var opt Options
	var faults []error
	seenDefault := false
	for i, line := range strings.Split(text, "\n") {
		line, _, _ = strings.Cut(line, "#")
		words := strings.Fields(line)
		if len(words) == 0 {
			continue
		}
		what := ""
		switch {
		case words[0] == "default":
			if seenDefault {
				what = "a second default"
			}
			seenDefault = true
			if mode, ok := parseMode(words[1:]); ok {
				opt.Mode = mode
			} else {
				what = "default is public or none"
			}
		case len(opt.Rules) == maxRules:
			return Options{}, fault.Newf(fault.Invalid, "egress.ParseRules", "more than %d rules", maxRules)
		default:
			var r Rule
			if r, what = parseRule(words); what == "" {
				opt.Rules = append(opt.Rules, r)
			}
		}
		if what != "" {
			faults = append(faults, fault.Newf(fault.Invalid, "egress.ParseRules", "line %d: %s", i+1, what))
		}
	}
	if len(faults) > 0 {
		return Options{}, errors.Join(faults...)
	}
	return opt, nil
}

func parseMode(words []string) (Mode, bool) {
	if len(words) != 1 {
		return 0, false
	}
	switch words[0] {
	case "public":
		return PublicOnly, true
	case "none":
		return Nothing, true
	}
	return 0, false
}

func parseRule(words []string) (r Rule, what string) {
	if words[0] != "allow" && words[0] != "deny" {
		return r, "a rule starts with allow, deny or default"
	}
	if len(words) < 2 || len(words) > 3 {
		return r, "a rule has an address block and at most one port range"
	}
	r.Allow = words[0] == "allow"
	var err error
	if strings.Contains(words[1], "/") {
		r.Block, err = netip.ParsePrefix(words[1])
	} else {
		var a netip.Addr
		if a, err = netip.ParseAddr(words[1]); err == nil && a.Zone() == "" {
			r.Block, err = a.Prefix(a.BitLen())
		}
	}
	if err != nil || !r.Block.IsValid() || r.Block.Addr().Is4In6() {
		return r, "the address block is malformed"
	}
	r.Block = r.Block.Masked()
	if len(words) == 3 {
		first, last, ranged := strings.Cut(words[2], "-")
		if !ranged {
			last = first
		}
		a, aerr := strconv.ParseUint(first, 10, 16)
		b, berr := strconv.ParseUint(last, 10, 16)
		if aerr != nil || berr != nil || a == 0 || a > b {
			return r, "the port range is malformed"
		}
		r.FirstPort, r.EndPort = uint16(a), uint16(b)
	}
	return r, ""
}
