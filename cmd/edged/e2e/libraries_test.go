package e2e

import (
	"bufio"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"
)

// Libraries that people deploy run unmodified: a router, a validator, signed tokens, GraphQL, server-sent events.
func driveLibraries(t *testing.T, n *node, url string) {
	const jsonType = "application/json"
	expect(t, "itty-router", n.get(url+"/greet/ada?lang=fr"), 200, `{"hello":"ada","lang":"fr"}`)
	expect(t, "itty-router, no route", n.get(url+"/none"), 404, `{"status":404,"error":"Not Found"}`)
	expect(t, "zod", n.do("POST", url+"/orders", strings.NewReader(`{"item":"pen","count":"3","tags":["gift"]}`)), 200,
		`{"item":"pen","count":3,"tags":["gift"]}`)
	expect(t, "zod, problems", n.do("POST", url+"/orders", strings.NewReader(`{"item":"","count":"-3","tags":["x"],"when":"2020-13-01"}`)), 422,
		`{"status":422,"problems":[["item","too_small"],["count","too_small"],["when","invalid_format"],["tags.0","invalid_value"]]}`)

	var token struct{ Token string }
	if a := n.do("POST", url+"/tokens/ada", nil); json.Unmarshal([]byte(a.body), &token) != nil || token.Token == "" {
		t.Errorf("jose: %+v", a)
	}
	expect(t, "jose", n.do("GET", url+"/me", nil, "Authorization", "Bearer "+token.Token), 200, `{"subject":"ada","role":"reader"}`)
	expect(t, "jose, wrong", n.do("GET", url+"/me", nil, "Authorization", "Bearer "+token.Token+"x"), 401,
		`{"status":401,"error":"ERR_JWS_SIGNATURE_VERIFICATION_FAILED"}`)

	query := `{"query":"query($m: Int) { books(minPages: $m) { title } book(id: \"2\") { pages } }","variables":{"m":250}}`
	expect(t, "graphql-yoga", n.do("POST", url+"/graphql", strings.NewReader(query), "Content-Type", jsonType), 200,
		`{"data":{"books":[{"title":"Sartor Resartus"}],"book":{"pages":244}}}`)
	a := n.do("POST", url+"/graphql", strings.NewReader(`{"query":"subscription { countdown(from: 1) }"}`), "Content-Type", jsonType, "Accept", "text/event-stream")
	if want := "event: next\ndata: {\"data\":{\"countdown\":1}}\n\nevent: next\ndata: {\"data\":{\"countdown\":0}}\n\nevent: complete\ndata:"; a.status != 200 || !strings.Contains(a.body, want) {
		t.Errorf("graphql-yoga, subscription: %+v", a)
	}
	driveEvents(t, n, url)
}

// An event of a stream without end arrives while the stream goes on.
func driveEvents(t *testing.T, n *node, url string) {
	req, err := http.NewRequestWithContext(t.Context(), "GET", url+"/events?count=1000000", nil)
	if err != nil {
		t.Fatal(err)
	}
	res, err := n.client(n.info.HTTP, nil).Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	if got := res.Header.Get("Content-Type"); got != "text/event-stream" {
		t.Errorf("events: %q", got)
	}
	lines := bufio.NewReader(res.Body)
	for _, want := range []string{"id: 0\n", "event: tick\n", "data: {\"n\":0}\n", "\n", "id: 1\n"} {
		if got, err := lines.ReadString('\n'); err != nil || got != want {
			t.Fatalf("events: %q %v, want %q", got, err, want)
		}
	}
}

// React streams: what needs no data arrives while the data does not exist yet, with a fallback for it, and then the rest.
func driveReact(t *testing.T, n *node, url string) {
	items, data := io.Pipe()
	defer data.Close()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second) // ends a page that waits for its data
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, "POST", url+"/?name=%3Cb%3E", items)
	if err != nil {
		t.Fatal(err)
	}
	res, err := n.client(n.info.HTTP, nil).Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	page := bufio.NewReader(res.Body)
	var first strings.Builder
	for !strings.Contains(first.String(), `<!--/$-->`) { // the end of what stands for the data
		part, err := page.ReadString('>')
		if first.WriteString(part); err != nil {
			t.Fatalf("%v in the page, before its data was sent:\n%.2000s", err, first.String())
		}
	}
	if _, err := io.WriteString(data, "one\ntwo\n"); err != nil {
		t.Fatal(err)
	}
	data.Close()
	rest, err := io.ReadAll(page)
	if err != nil || res.StatusCode != 200 {
		t.Errorf("%d, %v", res.StatusCode, err)
	}
	for _, part := range []string{`<!DOCTYPE html><html><head><title>react-ssr</title>`, `lang="fr">Hello, <!-- -->&lt;b&gt;<!-- -->!</h1>`, `<p>loading</p>`} {
		if !strings.Contains(first.String(), part) {
			t.Errorf("what needs no data lacks %q:\n%.2000s", part, first.String())
		}
	}
	if want := `<div hidden id="S:0"><ul><li>one</li><li>two</li></ul></div>`; strings.Contains(first.String(), "<li>") || !strings.Contains(string(rest), want) {
		t.Errorf("the rest lacks %q:\n%.2000s", want, rest)
	}
	if a := n.get(url + "/?whole"); a.status != 200 || strings.Contains(a.body, "loading") || !strings.Contains(a.body, "<li>three</li>") {
		t.Errorf("without fallbacks: %+v", a)
	}
}
