package event

import (
	"context"

	"edged/internal/trace"
)

// Scheduled is one matched minute of a cron trigger (module-worker §3.2).
type Scheduled struct {
	Cron          string // the expression as stored
	ScheduledTime int64  // start of the matched minute, Unix milliseconds

	Trace *trace.Span // as in Request
}

// Batch is one delivery of queue messages (module-worker §3.3). Nothing in it is changed or kept after the invocation
// has ended.
type Batch struct {
	ID       string
	Queue    string // the queue Resource's name
	Messages []Message
	Settler  Settler

	Trace *trace.Span // as in Request
}

// Message is one message of a delivery.
type Message struct {
	ID        string
	Timestamp int64 // acceptance, Unix milliseconds
	Attempts  int   // 1 on the first delivery
	Body      []byte
}

// Settler takes the settlements of one batch (queue §5). A method decides at once and in the order of the calls, and must
// not wait; the function it returns waits until the decision is durable. Errors carry the contract's names. The sandbox
// calls one method at a time, and none once the handler's promise has settled; the functions may run at the same time.
type Settler interface {
	Acknowledge(id string) (Durable, error)
	Retry(id string, delaySeconds int) (Durable, error) // delaySeconds -1: the consumer's default
	AcknowledgeAll() (Durable, error)
	RetryAll(delaySeconds int) (Durable, error)
}

// Durable waits until what was decided is on disk.
type Durable func(ctx context.Context) error
