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
	f.GaugeFunc("disk_free_bytes", "Free bytes of the disk of the data directory; writes are refused below 256 MiB.", func() float64 {
		return float64(n.space.Free())
	})
}
