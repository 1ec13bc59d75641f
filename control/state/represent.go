package state

import (
	"bytes"
	"encoding/json"
	"time"
)

type conditionJSON struct {
	Type       string `json:"type"`
	Status     string `json:"status"`
	Reason     string `json:"reason"`
	HostReason string `json:"hostReason"`
}

type resourceJSON struct {
	UID                string          `json:"uid"`
	Form               string          `json:"form"`
	Space              string          `json:"space"`
	Name               string          `json:"name"`
	Generation         uint64          `json:"generation"`
	ObservedGeneration uint64          `json:"observedGeneration"`
	ObservedAt         *string         `json:"observedAt"`
	Phase              Phase           `json:"phase"`
	Spec               json.RawMessage `json:"spec"`
	Observed           json.RawMessage `json:"observed"`
	Output             json.RawMessage `json:"output"`
	LastOperation      string          `json:"lastOperation"`
	Conditions         []conditionJSON `json:"hostConditions,omitempty"`
}

// Time renders an instant of the state as the API shows it.
func Time(ms int64) string { return time.UnixMilli(ms).UTC().Format("2006-01-02T15:04:05.000Z") }

// Representation returns the Resource as it is served: the JSON document that revision counts the changes of. The
// caller owns it.
func Representation(r *Resource) []byte {
	v := resourceJSON{
		UID: r.UID, Form: r.Form, Space: r.Space, Name: r.Name, Generation: r.Generation,
		ObservedGeneration: r.ObservedGeneration, Phase: r.Phase, Spec: r.Spec, Observed: r.Observed, Output: r.Output,
		LastOperation: r.LastOperation,
	}
	if r.ObservedAt != 0 {
		at := Time(r.ObservedAt)
		v.ObservedAt = &at
	}
	if r.Cause != nil {
		status := "False"
		if r.Cause.Unknown {
			status = "Unknown"
		}
		v.Conditions = []conditionJSON{{"Ready", status, string(r.Cause.Reason), r.Cause.Text}}
	}
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		panic("state: a stored Resource does not render: " + err.Error()) // its parts were JSON when they were accepted
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n"))
}
