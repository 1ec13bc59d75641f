package main

import (
	"fmt"
	"net"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"edged/node"
)

// How a service manager passes sockets that it listens on (sd_listen_fds): from descriptor 3 on.
const (
	socketsEnv     = "LISTEN_FDS"
	socketsPIDEnv  = "LISTEN_PID"
	socketNamesEnv = "LISTEN_FDNAMES"
	firstSocket    = 3
	maxSockets     = 16
)

// listenerNames are the names that a socket can have in its unit (FileDescriptorName=).
var listenerNames = []string{"http", "https", "control", "admin", "peer"}

// managerSockets returns the listeners that a service manager has made for this process, none without one. Each is told by its name, or else by the
// address of a flag. want has the addresses by name.
func managerSockets(lookup func(string) string, want map[string]string) (list []kept, err error) {
	count, err := strconv.Atoi(lookup(socketsEnv))
	if err != nil || lookup(socketsPIDEnv) != strconv.Itoa(os.Getpid()) {
		return nil, nil
	}
	if count < 0 || count > maxSockets {
		return nil, usagef("%s: %d sockets are more than a node has use for", socketsEnv, count)
	}
	names := strings.Split(lookup(socketNamesEnv), ":")
	for i := range count {
		fd := firstSocket + i
		unix.CloseOnExec(fd)
		file := aside(os.NewFile(uintptr(fd), "socket"))
		name := ""
		if i < len(names) {
			name = names[i]
		}
		ln, err := net.FileListener(file)
		if err != nil {
			return nil, usagef("%s: descriptor %d is no listening socket: %v", socketsEnv, fd, err)
		}
		addr := ln.Addr().String()
		ln.Close() // a duplicate
		if name = socketName(name, addr, want); name == "" {
			return nil, usagef("%s: nothing is known to listen on %s: set FileDescriptorName= of its unit to one of %s, or a flag to its address",
				socketsEnv, addr, strings.Join(listenerNames, ", "))
		}
		list = append(list, kept{linkedAddr{Name: name}, file})
	}
	return list, nil
}

// socketName finds out which listener a socket is.
func socketName(name, addr string, want map[string]string) string {
	for _, known := range listenerNames {
		if name == known {
			return name
		}
	}
	for _, known := range listenerNames {
		if want[known] == addr {
			return known
		}
	}
	return ""
}

// listening makes listeners of descriptors, which it closes.
func listening(list []kept) (out []node.Listening, err error) {
	for _, k := range list {
		ln, listenErr := net.FileListener(k.file)
		k.file.Close()
		if listenErr != nil {
			err = fmt.Errorf("--%s: what was inherited is no listening socket: %w", k.Name, listenErr)
			continue
		}
		out = append(out, node.Listening{Name: k.Name, Addr: k.Addr, Listener: ln})
	}
	if err != nil {
		for _, l := range out {
			l.Listener.Close()
		}
		return nil, err
	}
	return out, nil
}
