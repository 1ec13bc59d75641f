package api

import (
	"log/slog"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"
	"time"

	"edged/control/form"
	"edged/control/jsonraw"
	"edged/control/rules"
	"edged/control/state"
)

// README §4: every code of the seeds has its place on the wire.
func TestEverySeedHasAWireCode(t *testing.T) {
	for _, seed := range []rules.Seed{
		rules.InvalidArgument, rules.UnsupportedCapability, rules.DependencyInUse, rules.ResourceNotFound, rules.ResourceBusy,
		rules.PermissionDenied, rules.Malformed, rules.FormUnknown, rules.NameConflict, rules.GenerationConflict,
		rules.IdempotencyConflict, rules.Gone, rules.ArtifactInvalid, rules.InputsConflict, rules.InputsUnverifiable, rules.OperationTerminal,
	} {
		p := fromVerdict(rules.Refuse(seed, "X", "", nil, "why"))
		if p.code == "internal_error" || p.status < 400 || p.status > 499 || !strings.HasSuffix(p.detail, "why") {
			t.Errorf("%s becomes %+v", seed, p)
		}
	}
	if p := fromVerdict(&rules.Verdict{Seed: "stranger", Sentence: "secret"}); p.status != 500 || p.detail != "" {
		t.Errorf("an unknown code becomes %+v", p)
	}
}

func newCall(secret string, a state.Actor) *call {
	s := state.New(form.Builtin())
	s.Apply(&state.Command{Kind: state.Found, Secret: []byte(secret)})
	return &call{Handler: New(Options{State: s, Drivers: form.Builtin(), MaxPageSize: 10, Log: slog.New(slog.DiscardHandler)}), actor: a}
}

// host-api §9: a cursor is good for its list, its principal and its time, and for nothing else.
func TestCursor(t *testing.T) {
	now := time.UnixMilli(1_700_000_000_000)
	a := state.Actor{Tenant: "t", Principal: "p"}
	f := state.Filter{Space: "s", Name: "n"}
	c := newCall("key", a)
	text := c.makeCursor("r-1", f, now)
	for _, row := range []struct {
		name  string
		c     *call
		f     state.Filter
		text  string
		at    time.Time
		bad   bool
		fresh bool
	}{
		{"its own", c, f, text, now.Add(time.Hour), false, true},
		{"expired", c, f, text, now.Add(cursorLife), false, false},
		{"other filter", c, state.Filter{Space: "sn"}, text, now, true, false},
		{"other principal", newCall("key", state.Actor{Tenant: "t", Principal: "q"}), f, text, now, true, false},
		{"other tenant", newCall("key", state.Actor{Tenant: "u", Principal: "p"}), f, text, now, true, false},
		{"other key", newCall("yek", a), f, text, now, true, false},
		{"cut", c, f, text[:len(text)-2], now, true, false},
		{"longer", c, f, text + "AA", now, true, false},
		{"huge", c, f, strings.Repeat("A", 10000), now, true, false},
		{"empty", c, f, "", now, true, false},
	} {
		after, fresh, p := row.c.openCursor(row.text, row.f, row.at)
		if (p != nil) != row.bad || !row.bad && (fresh != row.fresh || after != "r-1") {
			t.Errorf("%s: %q %t %v", row.name, after, fresh, p)
		}
	}
}

// A bug answers 500 without a word about itself.
func TestPanicIsContained(t *testing.T) {
	h := New(Options{Ready: func() bool { panic("secret") }, Log: slog.New(slog.DiscardHandler)})
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequest("GET", Root+"/resources", nil))
	if w.Code != 500 || strings.Contains(w.Body.String(), "secret") || !strings.Contains(w.Body.String(), "internal_error") {
		t.Errorf("got %d %s", w.Code, w.Body)
	}
}

// The same request has the same fingerprint however it is written; another one has another (host-api §7.4).
func TestFingerprint(t *testing.T) {
	of := func(method, path string, expected uint64, body string) string {
		t.Helper()
		sum, p := fingerprint(method, path, strconv.FormatUint(expected, 10), []byte(body))
		if p != nil {
			t.Fatal(p)
		}
		return string(sum)
	}
	base := of("PUT", "/resources/a", 1, `{"spec":{"a":1,"b":[1,2]}}`)
	if of("PUT", "/resources/a", 1, ` {"spec":{"b":[1.0,2e0], "a":10e-1}}`) != base {
		t.Error("spelling makes a difference")
	}
	for name, other := range map[string]string{
		"method": of("POST", "/resources/a", 1, `{"spec":{"a":1,"b":[1,2]}}`),
		"path":   of("PUT", "/resources/b", 1, `{"spec":{"a":1,"b":[1,2]}}`),
		"fence":  of("PUT", "/resources/a", 2, `{"spec":{"a":1,"b":[1,2]}}`),
		"order":  of("PUT", "/resources/a", 1, `{"spec":{"a":1,"b":[2,1]}}`),
		"null":   of("PUT", "/resources/a", 1, `{"spec":{"a":1,"b":[1,2],"c":null}}`),
		"secret": of("PUT", "/resources/a", 1, `{"spec":{"a":1,"b":[1,2]},"privateInputs":{}}`),
	} {
		if other == base {
			t.Errorf("%s makes no difference", name)
		}
	}
}

// No document can make the envelope readers panic, and what they accept has the grammar they promise.
func FuzzEnvelope(f *testing.F) {
	f.Add([]byte(`{"form":"https://a.test/","space":"s","name":"n","spec":{},"privateInputs":{"A":"x"},"offering":{"id":"a","revision":"b"}}`))
	f.Fuzz(func(t *testing.T, body []byte) {
		if jsonraw.Check(body) != nil {
			return
		}
		var c state.Command
		if _, p := envelope(body, true, &c); p == nil && (!form.IsFormURL(c.Form) || !form.IsName(c.Space) || !form.IsName(c.Name) || c.Spec == nil) {
			t.Fatalf("accepted %s as %+v", body, c)
		}
	})
}
