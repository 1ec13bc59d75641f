package deploy

import (
	"encoding/json"
	"slices"

	"edged/cmd/edged/manifest"
	"edged/control/client"
	"edged/control/form"
)

type attachmentSpec struct {
	Worker   ref    `json:"worker"`
	Hostname string `json:"hostname,omitempty"`
}

// attachment reads what an endpoint or a domain says of itself; the zero value if it does not.
func attachment(r *client.Resource) (s attachmentSpec) {
	_ = json.Unmarshal(r.Spec, &s)
	return s
}

type cronSpec struct {
	Worker ref    `json:"worker"`
	Cron   string `json:"cron"`
}

type consumerSpec struct {
	Queue           ref  `json:"queue"`
	Worker          ref  `json:"worker"`
	MaxBatchSize    int  `json:"maxBatchSize"`
	MaxBatchTimeout int  `json:"maxBatchTimeoutSeconds"`
	MaxConcurrency  int  `json:"maxConcurrency"`
	MaxRetries      int  `json:"maxRetries"`
	RetryDelay      int  `json:"retryDelaySeconds"`
	DeadLetter      *ref `json:"deadLetterQueue,omitempty"`
}

// attachSteps makes addresses, schedules and consumers. The node judges them by the distribution that is active then.
func (d *deployer) attachSteps() []*step {
	var steps []*step
	worker, line := d.names.worker, d.manifest.NameLine
	add := func(formURL, name string, line int, uses []string, w func(uid func(string) string) *want) *step {
		s := &step{form: formURL, name: name, line: line, uses: append([]string{worker}, uses...), after: []string{d.names.deployment}, want: w}
		steps = append(steps, s)
		return s
	}
	if d.manifest.Endpoint {
		add(form.WorkerEndpointURL, d.names.endpoint, line, nil, func(uid func(string) string) *want {
			return &want{spec: attachmentSpec{Worker: ref{uid(worker)}}}
		}).made = d.address
	}
	for _, host := range d.manifest.Domains {
		add(form.CustomDomainURL, d.attached(d.domains[host], "domain", host), line, nil, func(uid func(string) string) *want {
			return &want{spec: attachmentSpec{ref{uid(worker)}, host}}
		}).made = d.address
	}
	for _, c := range d.manifest.Crons {
		add(form.CronTriggerURL, d.attached(d.crons[c.Canonical], "cron", c.Canonical), c.Line, nil, func(uid func(string) string) *want {
			return &want{spec: cronSpec{ref{uid(worker)}, c.Expr}, mutable: true, note: c.Expr}
		})
	}
	for i := range d.manifest.Consumers {
		c := &d.manifest.Consumers[i]
		uses := []string{c.Queue}
		if c.DeadLetterQueue != "" {
			uses = append(uses, c.DeadLetterQueue)
		}
		add(form.QueueConsumerURL, d.attached(d.consumers[c.Queue], "consumer", c.Queue), c.Line, uses, func(uid func(string) string) *want {
			return &want{spec: consumerOf(c, uid(worker), uid), mutable: true, note: "of " + c.Queue}
		})
	}
	return steps
}

func consumerOf(c *manifest.Consumer, worker string, uid func(string) string) consumerSpec {
	spec := consumerSpec{ref{uid(c.Queue)}, ref{worker}, c.MaxBatchSize, c.MaxBatchTimeoutSeconds, c.MaxConcurrency, c.MaxRetries, c.RetryDelaySeconds, nil}
	if c.DeadLetterQueue != "" {
		spec.DeadLetter = &ref{uid(c.DeadLetterQueue)}
	}
	return spec
}

// attached is the name of an attachment: of the one that is there, whatever it is called, else the client's own.
func (d *deployer) attached(have *client.Resource, role, what string) string {
	if have != nil {
		return have.Name
	}
	return textName(d.names.worker, role, what)
}

func (d *deployer) address(r *client.Resource) error {
	var a Address
	if json.Unmarshal(r.Output, &a) == nil && a.URL != "" {
		d.report.Addresses = append(d.report.Addresses, a)
	}
	return nil
}

// leaving are the attachments that the manifest does not ask for any more. Schedules and consumers that this client made go,
// before the version that handles them does. Addresses stay: taking a name off the net is a decision of its own; so does what
// somebody else attached. Both are told.
func (d *deployer) leaving() (gone []*step) {
	for _, r := range d.strays {
		if d.own(r) {
			gone = append(gone, &step{form: r.Form, name: r.Name, line: d.manifest.NameLine, remove: r})
		} else {
			d.report.Kept = append(d.report.Kept, keptOf(r))
		}
	}
	if r := d.have[d.names.endpoint]; r != nil && !d.manifest.Endpoint && attachment(r).Worker.UID == d.uid(d.names.worker) {
		d.report.Kept = append(d.report.Kept, keptOf(r))
	}
	for host, r := range d.domains {
		if !slices.Contains(d.manifest.Domains, host) {
			d.report.Kept = append(d.report.Kept, keptOf(r))
		}
	}
	sortByName(d.report.Kept, func(k Kept) string { return k.Name })
	sortByName(gone, func(s *step) string { return s.name })
	return gone
}

// own reports whether a schedule or a consumer has the name that this client gives it.
func (d *deployer) own(r *client.Resource) bool {
	return r.Name == textName(d.names.worker, d.roleOf(r), d.whatOf(r))
}

func (d *deployer) roleOf(r *client.Resource) string {
	if r.Form == form.CronTriggerURL {
		return "cron"
	}
	return "consumer"
}

// blocked refuses a manifest whose version would not serve what stays attached (WA-4.1), before anything is changed.
func (d *deployer) blocked() {
	need := map[string]string{form.CronTriggerURL: "scheduled", form.QueueConsumerURL: "queue"}
	for _, k := range d.report.Kept {
		handler, ok := need[k.form]
		serves := slices.Contains(d.manifest.Handlers, handler)
		if !ok {
			handler, serves = "fetch", slices.Contains(d.manifest.Handlers, "fetch") || d.manifest.Assets != nil
		}
		if !serves {
			d.refuse(d.manifest.NameLine, "%s (%s %s) stays attached and needs %s, which this manifest does not declare: delete it first, edged resources delete %s --space %s",
				k.what(), k.Kind, k.Name, handler, k.Name, d.opt.Space)
		}
	}
}
