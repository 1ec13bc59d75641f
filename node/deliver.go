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
	names map[string]string // of queues that have a consumer, by UID

	workers map[string]bool // UIDs of those who take messages; applyConsumers' alone
}

// touched reports whether a delta changes who takes messages: a consumer, its worker or its queue.
func (c *consumers) touched(d *plan.Delta) bool {
	if len(d.Consumers.Put)+len(d.Consumers.Gone) > 0 {
		return true
	}
	for _, w := range d.Workers.Put {
		if c.workers[w.UID] {
			return true
		}
	}
	for _, uid := range d.Workers.Gone {
		if c.workers[uid] {
			return true
		}
	}
	for _, q := range d.Data.Put {
		if c.names[q.UID] != "" { // written by the same goroutine
			return true
		}
	}
	return false
}

// applyConsumers gives the queue room the consumers after a delta. It is called after the routes of the delta are in use, so that
// a consumer is never told to be deployed before it is.
func (n *Node) applyConsumers(d *plan.Delta) {
	if !n.consumers.touched(d) {
		return
	}
	p := n.versions.serving.plan
	list := make([]queue.Consumer, 0, len(p.Consumers))
	workers := make(map[string]bool, len(p.Consumers))
	names := make(map[string]string, len(p.Consumers))
	for _, c := range p.Consumers {
		if c.Home != "" && c.Home != n.id {
			continue // where its queue is
		}
		w := p.Workers[c.Worker]
		workers[c.Worker] = true
		list = append(list, consumerOf(c, w == nil || len(w.Weights) == 0))
		if q := p.Data[c.Queue]; q != nil {
			names[c.Queue] = q.Name
		}
	}
	n.consumers.mu.Lock()
	n.consumers.names = names
	n.consumers.mu.Unlock()
	n.consumers.workers = workers
	if err := n.stores.queue.SetConsumers(list); err != nil {
		n.log.Error("queue consumers not applied; the ones before go on", "err", err, "do", fault.ReportBug)
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
	span := n.batchTrace(b, name)
	batch := &event.Batch{ID: b.ID, Queue: name, Settler: settler{b}, Trace: span, Messages: make([]event.Message, len(b.Messages))}
	for i, m := range b.Messages {
		batch.Messages[i] = event.Message{ID: m.ID, Timestamp: m.TimestampMillis, Attempts: m.Attempts, Body: m.Body}
	}
	defer n.tasks.begin("queue batch", name, b.Worker)()
	reached, err := v.Queue(ctx, batch)
	span.End(err)
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

// detachPoll is how often a detaching looks whether the last delivery has ended.
const detachPoll = 20 * time.Millisecond

// detach returns when nothing of a queue is in a handler's hands any more (attachments §5).
func (n *Node) detach(ctx context.Context, _, queueUID string) error {
	tick := time.NewTicker(detachPoll)
	defer tick.Stop()
	for !n.stores.queue.Detached(queueUID) {
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-tick.C:
		}
	}
	return nil
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

// settler makes the settlements of a batch; the queue room decides at once, in the order of the calls.
type settler struct{ b *queue.Batch }

// Acknowledge, Retry, AcknowledgeAll and RetryAll are event.Settler's.
func (s settler) Acknowledge(id string) (event.Durable, error) { return durable(s.b.Acknowledge(id)) }
func (s settler) Retry(id string, delaySeconds int) (event.Durable, error) {
	return durable(s.b.Retry(id, delaySeconds))
}
func (s settler) AcknowledgeAll() (event.Durable, error) { return durable(s.b.AcknowledgeAll()) }
func (s settler) RetryAll(delaySeconds int) (event.Durable, error) {
	return durable(s.b.RetryAll(delaySeconds))
}

func durable(d queue.Durable, err error) (event.Durable, error) { return event.Durable(d), err }
