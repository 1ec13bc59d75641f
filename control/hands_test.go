package control

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"testing"

	"edged/control/artifact"
)

// A member may say anything: it gets an answer, and nothing of it stays.
func FuzzHands(f *testing.F) {
	f.Add("store", []byte(`{"do":"create","kind":"queue","store":{"UID":"q"}}`))
	f.Add("migrate", []byte(`{"database":"d","files":[{"path":"a","sha256":"00"}]}`))
	f.Add("in-use", []byte(`{"versions":["v"]}`))
	f.Add("retire", []byte(`{"index":18446744073709551615}`))
	f.Fuzz(func(t *testing.T, what string, body []byte) {
		h := NewHands(HandsOptions{
			Stores: map[string]Store{"queue": newFakeStore()}, Caller: func(*http.Request) string { return "n2" },
			Reach: func(context.Context, uint64) error { return nil },
		})
		r := httptest.NewRequest("POST", "/", bytes.NewReader(body))
		r.URL.Path = handsRoot + what
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		if w.Code != 200 && w.Code < 400 || len(h.stores) != 0 {
			t.Errorf("%d %s, %d turns left", w.Code, w.Body, len(h.stores))
		}
		var in holdRequest
		if json.Unmarshal(body, &in) == nil {
			if ds, err := in.parse(); err == nil && len(ds) > artifact.MaxFiles+1 {
				t.Errorf("%d digests", len(ds))
			}
		}
	})
}

// Only voters have something to say to a member's hands.
func TestHandsObeyVotersOnly(t *testing.T) {
	store := newFakeStore()
	h := NewHands(HandsOptions{Stores: map[string]Store{"queue": store}, Caller: func(*http.Request) string { return "" }})
	r := httptest.NewRequest("POST", handsRoot+"store", bytes.NewReader([]byte(`{"do":"create","kind":"queue","store":{"UID":"q"}}`)))
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	if w.Code != 404 || store.calls != 0 {
		t.Errorf("%d, %d calls", w.Code, store.calls)
	}
}
