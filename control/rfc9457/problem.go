// Package rfc9457 writes refusals as host-api §11 has them: RFC 9457 documents with the code that programs go by.
package rfc9457

import (
	"bytes"
	"encoding/json"
	"net/http"
	"strconv"
)

// Problem is one refusal.
type Problem struct {
	Status    int
	Code      string
	Detail    string // what the caller may read about it; left out if empty
	Operation string // id of an accepted Operation that the caller may read; left out if empty
}

// Write answers a request with p. Headers that w has already stay. A client that has left is told nothing.
func (p Problem) Write(w http.ResponseWriter) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	_ = enc.Encode(struct { // strings and a number always render
		Type      string `json:"type"`
		Title     string `json:"title"`
		Status    int    `json:"status"`
		Code      string `json:"code"`
		Detail    string `json:"detail,omitempty"`
		Operation string `json:"operationId,omitempty"`
	}{"about:blank", http.StatusText(p.Status), p.Status, p.Code, p.Detail, p.Operation})
	h := w.Header()
	h.Set("Content-Type", "application/problem+json")
	h.Set("Content-Length", strconv.Itoa(b.Len()))
	w.WriteHeader(p.Status)
	_, _ = w.Write(b.Bytes())
}
