package router

import (
	"bytes"
	"net/netip"
	"time"

	"edged/sandbox/event"
)

// Access is one exchange with a client that is over. Its slices and the receipt are lent for the call they are passed in.
type Access struct {
	Start   time.Time // when the head was complete
	Took    time.Duration
	Peer    netip.Addr // who is connected: the client, or a proxy; behind one that speaks the PROXY protocol the client
	Secure  bool       // TLS
	Method  []byte     // empty for a head that was not understood, as are Host and Path
	Host    []byte     // as sent
	Path    []byte     // as sent, without query
	Minor   int        // of the protocol's version, HTTP/1.Minor
	Status  int        // 0 if no response was begun
	Error   string     // the Edged-Error of a response that the node made, "" for others
	Answer  string     // code, asset or hosted; "" without a response
	In      int64      // bytes of the request's body that were read, those included that were thrown away
	Out     int64      // bytes of the response, its head included
	Cut     bool       // the response ended short of its body, or not all of it could be sent
	Worker  string     // UID, "" if none was found
	Version string     // UID, "" if none was chosen
	Receipt *event.Receipt
}

// wantsReceipt reports whether anybody reads what an invocation on this connection costs.
func (c *conn) wantsReceipt() bool { return c.diagnosed && c.head.Explain || c.r.opt.Access != nil }

// over tells those who watch of an exchange that has ended; read is how much of the request's body was read.
func (c *conn) over(start time.Time, read int64) {
	if c.r.opt.Access != nil {
		c.logAccess(start, read)
	}
	if w := c.why.worker; w != nil && !c.why.reached && c.r.opt.Watch != nil {
		c.tell(start, w.UID)
	}
}

func (c *conn) logAccess(start time.Time, read int64) {
	a := Access{Start: start, Took: c.now.Sub(start), Peer: c.peer, Secure: c.secure, Status: c.status, Error: c.refused, Answer: c.answer,
		In: read, Out: c.sent, Cut: c.broken || c.short}
	if len(c.method) > 0 {
		a.Method, a.Host, a.Minor = c.method, c.head.Host, c.head.Minor
		a.Path, _, _ = bytes.Cut(c.head.Path, []byte{'?'})
	}
	if c.why.worker != nil {
		a.Worker = c.why.worker.UID
	}
	if c.version != nil {
		a.Version = c.version.UID
	}
	if c.why.reached && c.receipt.Wall != 0 {
		a.Receipt = &c.receipt
	}
	c.r.opt.Access(&a)
}

// tell tells who watches a worker of a request that never came to its code.
func (c *conn) tell(start time.Time, worker string) {
	watcher := c.r.opt.Watch(worker)
	if watcher == nil {
		return
	}
	i := event.Invocation{Start: start, Kind: event.KindFetch, Worker: worker, Method: string(c.method), URL: event.ShownURL(c.url),
		Status: c.status, Outcome: "client_left", Receipt: event.Receipt{Wall: c.now.Sub(start), BodyOut: c.sent, Final: true}}
	if c.version != nil {
		i.Version = c.version.UID
	}
	switch c.answer {
	case answerAsset:
		i.Kind, i.Outcome = event.KindAsset, "ok"
	case answerHosted:
		i.Outcome = c.refused
	}
	watcher(&i)
}

// HostedStatus is the status of the node's own answer for an Edged-Error, 0 for a word that is none.
func HostedStatus(code string) int {
	for _, r := range refusals {
		if r.code == code {
			return r.status
		}
	}
	return 0
}
