package router

import (
	"context"
	"fmt"
	"os"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// halfClosed is how long a client that has shut down its sending side keeps being served. TCP cannot tell it from one that
// has left: both send the same FIN. Half a second lets "send, shut down, read the answer" clients have a quick answer, and
// still notices within a second that a client left.
const halfClosed = 500 * time.Millisecond

// watcher tells connections that their peer left. One epoll instance watches all of them, edge-triggered and for the
// peer's FIN or reset alone, so a connection costs one system call in its life and no wake-up per request.
type watcher struct {
	file *os.File // the epoll instance, itself polled by the Go runtime
	raw  syscall.RawConn

	mu    sync.Mutex // guards the fields below
	last  uint64
	conns map[uint64]*conn
}

func newWatcher() (*watcher, error) {
	fd, err := unix.EpollCreate1(unix.EPOLL_CLOEXEC)
	if err != nil {
		return nil, fmt.Errorf("epoll: %w", err)
	}
	if err := unix.SetNonblock(fd, true); err != nil { // so that os.NewFile hands it to the runtime's poller
		_ = unix.Close(fd)
		return nil, fmt.Errorf("epoll: %w", err)
	}
	w := &watcher{file: os.NewFile(uintptr(fd), "epoll"), conns: make(map[uint64]*conn)}
	if w.raw, err = w.file.SyscallConn(); err != nil {
		_ = w.file.Close()
		return nil, fmt.Errorf("epoll: %w", err)
	}
	return w, nil
}

// run delivers events until ctx is done.
func (w *watcher) run(ctx context.Context) {
	stop := context.AfterFunc(ctx, func() { _ = w.file.Close() })
	defer stop()
	events := make([]unix.EpollEvent, 128)
	for {
		var n int
		err := w.raw.Read(func(fd uintptr) bool {
			var err error
			n, err = unix.EpollWait(int(fd), events, 0)
			return n > 0 || err != nil && err != unix.EINTR
		})
		if err != nil {
			return // closed
		}
		for _, e := range events[:max(n, 0)] {
			id := uint64(uint32(e.Fd)) | uint64(uint32(e.Pad))<<32
			w.mu.Lock()
			c := w.conns[id]
			w.mu.Unlock()
			if c != nil {
				c.peerLeft(e.Events&(unix.EPOLLHUP|unix.EPOLLERR) != 0)
			}
		}
	}
}

// add watches c; the returned func ends it. A connection that has no socket of its own is not watched.
func (w *watcher) add(c *conn) (remove func()) {
	if c.raw == nil {
		return func() {}
	}
	w.mu.Lock()
	w.last++
	id := w.last
	w.conns[id] = c
	w.mu.Unlock()
	remove = func() {
		w.mu.Lock()
		delete(w.conns, id)
		w.mu.Unlock()
	}
	var err error
	errControl := c.raw.Control(func(fd uintptr) {
		errRaw := w.raw.Control(func(epfd uintptr) {
			err = unix.EpollCtl(int(epfd), unix.EPOLL_CTL_ADD, int(fd), &unix.EpollEvent{
				Events: unix.EPOLLRDHUP | unix.EPOLLET, Fd: int32(uint32(id)), Pad: int32(uint32(id >> 32))})
		})
		if err == nil {
			err = errRaw
		}
	})
	if err != nil || errControl != nil {
		// Without watching, a client that left is noticed by the next write: worse, not wrong.
		c.r.opt.Log.Warn("connection is not watched", "err", err)
	}
	return remove
}
