package main

import (
	"os"
	"strconv"
	"time"
)

// heart is a serving process's side of its supervisor; nil without one.
type heart struct{ pipe *os.File }

// isSupervised reports whether this process was started by a supervisor; a variable that was merely inherited does not count.
func isSupervised() bool {
	pid, err := strconv.Atoi(os.Getenv(supervisorEnv))
	return err == nil && pid == os.Getppid()
}

// followSupervisor begins to send heartbeats and to take orders. What it starts ends with the process.
func followSupervisor(stop *stopper) *heart {
	insistOnParent(func() { os.Exit(exitFailed) })
	orders := os.NewFile(ordersFD, "orders")
	h := &heart{pipe: os.NewFile(heartFD, "heart")}
	go func() {
		one := make([]byte, 1)
		for {
			if n, err := orders.Read(one); err != nil || n == 0 {
				os.Exit(exitFailed) // the supervisor is gone, and nobody else would watch
			}
			stop.pass()
		}
	}()
	go func() {
		for tick := time.NewTicker(beatEvery); ; <-tick.C {
			h.write(beatByte)
		}
	}()
	return h
}

// ready tells that the node serves.
func (h *heart) ready() {
	if h != nil {
		h.write(readyByte)
	}
}

func (h *heart) write(b byte) { _, _ = h.pipe.Write([]byte{b}) } // the end of the orders tells when nobody listens
