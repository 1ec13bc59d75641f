package sandbox

import (
	"container/heap"
	"time"
)

// timers are the timers of one invocation, the next one first; equal times in the order they were set. The guest gives
// the numbers. Not safe for concurrent use.
type timers struct {
	heap []*timer
	byID map[int32]*timer
	last uint64 // how many were set
}

type timer struct {
	id    int32
	due   time.Time
	order uint64
	index int
}

func (t *timers) len() int { return len(t.heap) }

func (t *timers) set(id int32, due time.Time) {
	if t.byID == nil {
		t.byID = make(map[int32]*timer)
	}
	t.clear(id)
	t.last++
	x := &timer{id: id, due: due, order: t.last}
	t.byID[id] = x
	heap.Push((*timerHeap)(t), x)
}

func (t *timers) clear(id int32) {
	if x := t.byID[id]; x != nil {
		delete(t.byID, id)
		heap.Remove((*timerHeap)(t), x.index)
	}
}

// next returns when the first timer is due; ok is false if there is none.
func (t *timers) next() (due time.Time, ok bool) {
	if len(t.heap) == 0 {
		return time.Time{}, false
	}
	return t.heap[0].due, true
}

// pop removes the first timer if it is due at now and returns its number.
func (t *timers) pop(now time.Time) (id int32, ok bool) {
	if len(t.heap) == 0 || t.heap[0].due.After(now) {
		return 0, false
	}
	x := heap.Pop((*timerHeap)(t)).(*timer)
	delete(t.byID, x.id)
	return x.id, true
}

func (t *timers) reset() {
	clear(t.heap)
	t.heap = t.heap[:0]
	clear(t.byID)
	t.last = 0
}

// timerHeap is timers as package heap wants it.
type timerHeap timers

// Len, Less, Swap, Push and Pop are heap.Interface.
func (h *timerHeap) Len() int { return len(h.heap) }

// Less orders by time, then by age.
func (h *timerHeap) Less(i, j int) bool {
	a, b := h.heap[i], h.heap[j]
	if c := a.due.Compare(b.due); c != 0 {
		return c < 0
	}
	return a.order < b.order
}

// Swap exchanges two timers.
func (h *timerHeap) Swap(i, j int) {
	h.heap[i], h.heap[j] = h.heap[j], h.heap[i]
	h.heap[i].index, h.heap[j].index = i, j
}

// Push appends a timer.
func (h *timerHeap) Push(x any) {
	t := x.(*timer)
	t.index = len(h.heap)
	h.heap = append(h.heap, t)
}

// Pop removes the last timer.
func (h *timerHeap) Pop() any {
	n := len(h.heap) - 1
	t := h.heap[n]
	h.heap[n] = nil
	h.heap = h.heap[:n]
	return t
}
