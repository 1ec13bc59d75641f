package trace

import (
	"encoding/hex"
	"encoding/json"
	"strconv"
)

// The message of OTLP, as its JSON has it: IDs in hexadecimal, 64-bit numbers as strings, enumerations as numbers, the
// names of fields in lowerCamelCase.
type (
	message struct {
		ResourceSpans []resourceSpans `json:"resourceSpans"`
	}
	resourceSpans struct {
		Resource struct {
			Attributes []keyValue `json:"attributes"`
		} `json:"resource"`
		ScopeSpans []scopeSpans `json:"scopeSpans"`
	}
	scopeSpans struct {
		Scope struct {
			Name    string `json:"name"`
			Version string `json:"version,omitempty"`
		} `json:"scope"`
		Spans []span `json:"spans"`
	}
	span struct {
		TraceID    string     `json:"traceId"`
		SpanID     string     `json:"spanId"`
		TraceState string     `json:"traceState,omitempty"`
		Parent     string     `json:"parentSpanId,omitempty"`
		Flags      uint32     `json:"flags"`
		Name       string     `json:"name"`
		Kind       Kind       `json:"kind"`
		Start      string     `json:"startTimeUnixNano"`
		End        string     `json:"endTimeUnixNano"`
		Attributes []keyValue `json:"attributes,omitempty"`
		Dropped    int        `json:"droppedAttributesCount,omitempty"`
		Links      []link     `json:"links,omitempty"`
		Status     *status    `json:"status,omitempty"`
	}
	link struct {
		TraceID string `json:"traceId"`
		SpanID  string `json:"spanId"`
		Flags   uint32 `json:"flags"`
	}
	status struct {
		Code int `json:"code"`
	}
	keyValue struct {
		Key   string   `json:"key"`
		Value anyValue `json:"value"`
	}
	anyValue struct {
		String *string  `json:"stringValue,omitempty"`
		Int    *string  `json:"intValue,omitempty"`
		Double *float64 `json:"doubleValue,omitempty"`
	}
)

const statusError = 2

func textValue(key, value string) keyValue {
	return keyValue{Key: key, Value: anyValue{String: &value}}
}

// encode makes the message of ended spans.
func (t *Tracer) encode(spans []*Span) []byte {
	var rs resourceSpans
	rs.Resource.Attributes = []keyValue{textValue("service.name", t.opt.Service)}
	if t.opt.Version != "" {
		rs.Resource.Attributes = append(rs.Resource.Attributes, textValue("service.version", t.opt.Version))
	}
	if t.opt.Instance != "" {
		rs.Resource.Attributes = append(rs.Resource.Attributes, textValue("service.instance.id", t.opt.Instance))
	}
	ss := scopeSpans{Spans: make([]span, len(spans))}
	ss.Scope.Name, ss.Scope.Version = "edged", t.opt.Version
	for i, s := range spans {
		ss.Spans[i] = s.encode()
	}
	rs.ScopeSpans = []scopeSpans{ss}
	body, err := json.Marshal(message{ResourceSpans: []resourceSpans{rs}})
	if err != nil {
		panic("trace: a span has no JSON: " + err.Error()) // texts are UTF-8 and numbers finite: the types have always a form
	}
	return body
}

func (s *Span) encode() span {
	r := s.rec
	out := span{
		TraceID:    hex.EncodeToString(s.ctx.TraceID[:]),
		SpanID:     hex.EncodeToString(s.ctx.SpanID[:]),
		TraceState: s.ctx.State,
		Flags:      uint32(s.ctx.Flags),
		Name:       r.name,
		Kind:       r.kind,
		Start:      strconv.FormatInt(r.start.UnixNano(), 10),
		End:        strconv.FormatInt(r.start.Add(max(r.end.Sub(r.start), 0)).UnixNano(), 10), // by the monotonic clock
		Dropped:    r.lost,
	}
	if r.parent != ([8]byte{}) {
		out.Parent = hex.EncodeToString(r.parent[:])
	}
	for i := range r.attributes {
		out.Attributes = append(out.Attributes, r.attributes[i].encode())
	}
	if l := r.link; l != nil {
		out.Links = []link{{hex.EncodeToString(l.TraceID[:]), hex.EncodeToString(l.SpanID[:]), uint32(l.Flags)}}
	}
	if r.failed {
		out.Status = &status{statusError}
	}
	return out
}

func (a *attribute) encode() keyValue {
	switch a.kind {
	case intAttribute:
		n := strconv.FormatInt(a.num, 10)
		return keyValue{Key: a.key, Value: anyValue{Int: &n}}
	case realAttribute:
		return keyValue{Key: a.key, Value: anyValue{Double: &a.real}}
	}
	return textValue(a.key, a.text)
}
