package sandbox

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"time"

	"edged/internal/fault"
	"edged/internal/trace"
	"edged/sandbox/binding"
	"edged/sandbox/engine"
	"edged/sandbox/event"
	"edged/sandbox/facade"
)

// exchange is one request that the guest sent: through a service binding or to the outside.
type exchange struct {
	id     int32
	cancel context.CancelFunc
	sink   *sink   // of a request body that the guest writes; nil for others
	source *source // of a body that comes in, which the guest knows by the exchange's number; nil before and after
	held   int     // bytes of a body that went out whole
	open   bool    // its result is awaited, or its body comes in
	sunk   bool    // nothing more goes out
}

// delivery is what an exchange brings: settle makes it a value with the guest there, drop frees it if the guest is not.
type delivery struct {
	settle func(g *guest, x *exchange) engine.Value
	drop   func() // nil for nothing
}

// reply is what a request brings.
type reply struct {
	event.Response
	url        string // of the last request, "" if it is not known
	redirected bool
}

var errSubrequests = fault.New(fault.Limited, "sandbox.exchange", "too many subrequests")

// request starts an exchange that is a subrequest. do is called beside the guest; it must return promptly when its
// context is done, which also ends the response's stream.
func (g *guest) request(who int, span *trace.Span, o outgoing, do func(ctx context.Context) (*reply, error), reason func(in *engine.Instance, err error) engine.Value) engine.Value {
	if g.subrequests >= g.box.opt.MaxSubrequests {
		return o.refuse(g.in.Throw(reason(g.in, errSubrequests)))
	}
	g.subrequests++
	return g.exchange(who, span, o, func(ctx context.Context, room facade.Room) (delivery, error) {
		r, err := do(ctx)
		if err == nil {
			span.SetInt("http.response.status_code", int64(r.Status))
		}
		if err == nil {
			err = room.Take(ctx, len(r.Body))
		}
		return delivery{settle: func(g *guest, x *exchange) engine.Value { return g.received(x, r) }, drop: r.close}, err
	}, reason)
}

// exchange starts one, with a body that goes out and one that may come in. who is the place of what is called, see waited.
// span is its step in a trace, which ends when its result is there; of a body that still comes in only the beginning is in it.
func (g *guest) exchange(who int, span *trace.Span, o outgoing, do func(ctx context.Context, room facade.Room) (delivery, error), reason func(in *engine.Instance, err error) engine.Value) engine.Value {
	if len(g.exchanges) >= g.box.opt.MaxSubrequests {
		return o.refuse(g.in.ThrowRange("too many responses are open"))
	}
	if !g.Hold(o.whole()) {
		return o.refuse(g.in.Throw(reason(g.in, errHeld)))
	}
	id, ok := g.begun()
	if !ok {
		g.letGo(o.whole())
		return o.refuse(g.in.ThrowRange("too many operations are open"))
	}
	if o.sink != nil {
		o.sink.ended = g.ended
	}
	ctx, cancel := context.WithCancel(g.callContext())
	x := &exchange{id: id, cancel: cancel, sink: o.sink, held: o.whole(), open: true}
	if g.exchanges == nil {
		g.exchanges = map[int32]*exchange{}
	}
	g.exchanges[id] = x
	ended, room, began := g.ended, g.room(), time.Now()
	g.calls.atWork.Go(func() {
		d, err := g.guardedExchange(func() (delivery, error) { return do(trace.With(ctx, span), room) })
		span.End(err)
		ended <- completion{id: id, room: room, drop: d.drop, who: who, took: time.Since(began), settle: func(g *guest) (engine.Value, bool) {
			defer g.settled(x)
			if err != nil {
				if d.drop != nil {
					d.drop()
				}
				x.end()
				return reason(g.in, err), false
			}
			return d.settle(g, x), true
		}}
	})
	return engine.Int(id)
}

// settled and over are the two ends of an exchange: it has its result, and its body has come in whole or is not wanted.
func (g *guest) settled(x *exchange) {
	if x.source == nil {
		g.over(x)
	}
}

func (g *guest) over(x *exchange) {
	if !x.open {
		return
	}
	x.open = false
	g.letGo(x.held)
	if x.sink == nil || x.sunk {
		x.cancel()
		delete(g.exchanges, x.id)
	} // else its body still goes out: sinkEnd is the end
}

// guardedExchange keeps a bug in what is called from the node.
func (g *guest) guardedExchange(do func() (delivery, error)) (d delivery, err error) {
	defer func() {
		if p := recover(); p != nil {
			g.panicked(p)
			d, err = delivery{}, fault.New(fault.Internal, "sandbox.exchange", "")
		}
	}()
	return do()
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
		x.sunk = true
	}
}

// received makes a reply a value: [status, packed header, body kind, body, url, redirected]. Kinds as in outgoing; a
// source has the exchange's number.
func (g *guest) received(x *exchange, r *reply) engine.Value {
	kind, body := int32(outWhole), engine.Null
	switch {
	case r.Stream != nil:
		x.incoming(r.Stream)
		kind, body = outSource, engine.Int(x.id)
	case r.Null:
		kind = outNone
	default:
		body = g.in.NewBytes(r.Body)
	}
	return g.in.NewArray(engine.Int(int32(r.Status)), g.in.NewLatin1(r.Header), engine.Int(kind), body,
		g.in.NewString([]byte(r.url)), engine.Bool(r.redirected))
}

// incoming makes a stream the exchange's source.
func (x *exchange) incoming(stream io.ReadCloser) {
	x.source = &source{body: bodyOf(stream), of: x}
}

// bodyOf is the stream as a body; one that is a body already stays it.
func bodyOf(s io.ReadCloser) event.Body {
	if b, ok := s.(event.Body); ok {
		return b
	}
	return newStreamBody(s)
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
	span := facade.Begin(g.trace, facade.ServiceFetch.Span(), b)
	req.Trace, req.Header = span, span.AddTo(req.Header)
	return g.request(g.placeOf(b), span, o, func(ctx context.Context) (*reply, error) {
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
	return g.request(g.outbound(), g.beginFetch(req), o, func(ctx context.Context) (*reply, error) {
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
	if !bytes.Contains(packed, []byte("edged-")) {
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
	g := guestOf(in)
	n, _ := args[0].Int()
	if x := g.exchanges[n]; x != nil {
		x.end()
		g.cancelSource(x.source)
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
	g := guestOf(in)
	n, _ := args[0].Int()
	x := g.exchanges[n]
	if x == nil || x.sink == nil {
		return engine.Undefined
	}
	end := error(io.EOF)
	if !args[1].Bool() {
		end = event.ErrBodyAborted.New("sandbox.sink", "the body's stream failed")
	}
	x.sink.finish(end)
	if x.sunk = true; !x.open {
		delete(g.exchanges, n)
	}
	return engine.Undefined
}
