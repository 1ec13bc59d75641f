package meter

import "sync"

// Other is the label of every worker beyond the cap.
const Other = "_other"

// Workers gives a worker its metric label: its own name for the first Max names, Other beyond. A name keeps its label for the
// life of the process, because a series that changes its meaning is worse than a coarse one. Safe for concurrent use.
type Workers struct {
	Max int // 0 means 100

	mu    sync.Mutex
	names map[string]struct{}
}

// Label returns the label of the worker called name.
func (w *Workers) Label(name string) string {
	w.mu.Lock()
	defer w.mu.Unlock()
	if _, known := w.names[name]; known {
		return name
	}
	limit := w.Max
	if limit == 0 {
		limit = 100
	}
	if len(w.names) >= limit {
		return Other
	}
	if w.names == nil {
		w.names = make(map[string]struct{})
	}
	w.names[name] = struct{}{}
	return name
}
