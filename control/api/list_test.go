package api

import (
	"log/slog"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"edged/control/form"
	"edged/control/state"
)

// host-api §9: a cursor that is too old says so over the wire; one of another list, another principal or another size of
// page is judged by what it is bound to.
func TestExpiredCursorOverTheWire(t *testing.T) {
	s := state.New(form.Builtin())
	s.Apply(&state.Command{Kind: state.Found, Secret: []byte("key")})
	s.Apply(&state.Command{Kind: state.AddToken, Token: &state.Token{ID: "k", Hash: state.TokenHash("secret"), Tenant: "t", Principal: "p", Role: state.Editor}})
	h := New(Options{State: s, Drivers: form.Builtin(), MaxPageSize: 10, Ready: func() bool { return true }, Log: slog.New(slog.DiscardHandler)})
	c := &call{Handler: h, actor: state.Actor{Tenant: "t", Principal: "p"}}
	now := time.Now()
	for _, row := range []struct {
		name, query string
		status      int
		want        string
	}{
		{"fresh", "cursor=" + c.makeCursor("r", state.Filter{}, now), 200, `"nextCursor":null`},
		{"other page size", "limit=3&cursor=" + c.makeCursor("r", state.Filter{}, now), 200, `"items":[]`},
		{"expired", "cursor=" + c.makeCursor("r", state.Filter{}, now.Add(-cursorLife)), 409, `"cursor_expired"`},
		{"expired and of another list", "space=s&cursor=" + c.makeCursor("r", state.Filter{}, now.Add(-cursorLife)), 400, `"invalid_request"`},
		{"of this list", "space=s&cursor=" + c.makeCursor("r", state.Filter{Space: "s"}, now), 200, `"items":[]`},
		{"empty", "cursor=", 400, `"invalid_request"`},
	} {
		r := httptest.NewRequest("GET", Root+"/resources?"+row.query, nil)
		r.Header.Set("Authorization", "Bearer secret")
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		if w.Code != row.status || !strings.Contains(w.Body.String(), row.want) {
			t.Errorf("%s: %d %s, want %d %s", row.name, w.Code, w.Body, row.status, row.want)
		}
	}
}
