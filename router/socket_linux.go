package router

import (
	"net"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// socketPair makes two sockets that are each other's peer.
func socketPair() (a, b *net.UnixConn, err error) {
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
	if err != nil {
		return nil, nil, err
	}
	var ends [2]*net.UnixConn
	for i, fd := range fds {
		file := os.NewFile(uintptr(fd), "pair")
		conn, connErr := net.FileConn(file) // has a descriptor of its own
		_ = file.Close()
		if connErr != nil {
			err = connErr
			continue
		}
		ends[i], _ = conn.(*net.UnixConn)
	}
	if err != nil {
		for _, end := range ends {
			if end != nil {
				_ = end.Close()
			}
		}
		return nil, nil, err
	}
	return ends[0], ends[1], nil
}

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
