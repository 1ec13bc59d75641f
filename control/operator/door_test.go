package operator

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"edged/internal/fault"
)

// door is a room "things" with a route of every sort.
func door(t testing.TB, audit func(Event)) *Door {
	t.Helper()
	d, err := New(Options{
		Find: func(uid string) (Target, bool) {
			tenant, space, ok := strings.Cut(uid, ".")
			space, _, _ = strings.Cut(space, ".")
			return Target{UID: uid, Tenant: tenant, Space: space, Name: "n"}, ok
		},
		Audit: audit,
		Rooms: []Room{{Name: "things", Routes: []Route{
			{Name: "list", Method: "GET", Path: "all", Query: []string{"limit"}, Serve: func(c *Call) error {
				n, err := c.Int("limit", 10, 1, 100)
				if err != nil {
					return err
				}
				return c.JSON(map[string]any{"limit": n, "bytes": Bytes("hi")})
			}},
			{Name: "change", Method: "POST", Path: "{uid}/change", Body: JSONBody, MaxBody: 100, Changes: true, Serve: func(c *Call) error {
				var in struct {
					Data Bytes `json:"data"`
				}
				if err := c.Decode(&in); err != nil {
					return err
				}
				return c.JSON(map[string]string{"got": string(in.Data), "of": c.Target.Tenant})
			}},
			{Name: "read", Method: "GET", Path: "{uid}/change", Serve: func(c *Call) error { return c.JSON(c.Target) }},
			{Name: "special", Method: "GET", Path: "special/change", Serve: func(c *Call) error { return c.JSON("special") }},
			{Name: "load", Method: "PUT", Path: "{uid}/body", Body: RawBody, MaxBody: 10, Changes: true, Serve: func(c *Call) error {
				b, err := io.ReadAll(c.Body())
				if err != nil {
					return err
				}
				_, err = c.Stream("text/plain").Write(append(b, b...))
				return err
			}},
			{Name: "break", Method: "GET", Path: "break", Serve: func(c *Call) error {
				fmt.Fprint(c.Stream("text/plain"), "half")
				return errors.New("the rest is not there")
			}},
			{Name: "late", Method: "GET", Path: "late", Query: []string{"write"}, Serve: func(c *Call) error {
				w := c.StreamLater("text/plain")
				if c.Query.Has("write") {
					fmt.Fprint(w, "half")
				}
				return fault.New(fault.Conflict, "test", "not now")
			}},
			{Name: "find", Method: "PUT", Path: "{uid}/find", Query: []string{"other"}, Body: RawBody, Serve: func(c *Call) error {
				other, err := c.Find(c.Query.Get("other"))
				if err != nil {
					return err
				}
				return c.JSON(map[string]any{"found": other.UID, "length": c.Length()})
			}},
			{Name: "whole", Method: "DELETE", Path: "everything", Whole: true, Changes: true, Serve: func(c *Call) error {
				c.About("t9", "u", "x")
				return fault.Name(fault.Conflict, "not_now", 999).New("test", "later")
			}},
		}}},
	})
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func ask(d *Door, caller *Caller, method, path, body string, header ...string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(method, Root+path, strings.NewReader(body))
	for i := 0; i < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	w := httptest.NewRecorder()
	d.Serve(w, r, caller)
	return w
}

// node-surface §4: JSON, bytes in the encoded shape, Problem errors, streaming bodies; the tenant of {uid} is judged here.
func TestDoor(t *testing.T) {
	d := door(t, nil)
	jsonType := []string{"Content-Type", "application/json"}
	own := &Caller{Tenant: "t1", Principal: "p"}
	spaced := &Caller{Tenant: "t1", Principal: "p", Spaces: []string{"s"}}
	whole := &Caller{Tenant: "default", Principal: "p", Whole: true}
	for _, row := range []struct {
		caller             *Caller
		method, path, body string
		header             []string
		status             int
		want               string
	}{
		{own, "GET", "things/all", "", nil, 200, `{"bytes":{"encoding":"base64","data":"aGk="},"limit":10}`},
		{own, "GET", "things/all?limit=7", "", nil, 200, `"limit":7`},
		{own, "GET", "things/all?limit=0", "", nil, 400, "invalid_request"},
		{own, "GET", "things/all?limit=1&limit=1", "", nil, 400, "invalid_request"},
		{own, "GET", "things/all?x=1", "", nil, 400, "invalid_request"},
		{own, "GET", "things/all", "x", nil, 400, "no body"},
		{own, "POST", "things/t1.s/change", `{"data":{"encoding":"base64","data":"aGk="}}`, jsonType, 200, `{"got":"hi","of":"t1"}`},
		{own, "POST", "things/t1.s/change", `{"data":{"encoding":"base64","data":"aGk"}}`, jsonType, 400, "base64"},
		{own, "POST", "things/t1.s/change", `{"data":{"encoding":"base64","data":"aG\nk="}}`, jsonType, 400, "base64"},
		{own, "POST", "things/t1.s/change", `{"other":1}`, jsonType, 400, "unknown field"},
		{own, "POST", "things/t1.s/change", `{"data":null,"data":null}`, jsonType, 400, "invalid_request"},
		{own, "POST", "things/t1.s/change", `[]`, jsonType, 400, "object"},
		{own, "POST", "things/t1.s/change", `{}`, nil, 415, "unsupported_media_type"},
		{own, "POST", "things/t1.s/change", `{"data":"` + strings.Repeat("x", 100) + `"}`, jsonType, 413, "request_too_large"},
		{own, "POST", "things/t2.s/change", `{}`, jsonType, 404, "not_found"},
		{own, "POST", "things/none/change", `{}`, jsonType, 404, "not_found"},
		{spaced, "GET", "things/t1.s/change", "", nil, 200, `"t1.s"`},
		{spaced, "GET", "things/t1.other/change", "", nil, 404, "not_found"},
		{whole, "GET", "things/t2.s/change", "", nil, 200, `"t2.s"`},
		{own, "GET", "things/special/change", "", nil, 200, "special"},
		{own, "PUT", "things/t1.s/body", "12345", nil, 200, "1234512345"},
		{own, "PUT", "things/t1.s/body", "12345678901", nil, 413, "request_too_large"},
		{own, "DELETE", "things/everything", "", nil, 403, "forbidden"},
		{whole, "DELETE", "things/everything", "", nil, 409, "not_now"},
		{own, "GET", "things/nothing", "", nil, 404, "not_found"},
		{own, "GET", "things//change", "", nil, 404, "not_found"},
	} {
		w := ask(d, row.caller, row.method, row.path, row.body, row.header...)
		if w.Code != row.status || !strings.Contains(w.Body.String(), row.want) {
			t.Errorf("%s %s: %d %s, want %d %s", row.method, row.path, w.Code, w.Body, row.status, row.want)
		}
		if p := (struct{ Type, Code string }{}); w.Code >= 400 && (json.Unmarshal(w.Body.Bytes(), &p) != nil || p.Type != "about:blank" || p.Code == "" ||
			w.Header().Get("Content-Type") != "application/problem+json") {
			t.Errorf("%s %s: no Problem: %s", row.method, row.path, w.Body)
		}
	}
	foreign, never := ask(d, own, "GET", "things/t2.s/change", ""), ask(d, own, "GET", "things/never/change", "")
	if foreign.Body.String() != never.Body.String() {
		t.Errorf("%s tells from %s", foreign.Body, never.Body)
	}
	if got := d.Methods(Root + "things/x/change"); got != "GET, POST" {
		t.Errorf("methods are %q", got)
	}
	if got := d.Methods(Root + "things/x/y/change"); got != "" {
		t.Errorf("methods of nothing are %q", got)
	}
}

// A stream that fails is cut; it never ends as if it were whole.
func TestBrokenStreamIsCut(t *testing.T) {
	d := door(t, nil)
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { d.Serve(w, r, &Caller{}) }))
	defer srv.Close()
	res, err := http.Get(srv.URL + Root + "things/break")
	if err != nil {
		return // cut before the head was out
	}
	defer res.Body.Close()
	if b, err := io.ReadAll(res.Body); err == nil {
		t.Errorf("read %q to its end", b)
	}
}

