package binding

import "context"

// Queue is the producer side of one queue (queue §3). Named errors: message_too_large, batch_too_large,
// backend_unavailable.
type Queue interface {
	// Send accepts all of the messages or none and returns their ids, in order, when they are durable.
	Send(ctx context.Context, messages []Message) (ids []string, err error)
}

// Message is one message to send.
type Message struct {
	Body         []byte
	DelaySeconds int // -1: the queue's default
}
