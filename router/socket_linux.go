package router

import "syscall"

// tryFill reads into c.in what the kernel has already, without waiting. Over TLS it does nothing: a record may be
// incomplete, and waiting for its rest is not "already here".
func (c *conn) tryFill() {
	if c.raw == nil || c.tls != nil {
		return
	}
	if c.readNow == nil {
		c.readNow = func(fd uintptr) bool {
			c.readNowN, _ = syscall.Read(int(fd), c.in[c.filled:]) // an error or the end is seen again by the next read
			return true
		}
	}
	c.makeRoom(bodyBuffer)
	c.readNowN = 0
	if err := c.raw.Read(c.readNow); err == nil && c.readNowN > 0 {
		c.filled += c.readNowN
	}
}
