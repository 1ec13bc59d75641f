package api

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"edged/control/form"
	"edged/control/state"
)

// pipeListener hands out one connection and then none until it is closed.
type pipeListener struct {
	conn   chan net.Conn // capacity 1
	closed chan struct{}
}

func (l *pipeListener) Accept() (net.Conn, error) {
	select {
	case c := <-l.conn:
		return c, nil
	case <-l.closed:
		return nil, net.ErrClosed
	}
}
func (l *pipeListener) Close() error   { close(l.closed); return nil }
func (l *pipeListener) Addr() net.Addr { return &net.TCPAddr{} }

// A client that announces a body and sends none of it is waited for a minute and refused; one whose body has arrived may
// wait longer than that for its answer.
func TestBodyHasItsTime(t *testing.T) {
	const whole = `{"form":"https://forms.example.test/","space":"s","name":"n","spec":{}}`
	for _, row := range []struct {
		name, request string
		status        int
		took          time.Duration
	}{
		{"stalled DELETE", "DELETE " + Root + "/resources/r HTTP/1.1\r\nTakoform-Expected-Generation: 1\r\nContent-Length: 5\r\n%s\r\n", 400, bodyTimeout},
		{"stalled POST", "POST " + Root + "/resources HTTP/1.1\r\nContent-Length: 5\r\n%s\r\n{", 400, bodyTimeout},
		{"whole", "POST " + Root + "/resources HTTP/1.1\r\nContent-Length: " + strconv.Itoa(len(whole)) + "\r\n%s\r\n" + whole, 503, 3 * bodyTimeout},
	} {
		synctest.Test(t, func(t *testing.T) {
			s := state.New(form.Builtin())
			s.Apply(&state.Command{Kind: state.AddToken, Token: &state.Token{ID: "t", Hash: state.TokenHash("secret"), Tenant: "a", Role: state.Editor}})
			h := New(Options{State: s, Drivers: form.Builtin(), MaxRequestBytes: 1000, Ready: func() bool { return true }, Log: slog.New(slog.DiscardHandler),
				Mutate: func(ctx context.Context, _ *state.Command, _ Private) (state.Outcome, error) {
					select { // virtual time
					case <-time.After(row.took):
					case <-ctx.Done():
					}
					return state.Outcome{}, context.Canceled
				}})
			client, server := net.Pipe()
			ln := &pipeListener{make(chan net.Conn, 1), make(chan struct{})}
			ln.conn <- server
			srv := &http.Server{Handler: h}
			go srv.Serve(ln) // ends with Close
			defer srv.Close()
			defer client.Close()
			start := time.Now()
			fmt.Fprintf(client, row.request, "Host: x\r\nAuthorization: Bearer secret\r\nIdempotency-Key: 0123456789abcdef\r\nContent-Type: application/json\r\n")
			res, err := http.ReadResponse(bufio.NewReader(client), nil)
			if err != nil {
				t.Fatalf("%s: %v", row.name, err)
			}
			res.Body.Close()
			if took := time.Since(start); res.StatusCode != row.status || took != row.took {
				t.Errorf("%s: %d after %v, want %d after %v", row.name, res.StatusCode, took, row.status, row.took)
			}
		})
	}
}

// host-api §9: a page that would be too large ends early and goes on with its cursor; nothing is left out.
func TestPageIsBoundedInBytes(t *testing.T) {
	s := state.New(form.Builtin())
	s.Apply(&state.Command{Kind: state.Found, Secret: []byte("key")})
	s.Apply(&state.Command{Kind: state.AddToken, Token: &state.Token{ID: "t", Hash: state.TokenHash("secret"), Tenant: "a", Role: state.Editor}})
	for i := range 5 {
		id := strconv.Itoa(i)
		s.Apply(&state.Command{Kind: state.CreateResource, Actor: state.Actor{Tenant: "a", Role: state.Editor}, Key: id, UID: "r-" + id,
			Operation: "op-" + id, Form: form.ModuleWorkerURL, Space: "s", Name: "n" + id, Spec: []byte("{}")})
	}
	item := len(state.Representation(s.Resource("r-0")))
	h := New(Options{State: s, Drivers: form.Builtin(), MaxRequestBytes: 1000, MaxPageSize: 4, Ready: func() bool { return true }, Log: slog.New(slog.DiscardHandler)})
	for _, row := range []struct {
		bytes int
		want  string
	}{
		{maxPageBytes, "[4 1]"}, {2*item + 1, "[2 2 1]"}, {1, "[1 1 1 1 1]"},
	} {
		h.pageBytes = row.bytes
		var pages []int
		seen := map[string]bool{}
		for cursor := ""; ; {
			r := httptest.NewRequest("GET", Root+"/resources?space=s"+cursor, nil)
			r.Header.Set("Authorization", "Bearer secret")
			w := httptest.NewRecorder()
			h.ServeHTTP(w, r)
			var page struct {
				Items      []struct{ UID string }
				NextCursor *string
			}
			if err := json.Unmarshal(w.Body.Bytes(), &page); err != nil || w.Code != 200 {
				t.Fatalf("%d %s %v", w.Code, w.Body, err)
			}
			pages = append(pages, len(page.Items))
			for _, item := range page.Items {
				seen[item.UID] = true
			}
			if page.NextCursor == nil {
				break
			}
			cursor = "&cursor=" + *page.NextCursor
		}
		if got := fmt.Sprint(pages); got != row.want || len(seen) != 5 {
			t.Errorf("with %d bytes the pages hold %s, %d Resources in all, want %s", row.bytes, got, len(seen), row.want)
		}
	}
}
