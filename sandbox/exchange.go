package sandbox

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"

	"edged/internal/fault"
	"edged/sandbox/binding"
	"edged/sandbox/engine"
	"edged/sandbox/event"
)

// exchange is one request that the guest sent: through a service binding or to the outside.
type exchange struct {
	cancel context.CancelFunc
	sink   *sink // of a request body that the guest writes; nil for others
	source *source
}

// reply is what an exchange brings.
type reply struct {
	event.Response
	url        string // of the last request, "" if it is not known
	redirected bool
}

var errSubrequests = fault.New(fault.Limited, "sandbox.exchange", "too many subrequests")

// exchange starts one. do is called beside the guest; it must return promptly when its context is done, which also
// ends the response's stream.
func (g *guest) exchange(o outgoing, do func(ctx context.Context) (*reply, error), reason func(in *engine.Instance, err error) engine.Value) engine.Value {
	if g.subrequests >= g.box.opt.MaxSubrequests {
		if o.body != nil {
			o.body.Close()
		}
		return g.in.Throw(reason(g.in, errSubrequests))
	}
	id, ok := g.begun()
	if !ok {
		return g.in.ThrowRange("too many operations are open")
	}
	g.subrequests++
	if o.sink != nil {
		o.sink.ended = g.ended
	}
	ctx, cancel := context.WithCancel(g.callContext())
	x := &exchange{cancel: cancel, sink: o.sink}
	if g.exchanges == nil {
		g.exchanges = map[int32]*exchange{}
	}
	g.exchanges[id] = x
	ended := g.ended
	g.calls.atWork.Go(func() {
		r, err := g.guardedExchange(ctx, do)
		c := completion{id: id, drop: func() { r.close() }}
		c.settle = func(g *guest) (engine.Value, bool) {
			if err != nil {
				x.end()
				return reason(g.in, err), false
			}
			return g.received(id, x, r), true
		}
		ended <- c
	})
	return engine.Int(id)
}

// guardedExchange keeps a bug in what is called from the node.
func (g *guest) guardedExchange(ctx context.Context, do func(ctx context.Context) (*reply, error)) (r *reply, err error) {
	defer func() {
		if p := recover(); p != nil {
			g.panicked(p)
			r, err = nil, fault.New(fault.Internal, "sandbox.exchange", "")
		}
	}()
	return do(ctx)
}

func (r *reply) close() {
	if r != nil && r.Stream != nil {
		r.Stream.Close()
	}
}

// end ends what an exchange still has open.
func (x *exchange) end() {
	x.cancel()
	if x.sink != nil {
		x.sink.Close()
	}
}

// received makes a reply a value: [status, packed header, body kind, body, url, redirected]. Kinds as in outgoing; a
// source has the exchange's number.
func (g *guest) received(id int32, x *exchange, r *reply) engine.Value {
	kind, body := int32(outWhole), engine.Null
	switch {
	case r.Stream != nil:
		x.source = &source{body: bodyOf(r.Stream), owned: true}
		if g.sources == nil {
			g.sources = map[int32]*source{}
		}
		g.sources[id] = x.source
		kind, body = outSource, engine.Int(id)
	case r.Null:
		kind = outNone
	default:
		body = g.in.NewBytes(r.Body)
	}
	return g.in.NewArray(engine.Int(int32(r.Status)), g.in.NewLatin1(r.Header), engine.Int(kind), body,
		g.in.NewString([]byte(r.url)), engine.Bool(r.redirected))
}

// bodyOf is the stream as a body; one that is a body already stays it.
func bodyOf(s io.ReadCloser) event.Body {
	if b, ok := s.(event.Body); ok {
		return b
	}
	return streamBody{s}
}

// endExchanges ends every exchange. Nobody reports to the guest afterwards.
func (g *guest) endExchanges() {
	for _, x := range g.exchanges {
		if x.sink != nil {
			x.sink.kill()
		}
		x.cancel()
	}
}

// serviceFetch(number, method, url, packed header, body kind, body, length)
func hostServiceFetch(in *engine.Instance, args []engine.Value) engine.Value {
	g := guestOf(in)
	n, _ := args[0].Int()
	b := g.Binding(n)
	req, o, ok := g.subrequest(args[1:])
	if !ok || b == nil || b.Service == nil {
		return in.ThrowType("host.serviceFetch: wrong arguments")
	}
	depth := depthOf(g.from) + 1
	return g.exchange(o, func(ctx context.Context) (*reply, error) {
		if depth > maxDepth {
			return nil, errTooDeep
		}
		r := &reply{}
		r.Length = -1
		err := b.Service.Serve(context.WithValue(ctx, depthKey{}, depth), req, &r.Response)
		return serviceReply(r, err)
	}, serviceReason)
}

var (
	errTooDeep  = binding.ErrServiceUnavailable.New("sandbox.serviceFetch", "service calls are nested too deep")
	internalish = []error{event.ErrWorker, event.ErrCPU, event.ErrWall, event.ErrMemory}
)

