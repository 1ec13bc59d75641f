package main

import (
	"context"
	"fmt"
	"net"
	"strconv"
	"time"
)

const memoryCount = 1000

// benchMemory measures what 1,000 idle workers and 1,000 live sandboxes add to a node.
func benchMemory(ctx context.Context, cfg config, r *report) error {
	measure := func(n *nodeProcess) error { return n.measureMemory(ctx, r) }
	return withNode(ctx, cfg, measure, "--max-inflight", strconv.Itoa(2*memoryCount))
}

func (n *nodeProcess) measureMemory(ctx context.Context, r *report) error {
	wait, err := n.deployWorker(ctx, "wait", waitSource)
	if err != nil {
		return err
	}
	empty, err := n.settledMemory()
	if err != nil {
		return err
	}
	for i := range memoryCount {
		if _, err := n.deployWorker(ctx, "w"+strconv.Itoa(i), numbered(i)); err != nil {
			return err
		}
	}
	idle, err := n.settledMemory()
	if err != nil {
		return err
	}
	live, err := n.whileWaiting(wait)
	if err != nil {
		return err
	}
	perWorker := float64(idle-empty) / memoryCount / (1 << 20)
	perSandbox := float64(live-idle) / memoryCount / (1 << 20)
	r.line("  node with one worker %5.0f MiB, with %d more, idle %5.0f MiB, with %d live sandboxes besides %5.0f MiB",
		mib(empty), memoryCount, mib(idle), memoryCount, mib(live))
	r.target("per idle worker", perWorker, 0.5, true, "MiB")
	r.value("per live sandbox", once(perSandbox), "MiB")
	return nil
}

func mib(b int64) float64 { return float64(b) / (1 << 20) }

// settledMemory reads the node's memory once it has stopped falling: freed memory goes back to the kernel with a delay.
func (n *nodeProcess) settledMemory() (int64, error) {
	lowest := int64(1) << 62
	for still := 0; still < 4; still++ {
		m, err := n.memoryBytes()
		if err != nil {
			return 0, err
		}
		if m < lowest-(1<<20) {
			still = 0
		}
		lowest = min(lowest, m)
		time.Sleep(500 * time.Millisecond)
	}
	return lowest, nil
}

// whileWaiting returns the node's memory while 1,000 requests are inside the worker at host.
func (n *nodeProcess) whileWaiting(host string) (int64, error) {
	conns := make([]net.Conn, 0, memoryCount)
	defer func() {
		for _, c := range conns {
			c.Close()
		}
	}()
	for range memoryCount {
		c, err := net.Dial("tcp", n.http)
		if err != nil {
			return 0, err
		}
		conns = append(conns, c)
		if _, err := fmt.Fprintf(c, "GET / HTTP/1.1\r\nHost: %s\r\n\r\n", host); err != nil {
			return 0, err
		}
	}
	for end := time.Now().Add(10 * time.Second); time.Now().Before(end); time.Sleep(100 * time.Millisecond) {
		if n.metric("edged_sandbox_instances") >= memoryCount {
			return n.memoryBytes()
		}
	}
	return 0, fmt.Errorf("only %.0f sandboxes came alive", n.metric("edged_sandbox_instances"))
}