// Every change that was tried is told, with what it was about and how it ended; reads are not.
func TestAudit(t *testing.T) {
	var got []string
	d := door(t, func(e Event) {
		_, code := Code(e.Err)
		got = append(got, fmt.Sprint(e.Action, " ", e.Tenant, " ", e.UID, " ", e.Name, " ", code))
	})
	whole := &Caller{Tenant: "default", Whole: true}
	ask(d, whole, "GET", "things/all", "")
	ask(d, whole, "POST", "things/t1.s/change", "{}", "Content-Type", "application/json")
	ask(d, whole, "POST", "things/t1.s/change", "{")
	ask(d, whole, "DELETE", "things/everything", "")
	ask(d, whole, "DELETE", "things/everything", "body")
	want := "[things.change t1 t1.s n  things.change t1 t1.s n unsupported_media_type things.whole t9 u x not_now things.whole default   invalid_request]"
	if fmt.Sprint(got) != want {
		t.Errorf("got  %v\nwant %v", got, want)
	}
}

// Rooms that do not fit together are refused when the door is made.
func TestNewRefuses(t *testing.T) {
	serve := func(*Call) error { return nil }
	_, err := New(Options{Rooms: []Room{{Name: "r", Routes: []Route{
		{Name: "a", Method: "GET", Path: "x/{a}", Serve: serve}, {Name: "b", Method: "GET", Path: "x/{b}", Serve: serve},
		{Name: "c", Method: "PATCH", Path: "y", Serve: serve}, {Name: "d", Method: "GET", Path: "z//z", Serve: serve}, {Name: "e", Method: "GET", Path: "e"},
	}}}})
	for _, word := range []string{"twice", "PATCH", "z//z", `"e"`} {
		if err == nil || !strings.Contains(err.Error(), word) {
			t.Errorf("%v does not speak of %s", err, word)
		}
	}
}