// serviceReply is what a callee's failure is for its caller (service-binding §2): a handler that failed has answered 500.
func serviceReply(r *reply, err error) (*reply, error) {
	for _, failed := range internalish {
		if errors.Is(err, failed) {
			return &reply{Response: event.Response{Status: http.StatusInternalServerError,
				Header: []byte("content-type\ntext/plain; charset=utf-8\n"), Body: []byte("worker_error\n"), Length: -1}}, nil
		}
	}
	return r, err
}

func serviceReason(in *engine.Instance, err error) engine.Value {
	if errors.Is(err, event.ErrBodyTooBig) {
		return in.NewError("request_too_large", "the request is larger than the service accepts")
	}
	return in.NewError("backend_unavailable", "the service cannot answer now")
}

// outboundFetch(redirect mode, method, url, packed header, body kind, body, length)
func hostOutboundFetch(in *engine.Instance, args []engine.Value) engine.Value {
	g := guestOf(in)
	mode, _ := in.String(args[0])
	req, o, ok := g.subrequest(args[1:])
	if !ok {
		return in.ThrowType("host.outboundFetch: wrong arguments")
	}
	door := g.box.opt.Fetch
	return g.exchange(o, func(ctx context.Context) (*reply, error) {
		if door == nil {
			return nil, errNoFetcher
		}
		r := &reply{}
		r.Length = -1
		out := binding.Outbound{Request: req, Redirect: mode}
		if b, ok := req.Body.(*bytesBody); ok {
			out.Whole, req.Body = b.rest, nil
		}
		err := door.Fetch(ctx, &out, &r.Response)
		r.url, r.redirected = out.URL, out.Redirected
		return r, err
	}, outboundReason)
}

func kindOf(v engine.Value) int32 {
	n, _ := v.Int()
	return n
}

var errNoFetcher = fault.New(fault.Denied, "sandbox.fetch", "this node makes no outbound requests")

// outboundReason: what refused or failed is no business of the worker's (module-worker §5).
func outboundReason(in *engine.Instance, _ error) engine.Value {
	return in.NewTypeError("fetch failed")
}

// subrequest takes method, url, packed header, body kind, body and declared length (-1 for none) out of the guest.
func (g *guest) subrequest(args []engine.Value) (*event.Request, outgoing, bool) {
	method, ok1 := g.in.AppendLatin1(nil, args[0])
	url, ok2 := g.in.AppendString(nil, args[1])
	header, ok3 := g.in.AppendLatin1(nil, args[2])
	declared, ok4 := args[5].Int64()
	if !ok1 || !ok2 || !ok3 || !ok4 || len(header) > g.box.opt.MaxHeaderBytes*2 {
		return nil, outgoing{}, false
	}
	o, ok := g.outgoing(kindOf(args[3]), args[4], declared)
	req := &event.Request{Method: method, URL: url, Header: stripEdged(header), Body: o.body, Length: o.length}
	if o.body == nil {
		req.Length = 0
	}
	return req, o, ok
}

// stripEdged drops the fields that only the node may set (node-surface §7).
func stripEdged(packed []byte) []byte {
	if !strings.Contains(string(packed), "edged-") {
		return packed
	}
	var out []byte
	lines := strings.SplitAfter(string(packed), "\n")
	for i := 0; i+1 < len(lines); i += 2 {
		if !strings.HasPrefix(lines[i], "edged-") {
			out = append(append(out, lines[i]...), lines[i+1]...)
		}
	}
	return out
}

// callAbort(operation): the guest's signal has aborted an exchange.
func hostCallAbort(in *engine.Instance, args []engine.Value) engine.Value {
	n, _ := args[0].Int()
	if x := guestOf(in).exchanges[n]; x != nil {
		x.end()
		x.source.cancel()
	}
	return engine.Undefined
}

// sinkWrite(exchange, bytes) begins an operation that brings whether more is wanted.
func hostSinkWrite(in *engine.Instance, args []engine.Value) engine.Value {
	g := guestOf(in)
	n, _ := args[0].Int()
	x := g.exchanges[n]
	piece, ok := in.Bytes(args[1])
	if x == nil || x.sink == nil || !ok || len(piece) > maxPiece {
		return in.ThrowType("host.sinkWrite: wrong arguments")
	}
	id, ok := g.begun()
	if !ok {
		return in.ThrowRange("too many operations are open")
	}
	g.box.opt.Metrics.bodyOut.Add(float64(len(piece)))
	x.sink.write(piece, id)
	return engine.Int(id)
}

// sinkEnd(exchange, whole): the guest's stream has ended, or failed.
func hostSinkEnd(in *engine.Instance, args []engine.Value) engine.Value {
	n, _ := args[0].Int()
	x := guestOf(in).exchanges[n]
	if x == nil || x.sink == nil {
		return engine.Undefined
	}
	end := error(io.EOF)
	if !args[1].Bool() {
		end = event.ErrBodyAborted.New("sandbox.sink", "the body's stream failed")
	}
	x.sink.finish(end)
	return engine.Undefined
}
