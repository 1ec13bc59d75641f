package sandbox

import (
	"context"
	"io"
	"sync"

	"edged/sandbox/engine"
	"edged/sandbox/event"
)

// sink is a body that the guest produces for somebody outside: the guest writes a piece, and goes on when it was taken.
// Its reading side is an event.Body and may be used by another goroutine, also after the invocation has ended.
type sink struct {
	mu      sync.Mutex // guards the fields below
	piece   []byte     // what the guest wrote and nobody has read yet; in store
	store   []byte
	writing int32             // the guest's operation that waits for it to be taken, 0 if none
	ended   chan<- completion // of the invocation; set when the exchange begins, before anybody else has the sink
	end     error             // io.EOF after the normal end
	closed  bool              // nobody reads any more
	dead    bool              // the invocation is over: nobody takes completions
	change  chan struct{}     // capacity 1: something to read, or the end
}

// maxPiece is the largest piece that the prelude writes.
const maxPiece = 64 << 10

func newSink() *sink { return &sink{change: make(chan struct{}, 1)} }

func (k *sink) wake() {
	select {
	case k.change <- struct{}{}:
	default:
	}
}

// write takes a piece of the guest's. operation is settled with true when it was taken and with false when nobody wants
// any more.
func (k *sink) write(piece []byte, operation int32) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.store = append(k.store[:0], piece...)
	k.piece, k.writing = k.store, operation
	if k.closed || len(piece) == 0 {
		k.settleLocked(!k.closed)
	}
	k.wake()
}

// settleLocked answers the write that waits.
func (k *sink) settleLocked(taken bool) {
	id := k.writing
	k.writing = 0
	if id != 0 && !k.dead {
		k.ended <- completion{id: id, settle: func(*guest) (engine.Value, bool) { return engine.Bool(taken), true }} // has room for every open operation
	}
}

// finish is the end of what the guest writes: io.EOF, or why it failed.
func (k *sink) finish(end error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.end == nil {
		k.end = end
	}
	k.wake()
}

// kill is finish when the invocation is over.
func (k *sink) kill() {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.dead = true
	if k.end == nil {
		k.piece, k.end = nil, errBodyOver
	}
	k.wake()
}

// TryRead is event.Body's.
func (k *sink) TryRead(p []byte) (int, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.closed {
		return 0, errBodyOver
	}
	if len(k.piece) > 0 {
		n := copy(p, k.piece)
		k.piece = k.piece[n:]
		if len(k.piece) == 0 {
			k.settleLocked(true)
		}
		return n, nil
	}
	return 0, k.end
}

// Read is event.Body's.
func (k *sink) Read(p []byte) (int, error) {
	for {
		if n, err := k.TryRead(p); n > 0 || err != nil || len(p) == 0 {
			return n, err
		}
		<-k.change // a write, the end, Close or kill comes in any case
	}
}

// Close is event.Body's: the guest's writes fail from now on.
func (k *sink) Close() error {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.closed = true
	k.piece = nil
	k.settleLocked(false)
	k.wake()
	return nil
}

// bytesBody is a body that is all there.
type bytesBody struct{ rest []byte }

// TryRead is event.Body's.
func (b *bytesBody) TryRead(p []byte) (int, error) {
	n := copy(p, b.rest)
	b.rest = b.rest[n:]
	if len(b.rest) == 0 {
		return n, io.EOF
	}
	return n, nil
}

// Read is event.Body's.
func (b *bytesBody) Read(p []byte) (int, error) { return b.TryRead(p) }

// Close is event.Body's.
func (b *bytesBody) Close() error { return nil }

// streamBody makes a body of a stream that can only be waited for, and that is to be closed once.
type streamBody struct {
	io.Reader
	close func() error
}

func newStreamBody(s io.ReadCloser) *streamBody { return &streamBody{s, sync.OnceValue(s.Close)} }

// TryRead is event.Body's: it never has anything at once.
func (*streamBody) TryRead([]byte) (int, error) { return 0, nil }

// Close is event.Body's.
func (b *streamBody) Close() error { return b.close() }

var (
	_ event.Body = (*loan)(nil)
	_ event.Body = (*sink)(nil)
	_ event.Body = (*bytesBody)(nil)
	_ event.Body = (*streamBody)(nil)
)

// How a guest's body goes out.
const (
	outNone   = iota
	outWhole  // a string or bytes
	outSource // the number of a source that it has not touched
	outStream // written by sinkWrite
)

// outgoing is the body of an exchange on its way out of the guest.
type outgoing struct {
	body   event.Body
	length int64 // -1 if unknown
	sink   *sink // of outStream
}

// whole is how many bytes of the body are in the node's memory.
func (o *outgoing) whole() int {
	if b, ok := o.body.(*bytesBody); ok {
		return len(b.rest)
	}
	return 0
}

// refuse lets go of a body that is not sent, and returns the exception v.
func (o *outgoing) refuse(v engine.Value) engine.Value {
	if o.body != nil {
		o.body.Close()
	}
	return v
}

// outgoing takes a body out of the guest. limit bounds one that is all there; false for what cannot be taken.
func (g *guest) outgoing(kind int32, payload engine.Value, declared int64) (o outgoing, ok bool) {
	o.length = -1
	switch kind {
	case outNone:
		return outgoing{}, true
	case outWhole:
		var b []byte
		if payload.IsString() {
			b, ok = g.in.AppendString(nil, payload)
		} else if view, isBytes := g.in.Bytes(payload); isBytes {
			b, ok = append([]byte{}, view...), true
		}
		o.body, o.length = &bytesBody{b}, int64(len(b))
		return o, ok
	case outSource:
		n, _ := payload.Int()
		l, lent := g.lend(n)
		if lent {
			o.body, o.length = l, declared
		}
		return o, lent
	case outStream:
		o.sink = newSink()
		o.body, o.length = o.sink, declared
		return o, true
	}
	return o, false
}

// depthKey is the context key of how many service calls deep an invocation is.
type depthKey struct{}

// maxDepth is how deep service calls nest below one request from outside (service-binding §4).
const maxDepth = 16

func depthOf(ctx context.Context) int {
	n, _ := ctx.Value(depthKey{}).(int)
	return n
}
