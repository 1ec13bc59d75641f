package egress

import "net/netip"

// notPublic are the IPv4 blocks of the special-purpose registries, multicast, class E, and the one metadata service
// that lives on a public address.
var notPublic = prefixes(
	"0.0.0.0/8", "10.0.0.0/8", "100.64.0.0/10", "127.0.0.0/8", "169.254.0.0/16", "172.16.0.0/12", "192.0.0.0/24",
	"192.0.2.0/24", "192.88.99.0/24", "192.168.0.0/16", "198.18.0.0/15", "198.51.100.0/24", "203.0.113.0/24",
	"224.0.0.0/4", "240.0.0.0/4",
	"168.63.129.16/32",
)

// notPublic6 are the blocks inside global unicast that are not the public internet: protocol assignments with Teredo,
// documentation, and 6to4, which could lead to any IPv4 address through any relay.
var notPublic6 = prefixes("2001::/23", "2001:db8::/32", "2002::/16", "3fff::/20")

var (
	globalUnicast = netip.MustParsePrefix("2000::/3")
	nat64         = netip.MustParsePrefix("64:ff9b::/96")
)

func prefixes(texts ...string) []netip.Prefix {
	out := make([]netip.Prefix, len(texts))
	for i, t := range texts {
		out[i] = netip.MustParsePrefix(t)
	}
	return out
}

// Public reports whether a is an address of the public internet: not private, loopback, link-local, multicast,
// reserved, documentation or metadata. IPv4 inside IPv6 (mapped, NAT64) counts as that IPv4; tunnels (6to4, Teredo,
// ISATAP) and IPv4-compatible addresses are never public.
func Public(a netip.Addr) bool {
	a = a.Unmap()
	if !a.IsValid() || a.Zone() != "" {
		return false
	}
	if a.Is4() {
		return !within(a, notPublic)
	}
	b := a.As16()
	if nat64.Contains(a) {
		return Public(netip.AddrFrom4([4]byte(b[12:])))
	}
	isatap := (b[8] == 0 || b[8] == 2) && b[9] == 0 && b[10] == 0x5e && b[11] == 0xfe
	return globalUnicast.Contains(a) && !isatap && !within(a, notPublic6)
}

func within(a netip.Addr, blocks []netip.Prefix) bool {
	for _, p := range blocks {
		if p.Contains(a) {
			return true
		}
	}
	return false
}
