package accesslog

import (
	"strings"

	"edged/node/tail"
	"edged/router"
	"edged/sandbox/event"
)

// Line is one line of the log.
type Line struct {
	At      string      `json:"at"` // when the request's head was complete: RFC 3339, UTC, milliseconds
	Ms      float64     `json:"ms"` // from then until the response was out
	Peer    string      `json:"peer,omitempty"`
	TLS     bool        `json:"tls,omitempty"`
	Proto   string      `json:"proto"`
	Method  string      `json:"method,omitempty"`
	Host    string      `json:"host,omitempty"`
	Path    string      `json:"path,omitempty"` // without query, at most 2048 bytes
	Status  int         `json:"status,omitempty"`
	Error   string      `json:"error,omitempty"`  // the Edged-Error
	Answer  string      `json:"answer,omitempty"` // code, asset or hosted
	In      int64       `json:"inBytes"`
	Out     int64       `json:"outBytes"`
	Cut     bool        `json:"cut,omitempty"`
	Worker  string      `json:"worker,omitempty"`
	Version string      `json:"version,omitempty"`
	Receipt *tail.Costs `json:"receipt,omitempty"`
}

func appendLine(buf []byte, a *router.Access) []byte {
	l := Line{At: tail.Stamp(a.Start), Ms: float64(a.Took.Microseconds()) / 1000, TLS: a.Secure, Proto: "HTTP/1.1", Method: text(a.Method),
		Host: text(a.Host), Path: text(a.Path), Status: a.Status, Error: a.Error, Answer: a.Answer, In: a.In, Out: a.Out, Cut: a.Cut,
		Worker: a.Worker, Version: a.Version}
	if a.Minor == 0 && len(a.Method) > 0 {
		l.Proto = "HTTP/1.0"
	}
	if a.Peer.IsValid() {
		l.Peer = a.Peer.String()
	}
	if a.Receipt != nil {
		l.Receipt = tail.CostsOf(a.Receipt)
	}
	return tail.AppendJSON(buf, l)
}

// text bounds what a client sent; what is no UTF-8 becomes question marks.
func text(b []byte) string {
	return strings.ToValidUTF8(string(b[:min(len(b), event.MaxShownURL)]), "?")
}
