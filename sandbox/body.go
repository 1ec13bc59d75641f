package sandbox

import (
	"errors"
	"io"
	"sync"

	"edged/sandbox/engine"
	"edged/sandbox/event"
)

// bodyBufferBytes is the most of a request body that is taken at once.
const bodyBufferBytes = 64 << 10

// bodyState is the request body of an invocation. All fields belong to the goroutine that runs the guest; while
// reading is set the buffer is the reader's.
type bodyState struct {
	source  event.Body // nil: none, or not ours any more
	buffer  *[]byte    // nil until the first read
	reading bool       // a reader waits for bytes
	reader  sync.WaitGroup
	atEnd   bool
	failure error // what every further read gives
}

var errBodyOver = event.ErrBodyAborted.New("sandbox.body", "the request is over")

// pullBody is the guest's wish for bytes: a Uint8Array, null at the end, the number of an operation that will bring one
// of these, or an exception.
func (g *guest) pullBody() engine.Value {
	b := &g.body
	switch {
	case b.failure != nil:
		return g.in.Throw(g.bodyError(b.failure))
	case b.atEnd:
		return engine.Null
	case b.source == nil:
		return g.in.Throw(g.bodyError(errBodyOver))
	case b.reading:
		return g.in.ThrowType("the request body is being read already")
	}
	if b.buffer == nil {
		b.buffer = g.box.bodies.Get().(*[]byte)
	}
	n, err := b.source.TryRead(*b.buffer)
	if n == 0 && err == nil {
		return g.awaitBody()
	}
	v, ok := g.bodyBytes(n, err)
	if !ok && !v.IsException() {
		return g.in.Throw(v)
	}
	return v
}

// awaitBody has a goroutine wait for bytes. It ends with the read, which Close of the body cuts short; endBody waits for it.
func (g *guest) awaitBody() engine.Value {
	id, ok := g.begun()
	if !ok {
		return g.in.ThrowRange("too many operations are open")
	}
	b := &g.body
	b.reading = true
	source, buffer, ended := b.source, *b.buffer, g.ended
	b.reader.Go(func() {
		n, err := source.Read(buffer)
		ended <- completion{id: id, settle: func(g *guest) (engine.Value, bool) {
			g.body.reading = false
			return g.bodyBytes(n, err)
		}}
	})
	return engine.Int(id)
}

// bodyBytes makes what a read gave into a value; ok is false for a reason of failure.
func (g *guest) bodyBytes(n int, err error) (v engine.Value, ok bool) {
	b := &g.body
	switch {
	case errors.Is(err, io.EOF):
		b.atEnd = true
	case err != nil:
		b.failure = err
	}
	if n > 0 {
		return g.in.NewBytes((*b.buffer)[:n]), true
	}
	if b.failure != nil {
		return g.bodyError(b.failure), false
	}
	if b.atEnd {
		return engine.Null, true
	}
	return g.in.NewBytes(nil), true // a reader that gave nothing; the guest asks again
}

// bodyError is how a guest sees that its request body failed.
func (g *guest) bodyError(err error) engine.Value {
	switch {
	case errors.Is(err, event.ErrBodyTooBig):
		return g.in.NewTypeError("the request body is larger than this node accepts")
	case errors.Is(err, event.ErrBodyAborted), g.left:
		return g.in.NewDOMException("AbortError", "the request body was cut: its sender has left, or its request is over")
	}
	return g.in.NewTypeError("the request body cannot be read")
}

// cancelBody: the guest wants no more.
func (g *guest) cancelBody() {
	b := &g.body
	if b.source == nil || b.atEnd {
		return
	}
	b.failure = errBodyOver
	b.source.Close()
}

// endBody lets go of the body: its owner may close it from now on. A read that waits is cut short.
func (g *guest) endBody() {
	b := &g.body
	if b.source == nil {
		return
	}
	if b.reading {
		b.source.Close()
	}
	b.reader.Wait() // also for one whose result is here already: the invocation's state is about to be cleared
	b.source = nil
	if b.buffer != nil && !b.reading { // else its last bytes are still wanted
		g.box.bodies.Put(b.buffer)
		b.buffer = nil
	}
}
