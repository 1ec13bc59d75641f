package router

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"runtime/debug"
	"time"

	"edged/internal/fault"
	"edged/internal/trace"
	"edged/router/table"
	"edged/sandbox/event"
)

func isTimeout(err error) bool { return errors.Is(err, os.ErrDeadlineExceeded) }

// refuseEarly answers a head that was not understood. It always ends the connection: where the next head would start is
// not known.
func (c *conn) refuseEarly(r *refusal) (again bool) {
	c.enter(busy)
	c.now = time.Now()
	start := c.now
	c.version, c.keep = nil, false
	c.head.Host, c.head.Path, c.head.Explain = nil, nil, false // perhaps of the request before
	c.forget()
	c.respondHosted(r)
	c.linger()
	c.now = time.Now()
	c.over(start, 0)
	return false
}

// exchange answers the request whose head was read. again says that the connection can be used for another.
func (c *conn) exchange() (again bool) {
	c.begin()
	c.startTrace()
	start := c.now
	if r := c.route(); r != nil {
		c.respondHosted(r)
	}
	b := c.body
	again = c.finish()
	c.now = c.clock()
	c.endTrace(c.now.Sub(start))
	var read int64
	if b != nil {
		read = b.taken()
	}
	c.over(start, read)
	return again
}

// begin makes the connection ready for a response and the request ready for a handler.
func (c *conn) begin() {
	c.version = nil
	c.keep, c.paced = c.head.KeepAlive, false
	c.responding.Store(false)
	c.req = event.Request{Method: c.method, URL: c.url, Header: c.fields, Arrived: c.now}
	c.res.Reset()
	c.forget()
	if c.wantsReceipt() {
		c.receipt = event.Receipt{Waits: c.receipt.Waits[:0]}
		c.res.Receipt = &c.receipt
	}
	if c.head.Length != 0 {
		newBody(c)
		// A Request of these methods has no body; what the client sends is thrown away afterwards.
		if !c.readsOnly() {
			c.req.Body, c.req.Length = c.body, c.head.Length
		}
	}
	if c.fin.Load() {
		c.startGrace()
	}
}

// forget drops what is known of the exchange before.
func (c *conn) forget() {
	c.why = explained{}
	c.status, c.refused, c.answer, c.sent, c.short = 0, "", "", 0, false
}

// finish ends the exchange: nobody reads the body any more, and what is left of it is out of the way.
func (c *conn) finish() (again bool) {
	over := c.body == nil || c.body.finish(c.keep)
	c.req.Body = nil
	if c.keep && over && !c.broken {
		return true
	}
	if !over || c.pos < c.filled {
		c.linger()
	}
	return false
}

func (c *conn) isHead() bool { return string(c.method) == "HEAD" }

// readsOnly is true of the two methods that the asset stage answers (static-assets §2).
func (c *conn) readsOnly() bool { return string(c.method) == "GET" || c.isHead() }

// route finds who answers and lets them; a refusal is the caller's to send.
func (c *conn) route() *refusal {
	h := &c.head
	switch {
	case h.Length > c.r.opt.MaxRequestBodyBytes:
		return refBodyTooLarge
	case len(c.sni) > 0 && !table.SameHost(c.sni, h.Host):
		return refMisdirected
	}
	// A switch may retire the chosen version before the invocation was accepted: then the new picture decides. Where the
	// picture is the same there is no second choice (worker-deployment §3).
	for t := c.r.table.Load(); ; {
		r := c.routeIn(t)
		newer := c.r.table.Load()
		if r != refNotStarted || newer == t {
			return r
		}
		t = newer
	}
}

// routeIn is route in one picture. refNotStarted says that the chosen version accepts nothing; nothing has happened then.
func (c *conn) routeIn(t *table.Table) *refusal {
	worker := t.Match(c.head.Host)
	if worker == nil {
		return refUnknownHost
	}
	c.why = explained{worker: worker, draw: rand.Uint32N(table.FullWeight)}
	v := worker.Pick(c.why.draw)
	if v == nil {
		return refNotServing
	}
	c.version = v
	if c.chosen.Load() != v { // a write would cost more, and the version is seldom another
		c.chosen.Store(v)
	}
	if !v.RunWorkerFirst {
		if a := c.asset(); a != nil {
			return c.respondAsset(a)
		}
	}
	switch {
	case !v.HasFetch:
		return refNotFound
	case v.Handler == nil:
		return refNotServing
	}
	return c.invoke(worker)
}

// asset runs the asset stage of the chosen version.
func (c *conn) asset() (a *table.Asset) {
	if c.version.Assets == nil || !c.readsOnly() {
		return nil
	}
	path, _, _ := bytes.Cut(c.head.Path, []byte{'?'})
	a, c.key = c.version.Asset(path, c.key)
	return a
}

// invoke runs the worker under an admission and sends what it answers.
func (c *conn) invoke(worker *table.Worker) *refusal {
	c.party, c.detached = worker.Party, false
	wait := c.req.Trace.Child(trace.Internal, "router.admission")
	err := c.r.gate.enter(c.ctx, c.party)
	wait.End(err)
	if err != nil {
		if c.ctx.Err() != nil {
			c.breaks()
			return nil
		}
		return refOverloaded
	}
	c.why.admitted = true
	defer c.leaveGate()
	if err := c.call(); err != nil {
		c.closeStream()
		if c.ctx.Err() != nil {
			c.breaks() // nobody is there to read an error
			return nil
		}
		r := refuseInvocation(err)
		c.why.reached = r != refNotStarted
		return r
	}
	if c.res.Status == 404 && c.version.RunWorkerFirst {
		if a := c.asset(); a != nil {
			c.closeStream()
			return c.respondAsset(a)
		}
	}
	return c.respond()
}

func (c *conn) leaveGate() {
	if c.detached {
		c.r.gate.endStream(c.party)
	} else {
		c.r.gate.leave(c.party)
	}
}

// call is the boundary at which a bug in the code behind us costs one request and not the node.
func (c *conn) call() (err error) {
	defer func() {
		if p := recover(); p != nil {
			c.caught(p)
			err = event.ErrWorker
		}
	}()
	c.why.reached = true
	return c.version.Handler.Serve(c.ctx, &c.req, &c.res)
}

func (c *conn) caught(p any) {
	c.r.opt.Metrics.panics.Inc()
	c.r.opt.Log.Error("handler panicked", "err", fmt.Sprint(p), "version", c.version.UID, c.req.Trace.Attr(), "stack", string(debug.Stack()), "do", fault.ReportBug)
}

func (c *conn) closeStream() {
	if c.res.Stream != nil {
		_ = c.res.Stream.Close() // cancelling is all we want of it
		c.res.Stream = nil
	}
}

// settle decides whether the connection can be kept, and looks at the clock, just before the head is made.
func (c *conn) settle() {
	if c.body != nil && c.body.expects.Load() && c.res.Stream != nil && c.req.Body != nil {
		// The worker answers before it reads, and its answer may be made of the body: once the final head is out, 100
		// could not follow, and both sides would wait.
		c.body.sendContinue()
	}
	c.keep = c.keep && !c.goesAway() && !c.fin.Load() && (c.body == nil || c.body.settles())
	if c.body == nil {
		c.responding.Store(true)
	} else { // no 100 after the head, nor half of one before it
		c.wmu.Lock()
		c.responding.Store(true)
		c.wmu.Unlock()
	}
	c.made = c.clock()
}
