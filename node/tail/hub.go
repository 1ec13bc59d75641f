package tail

import (
	"maps"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/prometheus/client_golang/prometheus"

	"edged/internal/fault"
	"edged/internal/meter"
	"edged/sandbox"
	"edged/sandbox/event"
)

// MaxWatchers is how many may watch at once.
const MaxWatchers = 32

// Hub hands what workers do to those who watch them. Safe for concurrent use.
type Hub struct {
	status  func(outcome string) int
	metrics *Metrics

	audiences atomic.Pointer[map[string]*audience] // by worker; nil while nobody watches

	mu      sync.Mutex // guards the fields below, and changes of audiences
	count   int
	stopped chan struct{} // closed by Stop
}

// audience is who watches one worker. Immutable.
type audience struct {
	watchers []*Watcher
	tell     func(*event.Invocation) // made once: a method value would be made per invocation
}

// Metrics counts what a Hub does.
type Metrics struct {
	watchers prometheus.Gauge
	dropped  prometheus.Counter
}

// NewMetrics registers the metrics with reg; nil registers nowhere.
func NewMetrics(reg prometheus.Registerer) *Metrics {
	f := meter.For(reg, "node")
	return &Metrics{watchers: f.Gauge("tail_watchers", "Operators that watch a worker now."),
		dropped: f.Counter("tail_dropped_total", "Lines that operators who watch did not get because they read too slowly.")}
}

// New returns a hub that nobody watches. status gives the status of the answer that the node makes for an outcome, 0 for none; nil
// metrics count into the void.
func New(status func(outcome string) int, m *Metrics) *Hub {
	if m == nil {
		m = NewMetrics(nil)
	}
	return &Hub{status: status, metrics: m, stopped: make(chan struct{})}
}

// Watch is sandbox.Options.Watch and router.Options.Watch.
func (h *Hub) Watch(worker string) func(*event.Invocation) {
	all := h.audiences.Load()
	if all == nil {
		return nil
	}
	if a := (*all)[worker]; a != nil {
		return a.tell
	}
	return nil
}

// Console hands on one entry of a worker's log.
func (h *Hub) Console(e sandbox.Entry) {
	all := h.audiences.Load()
	if all == nil {
		return
	}
	if a := (*all)[e.Worker]; a != nil {
		for _, w := range a.watchers {
			w.console(&e)
		}
	}
}

// Open begins to watch a worker, by UID. The caller closes the watcher. Errors: Limited when too many watch already, Unavailable after
// Stop.
func (h *Hub) Open(worker string, f Filter) (*Watcher, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	select {
	case <-h.stopped:
		return nil, fault.New(fault.Unavailable, "tail.Open", "the node is stopping")
	default:
	}
	if h.count >= MaxWatchers {
		return nil, fault.Newf(fault.Limited, "tail.Open", "%d operators watch workers on this node already", MaxWatchers)
	}
	h.count++
	h.metrics.watchers.Inc()
	w := &Watcher{hub: h, worker: worker, filter: f, lines: make(chan line, maxLines)}
	h.setLocked(worker, append(slices.Clone(h.ofLocked(worker)), w))
	return w, nil
}

func (h *Hub) ofLocked(worker string) []*Watcher {
	if all := h.audiences.Load(); all != nil && (*all)[worker] != nil {
		return (*all)[worker].watchers
	}
	return nil
}

// setLocked swaps the audience of a worker.
func (h *Hub) setLocked(worker string, list []*Watcher) {
	next := map[string]*audience{}
	if all := h.audiences.Load(); all != nil {
		maps.Copy(next, *all)
	}
	if delete(next, worker); len(list) > 0 {
		a := &audience{watchers: list}
		a.tell = func(i *event.Invocation) {
			for _, w := range a.watchers {
				w.invocation(i)
			}
		}
		next[worker] = a
	}
	if len(next) == 0 {
		h.audiences.Store(nil)
		return
	}
	h.audiences.Store(&next)
}

func (h *Hub) close(w *Watcher) {
	h.mu.Lock()
	defer h.mu.Unlock()
	list := h.ofLocked(w.worker)
	at := slices.Index(list, w)
	if at < 0 {
		return
	}
	h.setLocked(w.worker, slices.Delete(slices.Clone(list), at, at+1))
	h.count--
	h.metrics.watchers.Dec()
}

// Stop ends every watching, so that the listener that carries them can close. Idempotent.
func (h *Hub) Stop() {
	h.mu.Lock()
	defer h.mu.Unlock()
	select {
	case <-h.stopped:
	default:
		close(h.stopped)
	}
}
