package meter

import "sync"

// Other is the label of every worker beyond the cap.
const Other = "_other"

// MaxWorkers is how many workers have a label of their own.
const MaxWorkers = 100

// Workers keeps one T, usually a set of counters, per worker: the first MaxWorkers have their own, all others share that of Other. A
// worker keeps its label for the life of the process, because a series that changes its meaning is worse than a coarse one. Safe for
// concurrent use.
type Workers[T any] struct {
	build func(label string) T

	mu sync.Mutex
	by map[string]T
}

// NewWorkers returns Workers whose values are made by build, once per label; that of Other is made at once.
func NewWorkers[T any](build func(label string) T) *Workers[T] {
	return &Workers[T]{build: build, by: map[string]T{Other: build(Other)}}
}

// Of returns the T of a worker.
func (w *Workers[T]) Of(worker string) T {
	w.mu.Lock()
	defer w.mu.Unlock()
	if t, known := w.by[worker]; known {
		return t
	}
	if len(w.by) > MaxWorkers {
		return w.by[Other]
	}
	t := w.build(worker)
	w.by[worker] = t
	return t
}
