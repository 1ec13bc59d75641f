//go:build !linux

package router

// tryFill knows no read that does not wait: a body is then read by waiting alone.
func (c *conn) tryFill() {}
