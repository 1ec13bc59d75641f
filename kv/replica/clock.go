package replica

// Clock gives out hybrid logical times, each above all that it gave out or saw. The zero value is ready. Not safe for
// concurrent use.
type Clock struct{ last HLC }

// Next returns a time above the last one, above floor (what the key holds now) and not before nowMs.
func (c *Clock) Next(nowMs int64, floor HLC) HLC {
	c.last = max(At(nowMs), c.last, floor) + 1
	return c.last
}

// See moves the clock past a time that was read from elsewhere.
func (c *Clock) See(h HLC) { c.last = max(c.last, h) }

// Last returns the greatest time given out or seen.
func (c *Clock) Last() HLC { return c.last }
