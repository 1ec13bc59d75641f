package node

import (
	"context"
	"math/rand/v2"
	"sync"
	"time"

	"edged/control/plan"
	"edged/internal/fault"
	"edged/queue"
	"edged/router/table"
	"edged/sandbox"
	"edged/sandbox/event"
)

// consumers is who takes messages, as of the plan in use.
type consumers struct {
	mu    sync.Mutex
	names map[string]string // of queues, by UID
}

// apply gives the queue room the consumers after a delta. It is called after the routes of the delta are in use, so that
// a consumer is never told to be deployed before it is.
func (n *Node) applyConsumers(d *plan.Delta) {
	if len(d.Consumers.Put)+len(d.Consumers.Gone)+len(d.Workers.Put)+len(d.Workers.Gone)+len(d.Data.Put)+len(d.Data.Gone) == 0 {
		return
	}
	p := n.versions.serving.plan
	list := make([]queue.Consumer, 0, len(p.Consumers))
	names := make(map[string]string, len(p.Consumers))
	for _, c := range p.Consumers {
		w := p.Workers[c.Worker]
		list = append(list, consumerOf(c, w == nil || len(w.Weights) == 0))
		if q := p.Data[c.Queue]; q != nil {
			names[c.Queue] = q.Name
		}
	}
	n.consumers.mu.Lock()
	n.consumers.names = names
	n.consumers.mu.Unlock()
	if err := n.stores.queue.SetConsumers(list); err != nil {
		n.log.Error("queue consumers not applied; the ones before go on", "err", err)
	}
}

// deliver hands a batch to a version of its worker, drawn by weight (queue §4).
func (n *Node) deliver(ctx context.Context, b *queue.Batch) (queue.Outcome, error) {
	w := n.versions.worker(b.Worker)
	if w == nil {
		return queue.NotReached, nil
	}
	v := codeOf(w)
	if v == nil {
		return queue.NotReached, fault.New(fault.Unavailable, "node.deliver", "the version that was drawn cannot run")
	}
	n.consumers.mu.Lock()
	name := n.consumers.names[b.Queue]
	n.consumers.mu.Unlock()
	settler := &settler{b: b}
	batch := &event.Batch{ID: b.ID, Queue: name, Settler: settler, Messages: make([]event.Message, len(b.Messages))}
	for i, m := range b.Messages {
		batch.Messages[i] = event.Message{ID: m.ID, Timestamp: m.TimestampMillis, Attempts: m.Attempts, Body: m.Body}
	}
	reached, err := v.Queue(ctx, batch)
	settler.wait() // every call made before the handler's end counts, awaited or not
	switch {
	case !reached:
		return queue.NotReached, err
	case err == nil:
		return queue.Returned, nil
	case fault.CodeOf(err) == fault.Canceled || fault.NameOf(err) == "draining":
		return queue.Unknown, err
	}
	return queue.Threw, err
}

// consumerOf is a consumer as the queue room wants it.
func consumerOf(c *plan.Consumer, undeployed bool) queue.Consumer {
	return queue.Consumer{Queue: c.Queue, Worker: c.Worker, MaxBatchSize: c.MaxBatchSize,
		MaxBatchTimeout: time.Duration(c.MaxBatchTimeoutSeconds) * time.Second, MaxConcurrency: c.MaxConcurrency, MaxRetries: c.MaxRetries,
		RetryDelay: time.Duration(c.RetryDelaySeconds) * time.Second, DeadLetter: c.DeadLetterQueue, Undeployed: undeployed}
}

// codeOf draws a version of a worker, nil if it cannot run here.
func codeOf(w *table.Worker) *sandbox.Version {
	picked := w.Pick(rand.Uint32N(table.FullWeight))
	if picked == nil {
		return nil
	}
	code, _ := picked.Handler.(*sandbox.Version)
	return code
}

// settler makes the settlements of a batch in the order in which the handler asked for them.
type settler struct {
	b    *queue.Batch
	last chan struct{} // closed when the one asked for last is durable
}

func (s *settler) next(do func() error) (event.Durable, error) {
	before, done := s.last, make(chan struct{})
	s.last = done
	var err error
	go func() { // ends with do, which waits for the disk alone; wait waits for it
		defer close(done)
		if before != nil {
			<-before
		}
		err = do()
	}()
	return func(ctx context.Context) error {
		select {
		case <-done:
			return err
		case <-ctx.Done():
			return ctx.Err()
		}
	}, nil
}

func (s *settler) wait() {
	if s.last != nil {
		<-s.last
	}
}

// Acknowledge, Retry, AcknowledgeAll and RetryAll are event.Settler's.
func (s *settler) Acknowledge(id string) (event.Durable, error) {
	return s.next(func() error { return s.b.Acknowledge(id) })
}
func (s *settler) Retry(id string, delaySeconds int) (event.Durable, error) {
	return s.next(func() error { return s.b.Retry(id, delaySeconds) })
}
func (s *settler) AcknowledgeAll() (event.Durable, error) {
	return s.next(s.b.AcknowledgeAll)
}
func (s *settler) RetryAll(delaySeconds int) (event.Durable, error) {
	return s.next(func() error { return s.b.RetryAll(delaySeconds) })
}
