package replica

// Coverage knows what every member has and what may still be on its way here, and so which tombstones nobody can need any
// more. A tombstone may go when every member's durable vector covers it, and every session that is open here has passed a live
// mark that covers it: what comes after such a mark was read from a store that has the tombstone, so no older record of the key
// can follow. Not safe for concurrent use.
type Coverage struct {
	rules    Rules
	known    bool // SetMembers was called
	members  map[Origin]Vector
	sessions map[uint64]Vector // per open session: the vector of its last live mark that was applied
	next     uint64
}

// NewCoverage returns a Coverage that covers nothing until its members are set.
func NewCoverage(rules Rules) *Coverage {
	return &Coverage{rules: rules, members: map[Origin]Vector{}, sessions: map[uint64]Vector{}}
}

// SetMembers replaces the list of members, without this store itself. What is known of those that stay is kept.
func (c *Coverage) SetMembers(members []Origin) {
	was := c.members
	c.known, c.members = true, make(map[Origin]Vector, len(members))
	for _, o := range members {
		c.members[o] = was[o]
	}
}

// Advertised notes a member's durable vector. Vectors of one epoch only grow, so an old one is still true.
func (c *Coverage) Advertised(member Origin, v Vector) {
	if old, ok := c.members[member]; ok && v.Dominates(old) {
		c.members[member] = v
	}
}

// Open notes a session before its request is sent and returns its number.
func (c *Coverage) Open() uint64 {
	c.next++
	c.sessions[c.next] = nil
	return c.next
}

// Live notes that all of a session up to a live mark was applied.
func (c *Coverage) Live(session uint64, peer Origin, v Vector) {
	if _, ok := c.sessions[session]; ok {
		c.sessions[session] = v
	}
	c.Advertised(peer, v)
}

// Close notes that a session is over and that nothing of it will be applied any more.
func (c *Coverage) Close(session uint64) { delete(c.sessions, session) }

// Covered reports whether nobody can need the tombstone v.
func (c *Coverage) Covered(v Version) bool {
	if !c.known {
		return false
	}
	if !c.rules.NoCoverage {
		for _, has := range c.members {
			if !has.Covers(v.Origin, v.Seq) {
				return false
			}
		}
	}
	if !c.rules.NoBarrier {
		for _, passed := range c.sessions {
			if !passed.Covers(v.Origin, v.Seq) {
				return false
			}
		}
	}
	return true
}
