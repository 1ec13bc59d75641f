package router

import (
	"bytes"
	"strconv"

	"edged/router/h1"
	"edged/router/table"
)

// What answers a request.
const (
	answerCode   = "code"
	answerAsset  = "asset"  // a file of the version
	answerHosted = "hosted" // the node itself, with an error
)

// Rule is what routes a host name. The table only knows where it leads to.
type Rule struct {
	Kind     string // a word, like endpoint or domain
	Resource string // UID of what claims the name
	// Generation is the one of the deployment that was settled last; 0 where the node cannot tell.
	Generation uint64
}

// Explanation says how this node would answer a request now, and what each choice depends on. Nothing is run for it.
type Explanation struct {
	Host       string // canonical: lower-case, without port and trailing dot; "" if it can be no host
	Known      bool   // the name is routed; nothing below says anything otherwise
	Rule       Rule
	Worker     string // UID
	Deployment string // UID of the active one, "" if there is none: the answer is not_serving then
	Choices    []Choice
	Admission  Admission
}

// Choice is one version that a request may be given.
type Choice struct {
	Version  string // UID
	From, To int    // the share of new requests, in basis points: those that draw a number from From up to but not To
	Answer   string // code, asset, or hosted
	Error    string // the Edged-Error of a hosted answer
	Asset    string // path in the bundle of the file that answers, or, behind code, that answers where the code says 404
	Ready    int    // sandboxes of this version that wait for a request; a request that finds none is warm or cold
	AtWork   int    // invocations of this version that go on
}

// Admission is the state of what bounds invocations.
type Admission struct {
	Verdict     string // at_once, waits or refused: what would happen to a request of this worker now
	Inflight    int
	MaxInflight int
	Waiting     int
	MaxWaiting  int
}

// Pooled is a Handler that knows its sandboxes. Safe for concurrent use.
type Pooled interface {
	Pool() (ready, atWork int)
}

// Explain says how a request would be answered. path is without query; it has no limits of its own but those that a request line
// would have.
func (r *Router) Explain(method, host, path []byte) Explanation {
	e := Explanation{Admission: r.gate.state()}
	name, ok := table.AppendCanonical(nil, host)
	if !ok {
		return e
	}
	e.Host = string(name)
	worker := r.table.Load().Match(host)
	if worker == nil {
		return e
	}
	e.Known, e.Worker, e.Deployment = true, worker.UID, worker.Deployment
	if r.opt.Rule != nil {
		e.Rule = r.opt.Rule(e.Host, worker.Deployment)
	}
	from := 0
	for _, v := range worker.Versions {
		c := choose(v.Version, method, path)
		c.From, c.To = from, from+v.Weight
		from = c.To
		e.Choices = append(e.Choices, c)
	}
	return e
}

// choose says what a version answers with.
func choose(v *table.Version, method, path []byte) Choice {
	c := Choice{Version: v.UID, Answer: answerCode}
	if string(method) == "GET" || string(method) == "HEAD" {
		a, key := v.Asset(path, nil)
		if a != nil {
			c.Asset = v.AssetName(key)
		}
		if a != nil && !v.RunWorkerFirst {
			c.Answer = answerAsset
			return c
		}
	}
	switch {
	case !v.HasFetch:
		c.Answer, c.Error = answerHosted, refNotFound.code
	case v.Handler == nil:
		c.Answer, c.Error = answerHosted, refNotServing.code
	default:
		c.Ready, c.AtWork = pool(v)
	}
	return c
}

func pool(v *table.Version) (ready, atWork int) {
	if p, ok := v.Handler.(Pooled); ok {
		return p.Pool()
	}
	return 0, 0
}

// state reads the gate. The numbers may be of moments that are a little apart.
func (g *gate) state() Admission {
	a := Admission{Verdict: "at_once", Inflight: int(g.busy.Load()), MaxInflight: int(g.max), Waiting: int(g.waiting.Load()), MaxWaiting: g.maxWait}
	switch {
	case a.Waiting >= a.MaxWaiting && a.Inflight >= a.MaxInflight:
		a.Verdict = "refused"
	case a.Waiting > 0 || a.Inflight >= a.MaxInflight:
		a.Verdict = "waits"
	}
	return a
}

