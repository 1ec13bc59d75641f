package queue

import (
	"errors"
	"fmt"
	"time"

	"edged/internal/fault"
)

// Consumer is what a QueueConsumer says (attachments §5), with the UIDs its references stand for.
type Consumer struct {
	Queue           string        // UID of the queue; one consumer each
	Worker          string        // handed to Deliver as it is
	MaxBatchSize    int           // 1–100
	MaxBatchTimeout time.Duration // 0–60 s from when the first message is due; 0 does not wait
	MaxConcurrency  int           // 1–250 batches in flight
	MaxRetries      int           // 0–100 redeliveries
	RetryDelay      time.Duration // 0–12 h
	DeadLetter      string        // UID of the dead-letter queue, "" drops exhausted messages
	Undeployed      bool          // no deployment serves it now: messages wait, and spend no attempt
}

func (c Consumer) check() error {
	var faults []error
	wrong := func(what string, v any) { faults = append(faults, fmt.Errorf("%s %v is out of range", what, v)) }
	if err := (Ref{UID: c.Queue}).check(); err != nil {
		faults = append(faults, err)
	}
	if len(c.DeadLetter) > maxUID || c.DeadLetter == c.Queue {
		wrong("dead-letter queue", c.DeadLetter)
	}
	if c.MaxBatchSize < 1 || c.MaxBatchSize > MaxBatch {
		wrong("maxBatchSize", c.MaxBatchSize)
	}
	if c.MaxBatchTimeout < 0 || c.MaxBatchTimeout > time.Minute {
		wrong("maxBatchTimeout", c.MaxBatchTimeout)
	}
	if c.MaxConcurrency < 1 || c.MaxConcurrency > 250 {
		wrong("maxConcurrency", c.MaxConcurrency)
	}
	if c.MaxRetries < 0 || c.MaxRetries > 100 {
		wrong("maxRetries", c.MaxRetries)
	}
	if c.RetryDelay < 0 || c.RetryDelay > MaxDelaySeconds*time.Second {
		wrong("retryDelay", c.RetryDelay)
	}
	if len(faults) > 0 {
		return fmt.Errorf("consumer of %.64q: %w", c.Queue, errors.Join(faults...))
	}
	return nil
}

// SetConsumers replaces the table of consumers. Every decision taken afterwards follows it: what to lease, how often to
// retry, where dead letters go. A queue without a consumer keeps its messages; deliveries that run when theirs is taken away
// end by its rules. A consumer of a queue that is not here yet takes effect when it is. Faults are Invalid and change nothing.
func (s *Store) SetConsumers(table []Consumer) error {
	next := make(map[string]Consumer, len(table))
	var faults []error
	for _, c := range table {
		faults = append(faults, c.check())
		if _, twice := next[c.Queue]; twice {
			faults = append(faults, fmt.Errorf("queue %.64q has two consumers", c.Queue))
		}
		next[c.Queue] = c
	}
	if err := errors.Join(faults...); err != nil {
		return fault.New(fault.Invalid, "queue.SetConsumers", err.Error())
	}
	s.mu.Lock()
	s.consumers = next
	for uid, q := range s.queues {
		if c, ok := next[uid]; ok {
			q.setConsumer(&c)
		} else {
			q.setConsumer(nil)
		}
	}
	s.mu.Unlock()
	signal(s.change)
	return nil
}

func (q *queue) setConsumer(c *Consumer) {
	q.mu.Lock()
	defer q.mu.Unlock()
	switch {
	case c == nil && q.consumer != nil:
		q.window.forget() // it is on disk, and nobody needs it in memory
	case c != nil && q.consumer != nil && *c == *q.consumer:
		return
	}
	q.consumer = c
	if c != nil {
		q.last = *c
	}
	q.pause, q.misses = time.Time{}, 0
	signal(q.wake)
}

// rulesLocked returns what a retry is decided by: the consumer of now, or the last there was.
func (q *queue) rulesLocked() Consumer {
	if q.consumer != nil {
		return *q.consumer
	}
	return q.last
}

// Detached reports whether the queue has no consumer here and nothing of it is in a handler's hands: when the deletion of
// its consumer is complete (attachments §5). A queue that is not here is detached.
func (s *Store) Detached(uid string) bool {
	q := s.find(uid)
	if q == nil {
		return true
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.consumer == nil && q.running == 0
}
