package form

import (
	"encoding/json"

	"edged/control/rules"
)

// Render gives the members of a Resource that its Form computes: observed, output, and the cause for which its ready
// signal is not true. o.Index, o.Address and the facts decide; nothing else does.
func (d *Driver) Render(o *Observation) (observed, output json.RawMessage, cause *rules.Cause) {
	val, cause := d.Observe(o)
	observed, output = marshal(val), json.RawMessage("{}")
	if d.Output != nil {
		output = marshal(d.Output(o.Spec, o.Address))
	}
	return observed, output, cause
}

type nothing struct{}

func observeWorker(o *Observation) (any, *rules.Cause) {
	ready, cause := rules.WorkerReady(o.Aggregate)
	var active *string
	if d := o.Aggregate.Active(); d != nil {
		active = &d.UID
	}
	return struct {
		Active *string `json:"activeDeploymentUid"`
		Ready  bool    `json:"ready"`
	}{active, ready}, cause
}

func observeArtifact(o *Observation) (any, *rules.Cause) {
	if o.Index == nil {
		return nothing{}, nil
	}
	type file struct {
		Path      string `json:"path"`
		SHA256    string `json:"sha256"`
		MediaType string `json:"mediaType"`
		Size      int64  `json:"byteSize"`
	}
	out := struct {
		SHA256     string `json:"manifestSha256"`
		Entrypoint string `json:"entrypoint,omitempty"`
		Count      int    `json:"fileCount"`
		Total      int64  `json:"totalBytes"`
		Files      []file `json:"files"`
	}{SHA256: o.Index.SHA256, Entrypoint: o.Index.Entrypoint, Count: len(o.Index.Files), Files: []file{}}
	for _, f := range o.Index.Files {
		out.Total += f.Size
		out.Files = append(out.Files, file(f))
	}
	return out, nil
}

func observeVersion(o *Observation) (any, *rules.Cause) {
	out := struct {
		Ready    bool  `json:"ready"`
		Resolved bool  `json:"resolvedBindings"`
		Bundle   *bool `json:"bundleVerified,omitempty"`
	}{Ready: o.Self.Ready, Resolved: o.Resolved}
	if o.Spec.Bundle != "" {
		out.Bundle = &o.Bundle
	}
	return out, o.Self.Unready
}

func observeDeployment(o *Observation) (any, *rules.Cause) {
	type selected struct {
		UID    string `json:"resourceUid"`
		Weight int    `json:"weight"`
	}
	ready, cause := rules.DeploymentReady(o.Aggregate, o.Self)
	if lost := rules.Pins(o.Pins); lost != nil {
		ready, cause = false, lost
	}
	out := struct {
		Ready    bool       `json:"ready"`
		Active   bool       `json:"active"`
		Selected []selected `json:"selectedVersions"`
	}{ready, len(o.Self.Active) > 0 && !o.Self.Deleting, []selected{}}
	for _, w := range o.Self.Active {
		out.Selected = append(out.Selected, selected{w.Version, w.Weight})
	}
	return out, cause
}

// The node issues certificates itself for every name that it routes, so TLS is ready as soon as the claim is recorded.
func observeEndpoint(o *Observation) (any, *rules.Cause) {
	ready, cause := attached(o, rules.NeedHTTP)
	return struct {
		TLS   bool `json:"tlsReady"`
		Route bool `json:"activeDeploymentRouteReady"`
	}{true, ready}, cause
}

func observeDomain(o *Observation) (any, *rules.Cause) {
	ready, cause := attached(o, rules.NeedHTTP)
	if !o.RouteOwner {
		ready = false
		cause = &rules.Cause{Reason: rules.Provisioning, Text: "an older claim of this name has the route"}
	}
	return struct {
		DNS   bool `json:"dnsControlVerified"`
		TLS   bool `json:"tlsReady"`
		Route bool `json:"activeDeploymentRouteReady"`
	}{true, true, ready}, cause
}
