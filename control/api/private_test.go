package api

import (
	"context"
	"fmt"
	"log/slog"
	"net/http/httptest"
	"strings"
	"testing"

	"edged/control/form"
	"edged/control/state"
)

// host-api §8: what is stored of a request does not depend on the values of its private inputs, only on their names; the
// values go to the room apart, and print as nothing.
func TestFingerprintHoldsNoValue(t *testing.T) {
	s := state.New(form.Builtin())
	s.Apply(&state.Command{Kind: state.AddToken, Token: &state.Token{ID: "k", Hash: state.TokenHash("secret"), Tenant: "t", Principal: "p", Role: state.Editor}})
	var got *state.Command
	var values Private
	h := New(Options{State: s, Drivers: form.Builtin(), MaxRequestBytes: 1 << 20, Ready: func() bool { return true }, Log: slog.New(slog.DiscardHandler),
		Mutate: func(_ context.Context, c *state.Command, v Private) (state.Outcome, error) {
			got, values = c, v
			return state.Outcome{Operation: &state.Operation{ID: "op", Status: state.Succeeded}}, nil
		}})
	send := func(private string) string {
		r := httptest.NewRequest("POST", Root+"/resources", strings.NewReader(`{"form":"https://a.test/","space":"s","name":"n","spec":{"a":1e2}`+private+`}`))
		r.Header.Set("Authorization", "Bearer secret")
		r.Header.Set("Content-Type", "application/json")
		r.Header.Set("Idempotency-Key", "0123456789abcdef")
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		if w.Code != 200 {
			t.Fatalf("%s: %d %s", private, w.Code, w.Body)
		}
		return string(got.Fingerprint)
	}
	one := send(`,"privateInputs":{"A":"one","B":"two"}`)
	if two := send(`,"privateInputs":{"B":"other","A":"values"}`); one != two {
		t.Error("the fingerprint depends on values")
	}
	if values["A"] != "values" || got.Inputs != nil {
		t.Errorf("the room was given %d values", len(values))
	}
	if text := fmt.Sprintf("%v %+v %#v %s %+v", values, values, values, values, got); strings.Contains(text, "other") {
		t.Errorf("they print as %s", text)
	}
	var log strings.Builder
	slog.New(slog.NewTextHandler(&log, nil)).Info("x", "values", values)
	if strings.Contains(log.String(), "other") {
		t.Errorf("they are logged as %s", log.String())
	}
	for _, different := range []string{"", `,"privateInputs":{}`, `,"privateInputs":{"A":"one"}`, `,"privateInputs":{"A":"one","C":"two"}`} {
		if send(different) == one {
			t.Errorf("%q has the same fingerprint", different)
		}
	}
}
