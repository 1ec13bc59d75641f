package facade

import (
	"context"

	"edged/sandbox/engine"
	"edged/sandbox/event"
)

// The methods of the batch that a queue handler gets (queue §5).
var (
	batchAcknowledge    = &Method{"batch", "acknowledge", []string{"unknown_batch", "unknown_message", "already_settled", unavailable}}
	batchRetry          = &Method{"batch", "retry", []string{"unknown_batch", "unknown_message", "already_settled", unavailable}}
	batchAcknowledgeAll = &Method{"batch", "acknowledgeAll", []string{"unknown_batch", unavailable}}
	batchRetryAll       = &Method{"batch", "retryAll", []string{"unknown_batch", unavailable}}
)

// settle(retry, message id or null for all, delay or -1) decides at once, so that calls take effect in their order, and
// ends when the decision is durable.
func hostSettle(in *engine.Instance, args []engine.Value) engine.Value {
	c := in.User.(Caller)
	retry, all := args[0].Bool(), args[1].IsNull()
	delay, ok := args[2].Int()
	id, ok2 := "", all
	if !all {
		id, ok2 = in.String(args[1])
	}
	if !ok || !ok2 {
		return badCall(in)
	}
	b := c.Batch()
	if b == nil {
		return in.ThrowError("unknown_batch", "the batch has ended")
	}
	m, durable, err := decide(b.Settler, retry, all, id, int(delay))
	if err != nil {
		return in.Throw(m.Reason(in, err))
	}
	return start(in, c, nil, m, 0, func(ctx context.Context, _ Room) (func(*engine.Instance) engine.Value, error) {
		return nothing, durable(ctx)
	})
}

func decide(s event.Settler, retry, all bool, id string, delay int) (*Method, event.Durable, error) {
	var d event.Durable
	var err error
	switch {
	case retry && all:
		d, err = s.RetryAll(delay)
		return batchRetryAll, d, err
	case retry:
		d, err = s.Retry(id, delay)
		return batchRetry, d, err
	case all:
		d, err = s.AcknowledgeAll()
		return batchAcknowledgeAll, d, err
	}
	d, err = s.Acknowledge(id)
	return batchAcknowledge, d, err
}
