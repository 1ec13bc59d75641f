package node

import (
	"net/url"
	"strings"
	"time"

	"edged/control/form"
	"edged/control/operator"
	"edged/internal/fault"
	"edged/node/accesslog"
	"edged/node/tail"
	"edged/router"
)

// openWatching makes what shows the traffic of this node: tails, and the access log if one is wanted.
func (n *Node) openWatching() (err error) {
	n.tails = tail.New(router.HostedStatus, tail.NewMetrics(n.registry))
	m := accesslog.NewMetrics(n.registry)
	if n.opt.AccessLog == "" {
		return nil
	}
	n.access, err = accesslog.Open(accesslog.Options{Path: n.opt.AccessLog, Out: n.opt.AccessLogOut, Sample: n.opt.AccessLogSample,
		MaxBytes: n.opt.AccessLogMaxBytes, Keep: n.opt.AccessLogKeep, Log: n.log, Metrics: m})
	return err
}

// toAccessLog is router.Options.Access; nil without an access log, so that nothing is made for it.
func (n *Node) toAccessLog() func(*router.Access) {
	if n.access == nil {
		return nil
	}
	return n.access.Write
}

// workersRoom is what operators see of the workers on this node.
func (n *Node) workersRoom() operator.Room {
	return operator.Room{Name: "workers", Routes: []operator.Route{
		// Changes nothing, but leaves a record: it shows what clients of a worker ask for.
		{Name: "tail", Method: "GET", Path: "{uid}/tail", Query: tail.Parameters, Changes: true, Serve: ofForm(form.ModuleWorkerURL, n.tailWorker)},
		{Name: "explain", Method: "GET", Path: "explain", Query: []string{"url", "method"}, Serve: n.explain},
	}}
}

// tailWorker streams what a worker does on this node until the operator leaves or the node stops.
func (n *Node) tailWorker(c *operator.Call) error {
	f, err := tail.ParseFilter(c.Query)
	if err != nil {
		return err
	}
	w, err := n.tails.Open(c.Target.UID, f)
	if err != nil {
		return err
	}
	defer w.Close()
	return w.Serve(c.Context(), c.Stream("application/x-ndjson"), c.Flush)
}

// explanation is a router.Explanation as operators read it.
type explanation struct {
	URL        string          `json:"url"`
	Method     string          `json:"method"`
	Node       string          `json:"node"` // ID of the node that speaks of itself
	At         string          `json:"at"`
	Host       string          `json:"host"`
	Known      bool            `json:"known"` // otherwise the answer is unknown_host
	Rule       *ruleJSON       `json:"rule,omitempty"`
	Worker     *workerJSON     `json:"worker,omitempty"`
	Deployment *deploymentJSON `json:"deployment,omitempty"` // of the worker; absent: the answer is not_serving
	Choices    []choiceJSON    `json:"choices"`
	Admission  admissionJSON   `json:"admission"`
}

type admissionJSON struct {
	Verdict     string `json:"verdict"`            // at_once, waits or refused: of a request that came now
	Inflight    int    `json:"inflight,omitempty"` // this and the others: only for operators of the whole node
	MaxInflight int    `json:"maxInflight,omitempty"`
	Waiting     int    `json:"waiting,omitempty"`
	MaxWaiting  int    `json:"maxWaiting,omitempty"`
}

type ruleJSON struct {
	Kind     string `json:"kind"` // endpoint or domain
	Resource string `json:"resource"`
}

type workerJSON struct {
	UID   string `json:"uid"`
	Space string `json:"space"`
	Name  string `json:"name"`
}

type deploymentJSON struct {
	UID        string `json:"uid"`
	Generation uint64 `json:"generation"`
}

type choiceJSON struct {
	Version string `json:"version"`
	From    int    `json:"from"`
	To      int    `json:"to"`
	Answer  string `json:"answer"` // code, asset or hosted
	Error   string `json:"error,omitempty"`
	Asset   string `json:"asset,omitempty"` // that answers, or with code: that answers where the code says 404
	Ready   int    `json:"ready"`
	AtWork  int    `json:"atWork"`
}

// explain says how this node would answer a request, and runs nothing for it. A host of somebody else's looks as if nobody had it.
func (n *Node) explain(c *operator.Call) error {
	const op = "node.explain"
	u, err := url.Parse(c.Query.Get("url"))
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" || u.User != nil {
		return fault.New(fault.Invalid, op, "url must be like https://host/path")
	}
	method := strings.ToUpper(c.Query.Get("method"))
	if method == "" {
		method = "GET"
	}
	path := u.EscapedPath()
	if path == "" {
		path = "/"
	}
	e := n.router.Explain([]byte(method), []byte(u.Host), []byte(path))
	shown := *u
	shown.RawQuery, shown.Fragment, shown.RawFragment = "", "", ""
	out := explanation{URL: shown.String(), Method: method, Node: n.id, At: tail.Stamp(time.Now()), Host: e.Host, Choices: []choiceJSON{}}
	if c.Caller.Whole { // how busy a node is says something about its other tenants
		out.Admission = admissionJSON(e.Admission)
	} else {
		out.Admission = admissionJSON{Verdict: e.Admission.Verdict}
	}
	owner, err := c.Find(e.Worker)
	if !e.Known || err != nil {
		return c.JSON(out)
	}
	out.Known, out.Worker = true, &workerJSON{owner.UID, owner.Space, owner.Name}
	if e.Rule.Kind != "" {
		out.Rule = &ruleJSON{e.Rule.Kind, e.Rule.Resource}
	}
	if e.Deployment != "" {
		out.Deployment = &deploymentJSON{e.Deployment, e.Rule.Generation}
	}
	for _, one := range e.Choices {
		out.Choices = append(out.Choices, choiceJSON(one))
	}
	return c.JSON(out)
}

// rule says what routes a host name, and the generation of a deployment where this node has the control room.
func (n *Node) rule(host, deployment string) router.Rule {
	r := n.versions.rule(host)
	if n.control != nil && deployment != "" {
		if d, ok := n.control.Find(deployment); ok {
			r.Generation = d.Generation
		}
	}
	return r
}

// rule says what routes a host name in the plan that is in use.
func (v *versions) rule(host string) router.Rule {
	v.planMu.RLock()
	defer v.planMu.RUnlock()
	h := v.serving.plan.Hosts[host]
	switch {
	case h == nil:
		return router.Rule{}
	case h.Endpoint:
		return router.Rule{Kind: "endpoint", Resource: h.Resource}
	}
	return router.Rule{Kind: "domain", Resource: h.Resource}
}