// explained is what a connection remembers of how its request was decided.
type explained struct {
	worker   *table.Worker
	draw     uint32 // that chose the version
	reached  bool   // the version's code was called
	admitted bool
}

// appendExplanation appends the field Edged-Explain: why this response is what it is. It is made only for peers that see diagnostics
// and asked for it; no worker ever sees the asking.
func (c *conn) appendExplanation(dst []byte, answer string) []byte {
	dst = append(dst, "Edged-Explain: host="...)
	host, ok := table.AppendCanonical(nil, c.head.Host)
	if !ok {
		host = nil
	}
	dst = appendText(dst, host)
	w := c.why.worker
	if w == nil {
		return append(dst, ", answer=hosted\r\n"...)
	}
	var rule Rule
	if c.r.opt.Rule != nil {
		rule = c.r.opt.Rule(string(host), w.Deployment)
		dst = appendMember(append(append(dst, ", rule="...), rule.Kind...), "resource", rule.Resource)
	}
	dst = appendMember(dst, "worker", w.UID)
	dst = appendMember(dst, "deployment", w.Deployment)
	if rule.Generation > 0 {
		dst = appendCount(dst, "generation", int64(rule.Generation))
	}
	if c.version != nil {
		from, to := w.Bucket(c.why.draw)
		dst = appendCount(append(dst, ", chosen=weight"...), "draw", int64(c.why.draw))
		dst = appendCount(appendCount(dst, "from", int64(from)), "to", int64(to))
		dst = appendMember(dst, "version", c.version.UID)
	}
	dst = append(append(dst, ", answer="...), answer...)
	if answer == answerAsset {
		path, _, _ := bytes.Cut(c.head.Path, []byte{'?'})
		_, key := c.version.Asset(path, nil)
		dst = appendMember(dst, "asset", c.version.AssetName(key))
	}
	if c.why.reached && c.receipt.Wall != 0 {
		dst = append(append(dst, ", sandbox="...), c.receipt.Origin.String()...)
	}
	if c.version != nil && c.version.HasFetch {
		ready, atWork := pool(c.version)
		dst = appendCount(appendCount(dst, "ready", int64(ready)), "at-work", int64(atWork))
	}
	switch a := c.r.gate.state(); {
	case c.why.admitted:
		dst = appendCount(append(dst, ", admission=admitted"...), "admission-us", micros(c.receipt.Admission))
		dst = appendCount(appendCount(dst, "inflight", int64(a.Inflight)), "waiting", int64(a.Waiting))
	case answer == answerHosted && c.refused == refOverloaded.code:
		dst = appendCount(appendCount(append(dst, ", admission=refused"...), "inflight", int64(a.Inflight)), "waiting", int64(a.Waiting))
	}
	return append(dst, "\r\n"...)
}

// appendMember appends a member with a text, unless that is empty; appendCount one with a number.
func appendMember(dst []byte, key, text string) []byte {
	if text == "" {
		return dst
	}
	dst = append(append(append(dst, ", "...), key...), '=')
	return appendText(dst, text)
}

func appendCount(dst []byte, key string, n int64) []byte {
	dst = append(append(append(dst, ", "...), key...), '=')
	return strconv.AppendInt(dst, n, 10)
}

// diagnose appends what only peers see that diagnostics are for, just before the head ends. answer says what answers.
func (c *conn) diagnose(dst []byte, answer string) []byte {
	if !c.diagnosed {
		return dst
	}
	if c.version != nil {
		dst = h1.AppendField(dst, "Edged-Version", c.version.UID)
	}
	if answer == answerCode {
		dst = h1.AppendField(dst, "Edged-Sandbox", c.res.Origin.String())
	}
	if c.head.Explain {
		dst = c.appendExplanation(c.appendReceipt(dst), answer)
	}
	return dst
}
