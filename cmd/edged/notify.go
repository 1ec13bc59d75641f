package main

import (
	"log/slog"
	"net"
	"os"
	"strconv"
	"time"
)

// How a service manager is told how its service does (the protocol of sd_notify).
const (
	notifyEnv       = "NOTIFY_SOCKET"
	watchdogTimeEnv = "WATCHDOG_USEC"
	watchdogPIDEnv  = "WATCHDOG_PID"
)

// notifier tells a service manager; nil tells nobody.
type notifier struct {
	socket string
	every  time.Duration // between two signs of life; 0 if the manager does not watch
	log    *slog.Logger
}

// newNotifier returns nil if no manager wants to hear.
func newNotifier(lookup func(string) string, log *slog.Logger) *notifier {
	socket := lookup(notifyEnv)
	if socket == "" {
		return nil
	}
	n := &notifier{socket: socket, log: log}
	usec, err := strconv.ParseInt(lookup(watchdogTimeEnv), 10, 64)
	if pid := lookup(watchdogPIDEnv); err == nil && usec > 0 && (pid == "" || pid == strconv.Itoa(os.Getpid())) {
		n.every = max(time.Duration(usec)*time.Microsecond/3, time.Millisecond)
	}
	return n
}

// watches reports whether the manager restarts a service that gives no sign of life.
func (n *notifier) watches() bool { return n != nil && n.every > 0 }

// send tells one thing.
func (n *notifier) send(state string) {
	if n == nil {
		return
	}
	conn, err := net.DialUnix("unixgram", nil, &net.UnixAddr{Name: n.socket, Net: "unixgram"})
	if err == nil {
		_ = conn.SetWriteDeadline(time.Now().Add(time.Second)) // a manager that does not read holds nobody up; Write fails without one
		_, err = conn.Write([]byte(state))
		conn.Close()
	}
	if err != nil {
		n.log.Warn("the service manager cannot be told", "what", state, "err", err)
	}
}

// live gives signs of life until stop.
func (n *notifier) live(stop <-chan struct{}) {
	for tick := time.NewTicker(n.every); ; {
		n.send("WATCHDOG=1")
		select {
		case <-tick.C:
		case <-stop:
			tick.Stop()
			return
		}
	}
}
