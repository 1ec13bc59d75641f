package rfc9457

import (
	"net/http/httptest"
	"testing"
)

// host-api §11: members, their order and the media type; what is not known is left out.
func TestWrite(t *testing.T) {
	for want, p := range map[string]Problem{
		`{"type":"about:blank","title":"Conflict","status":409,"code":"resource_busy","detail":"a < b","operationId":"op-1"}`: {409, "resource_busy", "a < b", "op-1"},
		`{"type":"about:blank","title":"Internal Server Error","status":500,"code":"internal_error"}`:                         {500, "internal_error", "", ""},
	} {
		w := httptest.NewRecorder()
		w.Header().Set("Retry-After", "1")
		p.Write(w)
		h := w.Header()
		if w.Code != p.Status || w.Body.String() != want+"\n" || h.Get("Content-Type") != "application/problem+json" || h.Get("Retry-After") != "1" {
			t.Errorf("got %d %v %s", w.Code, h, w.Body)
		}
	}
}
