package tail

import (
	"bytes"
	"encoding/json"
	"time"

	"edged/sandbox/event"
)

// Line is one line of a tail. Type says which of the other members are there.
type Line struct {
	At   string `json:"at"`   // RFC 3339, UTC, milliseconds
	Type string `json:"type"` // watching (the first), invocation, console, dropped, alive, or stopping (the last)

	Kind    string `json:"kind,omitempty"` // fetch, service, scheduled, queue or asset
	Version string `json:"version,omitempty"`
	Method  string `json:"method,omitempty"`
	URL     string `json:"url,omitempty"`   // without user, query and fragment
	Event   string `json:"event,omitempty"` // the cron expression, or the queue's name
	Batch   int    `json:"batch,omitempty"` // messages
	Status  int    `json:"status,omitempty"`
	Outcome string `json:"outcome,omitempty"`
	Receipt *Costs `json:"receipt,omitempty"`

	Level string `json:"level,omitempty"`
	Text  string `json:"text,omitempty"`

	Dropped uint64 `json:"dropped,omitempty"` // lines that this watcher did not get, or that the worker logged beyond its rate
}

// Costs is an event.Receipt as JSON, in tails and in access logs.
type Costs struct {
	Sandbox     string  `json:"sandbox"` // hot, warm or cold
	AdmissionMs float64 `json:"admissionMs"`
	QueueMs     float64 `json:"queueMs"`
	WallMs      float64 `json:"wallMs"`
	CPUMs       float64 `json:"cpuMs"`
	Memory      int64   `json:"memoryBytes"`
	In          int64   `json:"bodyInBytes"`
	Out         int64   `json:"bodyOutBytes"`
	Subrequests int     `json:"subrequests"`
	Waits       []Wait  `json:"waits,omitempty"`
	Left        Left    `json:"left"`
	Final       bool    `json:"final"` // otherwise as it stood at the response head
}

// Wait is an event.Wait as JSON.
type Wait struct {
	Binding string  `json:"binding"`
	Calls   int     `json:"calls"`
	Ms      float64 `json:"ms"`
}

// Left is an event.Headroom as JSON.
type Left struct {
	CPUMs       float64 `json:"cpuMs"`
	WallMs      float64 `json:"wallMs"`
	Memory      int64   `json:"memoryBytes"`
	Subrequests int     `json:"subrequests"`
}

// CostsOf makes a receipt JSON.
func CostsOf(r *event.Receipt) *Costs {
	c := &Costs{Sandbox: r.Origin.String(), AdmissionMs: millis(r.Admission), QueueMs: millis(r.Queue), WallMs: millis(r.Wall), CPUMs: millis(r.CPU),
		Memory: r.Memory, In: r.BodyIn, Out: r.BodyOut, Subrequests: r.Subrequests, Final: r.Final,
		Left: Left{millis(r.Left.CPU), millis(r.Left.Wall), r.Left.Memory, r.Left.Subrequests}}
	for _, w := range r.Waits {
		c.Waits = append(c.Waits, Wait{w.Name, w.Calls, millis(w.Time)})
	}
	return c
}

// millis has microseconds: what is below says nothing.
func millis(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

// Stamp renders an instant as lines have it.
func Stamp(t time.Time) string { return t.UTC().Format("2006-01-02T15:04:05.000Z") }

// AppendJSON appends a document and a line feed. doc is one that always renders.
func AppendJSON(buf []byte, doc any) []byte {
	b := bytes.NewBuffer(buf)
	enc := json.NewEncoder(b)
	enc.SetEscapeHTML(false)
	_ = enc.Encode(doc)
	return b.Bytes()
}

func appendMark(buf []byte, what string, at time.Time) []byte {
	return AppendJSON(buf, Line{At: Stamp(at), Type: what})
}

func appendDropped(buf []byte, n uint64, at time.Time) []byte {
	return AppendJSON(buf, Line{At: Stamp(at), Type: "dropped", Dropped: n})
}

func (l *line) append(buf []byte) []byte {
	if i := l.invocation; i != nil {
		return AppendJSON(buf, Line{At: Stamp(i.Start), Type: "invocation", Kind: string(i.Kind), Version: i.Version, Method: i.Method, URL: i.URL,
			Event: i.Event, Batch: i.Batch, Status: i.Status, Outcome: i.Outcome, Receipt: CostsOf(&i.Receipt)})
	}
	e := &l.entry
	return AppendJSON(buf, Line{At: Stamp(e.Time), Type: "console", Version: e.Version, Level: e.Level.String(), Text: e.Text, Dropped: e.Dropped})
}
