package objects

import "sync"

// checkedFor is how long a file that was compared with its checksums is read without comparing it again: comparing costs as much as
// copying out of the page cache, and what is there does not change.
const checkedFor = 60 * 60 * 1000 // milliseconds

// maxChecked bounds the list; when it is full it begins anew.
const maxChecked = 1 << 16

// checked remembers which files were compared with their checksums a short while ago, as a whole. Safe for concurrent use.
type checked struct {
	mu sync.Mutex
	at map[id]int64 // Unix milliseconds
}

func (c *checked) lately(i id, nowMs int64) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	at, ok := c.at[i]
	return ok && nowMs-at < checkedFor && nowMs >= at
}

func (c *checked) mark(i id, nowMs int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.at == nil || len(c.at) >= maxChecked {
		c.at = map[id]int64{}
	}
	c.at[i] = nowMs
}
