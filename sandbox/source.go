package sandbox

import (
	"errors"
	"io"
	"sync"

	"edged/sandbox/engine"
	"edged/sandbox/event"
)

// bodyBufferBytes is the most of a body that is taken at once.
const bodyBufferBytes = 64 << 10

// source is a body that comes into an invocation from outside: the request's, or that of a response which the guest
// asked for. The guest knows it by a number; 0 is the request. All fields belong to the goroutine that runs the guest;
// while reading is set the buffer is the reader's.
type source struct {
	body    event.Body // nil: none, or not ours any more
	of      *exchange  // what brought it; it is ours to close then. nil for the request's
	unread  bool       // the guest wants no more
	lent    bool       // somebody else reads it
	buffer  *[]byte    // nil until the first read
	reading bool       // a reader waits for bytes
	reader  sync.WaitGroup
	atEnd   bool
	failure error // what every further read gives
}

var errBodyOver = event.ErrBodyAborted.New("sandbox.body", "the request is over")

// source returns the source with this number, nil if there is none.
func (g *guest) source(number int32) *source {
	if number == 0 {
		return &g.body
	}
	if x := g.exchanges[number]; x != nil {
		return x.source
	}
	return nil
}

// pull is the guest's wish for bytes: a Uint8Array, null at the end, the number of an operation that will bring one of
// these, or an exception.
func (g *guest) pull(s *source) engine.Value {
	switch {
	case s == nil:
		return g.in.Throw(g.bodyError(errBodyOver))
	case s.failure != nil:
		v := g.in.Throw(g.bodyError(s.failure))
		g.closeSource(s)
		return v
	case s.atEnd:
		g.closeSource(s)
		return engine.Null
	case s.body == nil:
		return g.in.Throw(g.bodyError(errBodyOver))
	case s.reading:
		return g.in.ThrowType("the body is being read already")
	}
	if s.buffer == nil {
		s.buffer = g.box.bodies.Get().(*[]byte)
	}
	n, err := s.body.TryRead(*s.buffer)
	if n == 0 && err == nil {
		return g.awaitBytes(s)
	}
	v, ok := g.bytesOf(s, n, err)
	if !ok && !v.IsException() {
		return g.in.Throw(v)
	}
	return v
}

// awaitBytes has a goroutine wait for bytes. It ends with the read, which Close of the body cuts short; endSource waits for it.
func (g *guest) awaitBytes(s *source) engine.Value {
	id, ok := g.begun()
	if !ok {
		return g.in.ThrowRange("too many operations are open")
	}
	s.reading = true
	body, buffer, ended := s.body, *s.buffer, g.ended
	s.reader.Go(func() {
		n, err := body.Read(buffer)
		ended <- completion{id: id, settle: func(g *guest) (engine.Value, bool) {
			s.reading = false
			v, ok := g.bytesOf(s, n, err)
			if s.unread {
				g.closeSource(s)
			}
			return v, ok
		}}
	})
	return engine.Int(id)
}

// bytesOf makes what a read gave into a value; ok is false for a reason of failure.
func (g *guest) bytesOf(s *source, n int, err error) (v engine.Value, ok bool) {
	switch {
	case errors.Is(err, io.EOF):
		s.atEnd = true
	case err != nil:
		s.failure = err
	}
	if n > 0 {
		g.box.opt.Metrics.bodyIn.Add(float64(n))
		if s.of == nil {
			g.tally.in += int64(n)
		}
		return g.in.NewBytes((*s.buffer)[:n]), true
	}
	if s.failure != nil {
		reason := g.bodyError(s.failure)
		g.closeSource(s)
		return reason, false
	}
	if s.atEnd {
		g.closeSource(s)
		return engine.Null, true
	}
	return g.in.NewBytes(nil), true // a reader that gave nothing; the guest asks again
}

// bodyError is how a guest sees that a body failed.
func (g *guest) bodyError(err error) engine.Value {
	switch {
	case errors.Is(err, event.ErrBodyTooBig):
		return g.in.NewTypeError("the request body is larger than this node accepts")
	case errors.Is(err, event.ErrBodyAborted), g.left:
		return g.in.NewDOMException("AbortError", "the body was cut: its sender has left, or its request is over")
	}
	return g.in.NewTypeError("the body cannot be read")
}

// cancelSource: the guest wants no more.
func (g *guest) cancelSource(s *source) {
	if s == nil || s.body == nil || s.atEnd {
		return
	}
	s.failure, s.unread = errBodyOver, true
	s.body.Close()
	g.closeSource(s)
}

// closeSource lets go of what an exchange brought, once the guest asks no more: what is behind it need not wait for the
// end of the invocation.
func (g *guest) closeSource(s *source) {
	if s.of == nil || s.body == nil || s.reading || s.lent {
		return
	}
	s.body.Close()
	s.body = nil
	if s.buffer != nil {
		g.box.bodies.Put(s.buffer)
		s.buffer = nil
	}
	s.of.source = nil
	g.over(s.of)
}

// lend gives a source to somebody outside who reads it instead of the guest: the bytes then never enter the guest. False
// if the guest has begun to read it.
func (g *guest) lend(number int32) (*loan, bool) {
	s := g.source(number)
	if s == nil || s.body == nil || s.reading || s.atEnd || s.failure != nil || s.buffer != nil {
		return nil, false
	}
	l := newLoan(s.body, g.box.opt.Metrics)
	s.failure, s.lent = errBodyOver, true // for the guest
	if number == 0 {
		g.lent = l
	}
	g.loans = append(g.loans, l)
	return l, true
}

// endSource lets go of a body: its owner may close it from now on. A read that waits is cut short.
func (g *guest) endSource(s *source) {
	if s.body == nil {
		return
	}
	if s.reading || s.of != nil {
		s.body.Close()
	}
	s.reader.Wait() // also for one whose result is here already: the invocation's state is about to be cleared
	s.body = nil
	if s.buffer != nil && !s.reading { // else its last bytes are still wanted
		g.box.bodies.Put(s.buffer)
		s.buffer = nil
	}
}

// endLoans closes what is still lent.
func (g *guest) endLoans() {
	for _, l := range g.loans {
		l.abandon()
	}
}

// endSources ends every source but the request's.
func (g *guest) endSources() {
	for _, x := range g.exchanges {
		if x.source != nil {
			g.endSource(x.source)
		}
	}
}

// host functions

// bodyPull(number), bodyCancel(number)
func hostBodyPull(in *engine.Instance, args []engine.Value) engine.Value {
	n, _ := args[0].Int()
	return guestOf(in).pull(guestOf(in).source(n))
}

func hostBodyCancel(in *engine.Instance, args []engine.Value) engine.Value {
	n, _ := args[0].Int()
	guestOf(in).cancelSource(guestOf(in).source(n))
	return engine.Undefined
}
