package front

import (
	"context"
	"errors"
	"io"
	"net"
	"strings"
	"time"

	"github.com/valyala/fasthttp"
	"github.com/versity/versitygw/s3err"

	"edged/control/client"
)

const (
	patience   = time.Minute     // for one piece of a body, from a client or to it
	nodeTime   = 2 * time.Minute // for the node to take a piece, to send one, or to answer
	pieceBytes = 64 << 10
)

// connOf returns the connection of a request of the library, nil if there is none.
func connOf(ctx context.Context) net.Conn {
	if r, ok := ctx.(*fasthttp.RequestCtx); ok {
		return r.Conn()
	}
	return nil
}

// send makes a call with a body of size bytes and decodes its answer into out. The body is read here, in the goroutine of its request:
// the library uses both again once the request is answered.
func (f *front) send(ctx context.Context, call client.Call, body io.Reader, size int64, out any) error {
	conn := connOf(ctx)
	node, cancel := context.WithCancel(f.base)
	defer cancel()
	watch := time.AfterFunc(nodeTime, cancel)
	defer watch.Stop()
	await := func() {
		watch.Reset(nodeTime)
		if conn != nil {
			_ = conn.SetReadDeadline(time.Now().Add(patience)) // a connection that cannot is at its end
		}
	}
	if size == 0 {
		if err := feed(io.Discard, body, 0, await); err != nil {
			return err
		}
		return f.told("send", f.opt.Node.SendFor(node, call, strings.NewReader(""), 0, out))
	}
	r, w := io.Pipe()
	sent := make(chan error, 1)
	go func() { // ends with the call, which node ends
		err := f.opt.Node.SendFor(node, call, r, size, out)
		r.CloseWithError(errAnswered)
		sent <- err
	}()
	fed := feed(w, body, size, await)
	w.CloseWithError(fed) // nil is the end of a whole body
	err := <-sent
	if fed != nil && !errors.Is(fed, errAnswered) && !errors.Is(fed, io.ErrClosedPipe) {
		return fed
	}
	return f.told("send", err)
}

// errAnswered ends a body that the node does not want any more.
var errAnswered = errors.New("the node has answered")

// feed copies a body of size bytes to w. The last piece is written only after the body's end was read, where the library verifies
// it. await is called before each wait for a piece.
func feed(w io.Writer, body io.Reader, size int64, await func()) error {
	n := min(size+1, pieceBytes) // one more, to see a body that is too long
	held, next := make([]byte, 0, n), make([]byte, 0, n)
	for total, end := int64(0), false; ; {
		next = next[:0]
		for len(next) < cap(next) && !end {
			await()
			n, err := body.Read(next[len(next):cap(next)])
			next, total = next[:len(next)+n], total+int64(n)
			switch {
			case total > size:
				return s3err.GetAPIError(s3err.ErrContentLengthMismatch)
			case err == io.EOF:
				end = true
			case err != nil:
				return bodyError(err)
			}
		}
		if end && total < size {
			return s3err.GetAPIError(s3err.ErrContentLengthMismatch)
		}
		if err := write(w, held); err != nil {
			return err
		}
		if end {
			return write(w, next)
		}
		held, next = next, held
	}
}

// write writes p, if there is any: a pipe would wait with nothing.
func write(w io.Writer, p []byte) error {
	if len(p) == 0 {
		return nil
	}
	_, err := w.Write(p)
	return err
}

// bodyError is what a client is told whose body could not be read: what the library found, or that it did not arrive.
func bodyError(err error) error {
	var known s3err.S3Error
	if errors.As(err, &known) {
		return known
	}
	return s3err.GetAPIError(s3err.ErrIncompleteBody)
}

// stream is an object on its way to a client. The library reads and closes it after the request's handler has returned.
type stream struct {
	src    io.ReadCloser
	conn   net.Conn // nil without
	watch  *time.Timer
	cancel context.CancelFunc // ends the call
}

// open makes a call that is answered with bytes.
func (f *front) open(ctx context.Context, call client.Call) (*stream, error) {
	base, cancel := context.WithCancel(f.base)
	watch := time.AfterFunc(nodeTime, cancel)
	src, err := f.opt.Node.Open(base, call)
	if err != nil {
		watch.Stop()
		cancel()
		return nil, err
	}
	return &stream{src, connOf(ctx), watch, cancel}, nil
}

// Read returns the next bytes, for which the node has nodeTime, and gives the client patience to take them.
func (s *stream) Read(p []byte) (int, error) {
	s.watch.Reset(nodeTime)
	n, err := s.src.Read(p)
	s.watch.Stop()
	if s.conn != nil {
		_ = s.conn.SetWriteDeadline(time.Now().Add(patience)) // a connection that cannot is at its end
	}
	return n, err
}

// Close ends the call.
func (s *stream) Close() error {
	s.watch.Stop()
	s.cancel()
	return s.src.Close()
}