// FuzzBytes: what is read is written back as the same value, and nothing else is believed.
func FuzzBytes(f *testing.F) {
	f.Add([]byte(`{"encoding":"base64","data":"aGk="}`))
	f.Fuzz(func(t *testing.T, raw []byte) {
		var b, again Bytes
		if json.Unmarshal(raw, &b) != nil || b == nil {
			return
		}
		out, err := json.Marshal(b)
		if err != nil || json.Unmarshal(out, &again) != nil || string(again) != string(b) {
			t.Errorf("%s became %s", raw, out)
		}
	})
}

// A stream that has not begun answers an error as one; one that has is cut.
func TestStreamLater(t *testing.T) {
	d := door(t, nil)
	if w := ask(d, &Caller{Tenant: "t1"}, "GET", "things/late", ""); w.Code != 409 || !strings.Contains(w.Body.String(), "not now") {
		t.Errorf("%d %s", w.Code, w.Body)
	}
	defer func() {
		if recover() != http.ErrAbortHandler {
			t.Error("a stream that broke looks whole")
		}
	}()
	ask(d, &Caller{Tenant: "t1"}, "GET", "things/late?write=1", "")
}

// README §5: nothing is carried out of a tenant or a Space, also by those who may work on all of them.
func TestCallFind(t *testing.T) {
	d := door(t, nil)
	for _, c := range []struct {
		caller *Caller
		other  string
		want   int
	}{
		{&Caller{Tenant: "t1"}, "t1.a.second", 200}, {&Caller{Tenant: "t1"}, "t1.b", 404}, {&Caller{Tenant: "t1"}, "t2.a", 404},
		{&Caller{Tenant: "t1", Spaces: []string{"a"}}, "t1.a", 200}, {&Caller{Tenant: "t0", Whole: true}, "t2.a", 404}, {&Caller{Tenant: "t0", Whole: true}, "t1.a", 200}, {&Caller{Tenant: "t1"}, "gone", 404},
	} {
		w := ask(d, c.caller, "PUT", "things/t1.a/find?other="+c.other, "body")
		if w.Code != c.want || c.want == 200 && !strings.Contains(w.Body.String(), `"length":4`) {
			t.Errorf("%+v asks for %s: %d %s, want %d", c.caller, c.other, w.Code, w.Body, c.want)
		}
	}
}
