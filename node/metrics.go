package node

import (
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"

	"edged/internal/meter"
)

// newRegistry makes the registry of this node with what every process has.
func newRegistry(version string) *prometheus.Registry {
	reg := prometheus.NewRegistry()
	reg.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	meter.For(reg, "node").Info("build_info", "Always 1; the label is the program's version.", "version", version)
	return reg
}

// showState registers what is true of the node as a whole, read at every scrape.
func (n *Node) showState() {
	f := meter.For(n.registry, "node")
	f.GaugeFunc("ready", "1 while /readyz says so, else 0.", func() float64 {
		if len(n.ready.get())+len(n.problems()) > 0 {
			return 0
		}
		return 1
	})
	f.GaugeFunc("memory_available_bytes", "Memory that is left, where it is scarcest: in the node's control group, one above it, or on the machine.", func() float64 {
		return float64(n.memory.available.Load())
	})
	f.GaugeFunc("memory_limit_bytes", "Memory that there is in that place.", func() float64 { return float64(n.memory.limit.Load()) })
	f.GaugeFunc("memory_pressure", "0, or what is given up for memory: 1 sandboxes without work, 2 also new sandboxes, 3 also new requests.", func() float64 {
		return float64(n.memory.level.Load())
	})
	f.GaugeFunc("disk_free_bytes", "Free bytes of the disk of the data directory; writes are refused below 256 MiB.", func() float64 {
		return float64(n.space.Free())
	})
}
