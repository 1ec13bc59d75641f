package sandbox

import (
	"io"
	"sync"

	"edged/sandbox/engine"
	"edged/sandbox/event"
)

var (
	errCut    = event.ErrWorker.New("sandbox.Stream", "the response body was cut")
	errClosed = errClient
)

// stream is a response body on its way from a guest to whoever reads it. The reader's side is Read and Close; all other
// methods and fields are of the goroutine that runs the guest. Nothing is buffered but the chunk in hand: a reader
// that does not read holds the worker back.
type stream struct {
	wants   chan []byte   // unbuffered: a Read hands over its buffer, and gets an answer for certain
	got     chan got      // capacity 1: the answer
	closing chan struct{} // closed by Close
	gone    chan struct{} // closed by end: no Read is answered any more; err is set before
	once    sync.Once
	err     error

	buf      []byte       // of the Read that waits, nil if none does
	read     engine.Value // promise of the next chunk, Undefined if none was asked for
	whole    []byte       // a small chunk
	rest     []byte       // what of it has not been given
	chunk    engine.Value // a large chunk in hand, Undefined if none: a copy that the worker cannot reach
	from     int          // what of it has been given
	declared int64        // content-length, -1 if there is none
	sent     int64
	over     bool // the worker's side has ended
}

// pumpLargest is the largest chunk that pumpTake leaves where it is.
const pumpLargest = 64 << 10

type got struct {
	n   int
	err error
}

func newStream(declared int64) *stream {
	return &stream{
		wants: make(chan []byte), got: make(chan got, 1), closing: make(chan struct{}), gone: make(chan struct{}),
		read: engine.Undefined, chunk: engine.Undefined, declared: declared,
	}
}

// Read waits for the worker's next bytes. At the normal end it returns io.EOF, after a failure another error.
func (s *stream) Read(p []byte) (int, error) {
	if len(p) == 0 {
		return 0, nil
	}
	select {
	case s.wants <- p:
	case <-s.gone:
		return 0, s.err
	}
	r := <-s.got
	return r.n, r.err
}

// Close cancels the worker's stream if it has not ended. It does not wait for the worker.
func (s *stream) Close() error {
	s.once.Do(func() { close(s.closing) })
	return nil
}

// give answers the waiting Read.
func (s *stream) give(n int, err error) {
	s.buf = nil
	s.got <- got{n, err}
}

// end tells this and every later Read that nothing more comes.
func (s *stream) end(err error) {
	if s.over {
		return
	}
	s.over = true
	s.err = err
	if s.buf != nil {
		s.give(0, err)
	}
	close(s.gone)
}

// pump brings the waiting Read as far as that goes without waiting.
func (g *guest) pump() error {
	s := g.stream
	for s.buf != nil {
		if g.giveChunk() {
			return nil
		}
		if s.read.IsUndefined() {
			v, err := g.in.Call(g.version.entries[entryPumpRead], engine.Undefined)
			if err != nil {
				return g.streamThrew(err)
			}
			s.read = v
			if err := g.jobs(); err != nil {
				return err
			}
		}
		switch g.in.PromiseState(s.read) {
		case engine.Fulfilled:
			if err := g.takeChunk(); err != nil {
				return err
			}
		case engine.Rejected:
			reason := g.in.PromiseResult(s.read)
			g.handled(s.read)
			return g.streamThrew(g.in.Describe(reason))
		default:
			return g.in.Err()
		}
	}
	return nil
}

// takeChunk looks at what the stream gave.
func (g *guest) takeChunk() error {
	s := g.stream
	result := g.in.PromiseResult(s.read)
	g.drop(s.read)
	s.read = engine.Undefined
	chunk, err := g.in.Call(g.version.entries[entryPumpTake], engine.Undefined, result)
	g.drop(result)
	if err != nil {
		if err := g.streamThrew(err); err != nil {
			return err
		}
		return g.cancelGuestStream()
	}
	if !chunk.IsNull() {
		g.keepChunk(chunk)
		return nil
	}
	if s.declared >= 0 && s.sent != s.declared {
		g.failStream("the response stream ended before its content-length")
		return nil
	}
	s.end(io.EOF)
	return nil
}

// keepChunk takes the bytes of a small chunk at once: the worker may change them as soon as it runs again.
func (g *guest) keepChunk(chunk engine.Value) {
	s := g.stream
	view, ok := g.in.Bytes(chunk)
	if ok && len(view) > pumpLargest {
		s.chunk, s.from = chunk, 0
		return
	}
	s.whole = append(s.whole[:0], view...)
	s.rest = s.whole
	g.drop(chunk)
}

// giveChunk gives the waiting Read what fits of the bytes in hand and reports whether there were any.
func (g *guest) giveChunk() bool {
	s := g.stream
	if !s.chunk.IsUndefined() {
		view, ok := g.in.Bytes(s.chunk)
		if n := min(len(s.buf), len(view)-s.from); ok && n > 0 {
			s.from += n
			g.give(view[s.from-n : s.from])
			return true
		}
		g.drop(s.chunk)
		s.chunk = engine.Undefined
	}
	if len(s.rest) == 0 {
		return false
	}
	n := min(len(s.buf), len(s.rest))
	g.give(s.rest[:n])
	s.rest = s.rest[n:]
	return true
}

// give answers the waiting Read with bytes that fit into its buffer, unless they are more than the worker declared.
func (g *guest) give(b []byte) {
	s := g.stream
	s.sent += int64(len(b))
	if s.declared >= 0 && s.sent > s.declared {
		g.failStream("the response stream is longer than its content-length")
		return
	}
	s.give(copy(s.buf, b), nil)
}

// streamThrew ends the stream because the worker's side failed; the error it returns is one that ends the invocation.
func (g *guest) streamThrew(err error) error {
	_ = g.uncaught(err) // the report is all: a failed instance is told by Err
	g.stream.end(errCut)
	return g.in.Err()
}

// failStream cuts the stream for a reason that is written to the worker's log.
func (g *guest) failStream(why string) {
	g.version.console(LevelUncaught, why)
	g.stream.end(errCut)
	_ = g.cancelGuestStream() // a failed instance shows at the next step
}

// closeStream is what Close comes to.
func (g *guest) closeStream() error {
	if err := g.enter(); err != nil {
		return err
	}
	g.cancelStream()
	return g.in.Err()
}

// cancelStream ends a stream that nobody reads any more.
func (g *guest) cancelStream() {
	if g.stream.over {
		return
	}
	g.stream.end(errClosed)
	_ = g.cancelGuestStream() // as above
}

// cancelGuestStream tells the worker's stream. The guest runs.
func (g *guest) cancelGuestStream() error {
	v, err := g.in.Call(g.version.entries[entryPumpCancel], engine.Undefined)
	g.drop(v)
	if err != nil {
		_ = g.uncaught(err)
	}
	return g.in.Err()
}
