package facade

import (
	"context"

	"edged/sandbox/binding"
	"edged/sandbox/engine"
)

// The methods of a queue's producer (queue §3).
var (
	queueSend      = &Method{"queue", "send", []string{"invalid_body", "message_too_large", unavailable}}
	queueSendBatch = &Method{"queue", "sendBatch", []string{"invalid_body", "message_too_large", "batch_too_large", unavailable}}
)

// The limits of queue §3: more is not even copied out of the guest.
const (
	queueMaxBody  = 127000
	queueMaxBatch = 100
)

// queueSend(number, flat, batch) takes body, delay (-1 for none), body, delay … and brings the ids, joined by newlines.
func hostQueueSend(in *engine.Instance, args []engine.Value) engine.Value {
	b, c, ok := of(in, args[0])
	n, ok2 := in.GetProp(args[1], "length").Int()
	if !ok || !ok2 || b.Queue == nil || n < 0 || n%2 != 0 || n > 2*queueMaxBatch {
		return badCall(in)
	}
	m := queueSend
	if args[2].Bool() {
		m = queueSendBatch
	}
	held, messages := 0, make([]binding.Message, n/2)
	for i := range messages {
		body := in.GetIndex(args[1], uint32(2*i))
		octets, fits := octets(in, body, queueMaxBody)
		in.Free(body)
		delay, ok := in.GetIndex(args[1], uint32(2*i+1)).Int()
		if !ok {
			return badCall(in)
		}
		if !fits {
			return in.ThrowError("message_too_large", "a body is larger than 127000 bytes")
		}
		held += len(octets)
		messages[i] = binding.Message{Body: octets, DelaySeconds: int(delay)}
	}
	return start(in, c, b, m, held, func(ctx context.Context, _ Room) (func(*engine.Instance) engine.Value, error) {
		ids, err := b.Queue.Send(ctx, messages)
		return func(in *engine.Instance) engine.Value { return texts(in, ids) }, err
	})
}

// texts makes an array of strings.
func texts(in *engine.Instance, list []string) engine.Value {
	values := make([]engine.Value, len(list))
	for i, s := range list {
		values[i] = in.NewString([]byte(s))
	}
	return in.NewArray(values...)
}
