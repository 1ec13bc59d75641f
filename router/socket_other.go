//go:build !linux

package router

import (
	"errors"
	"net"
)

// socketPair is what only a hand-over needs, and that is Linux's alone.
func socketPair() (a, b *net.UnixConn, err error) { return nil, nil, errors.ErrUnsupported }

// tryFill knows no read that does not wait: a body is then read by waiting alone.
func (c *conn) tryFill() {}
